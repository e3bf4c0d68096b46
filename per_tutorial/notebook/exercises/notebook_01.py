"""Notebook 01, the segment tree: a walk, `find` and `set` from memory, prefix sums, memory."""

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from per_tutorial.notebook.checking.answers import (
    Case,
    Hint,
    call,
    cases_of,
    shown,
    that_ends,
    told_apart,
)
from per_tutorial.notebook.checking.declaring import (
    AN_INDEX,
    CHECKERS,
    Function,
    ValueExercise,
    function_exercise,
)

# Trees: lists of sums with the root at index 1, as in the notebook, or at index 0 -----------------

LEAVES = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
LARGE = np.random.default_rng(2).integers(1, 10, 1024).astype(float).tolist()


class CountedNodes(list):
    """Nodes that count how often they are read, and stop a walk that never ends."""

    patience = 100_000  # reads

    def __init__(self, nodes: Sequence[float]) -> None:
        super().__init__(nodes)
        self.reads = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.reads += len(found) if isinstance(place, slice) else 1
        if self.reads > self.patience:
            raise Hint("your walk never ends: does each step go to another node?")
        return found

    def __iter__(self) -> Iterator[float]:
        return (self[place] for place in range(len(self)))


def counted(name: str, value: Any) -> Any:
    """A copy of an argument for the answer."""
    return CountedNodes(value) if name == "nodes" else value


def sum_nodes(leaves: Sequence[float]) -> list[float]:
    """The sums of a tree with its root at index 1."""
    nodes = [0.0] * len(leaves) + list(leaves)
    for node in reversed(range(1, len(leaves))):
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
    return nodes


def root_at_0(leaves: Sequence[float]) -> list[float]:
    return sum_nodes(leaves)[1:]


def leaves_of(nodes: Sequence[float]) -> list[float]:
    return list(nodes)[len(nodes) // 2 :]


# 01.1: the nodes that `find(23)` visits -----------------------------------------------------------

PATH = [1, 3, 7, 14]


def where_it_leaves(path: Any) -> str:
    if path.ndim != 1:
        return "the answer is a list, with the numbers of the nodes on the way: [1, …]."
    for step, node in enumerate(PATH):
        if path[step : step + 1].tolist() != [node]:
            parent = PATH[step - 1]
            return (
                f"you leave the path at node {parent}: compare what is left of the prefix there "
                f"with the sum of its left child, node {2 * parent}."
                if step
                else "the walk starts at the root, and the root is node 1."
            )
    return "the walk is over when it reaches a leaf; four nodes are enough."


CHECKERS["01.1"] = ValueExercise(PATH, [
    ([1, 3, 6, 13],
     "at node 3 the prefix equals the left sum, 14. A leaf's strip does not include its right "
     "end: go left only if the prefix is *less* than the left sum."),
    ([1, 3, 7, 15],
     "you are right as far as node 7, but from there? Its left sum is 2, and after both steps to "
     "the right you subtract the left sum from the prefix."),
    ([1, 3, 7], "you are right so far, but node 7 is not a leaf: go on until you reach one."),
    ([1, 3, 7, 6], "it is leaf [6], but as a node it has another number: leaf [k] is node 8 + k."),
    ([1, 3, 7, 14, 6], "leaf [6] and node 14 are the same: the walk is over at node 14."),
    (PATH[::-1], "the order is root first, leaf last."),
    (PATH[1:], "the walk starts at the root, and the root is node 1."),
    ([0, 2, 6, 13],
     "the root is node 1 here, and the numbers of all other nodes follow from that."),
    ([sum_nodes(LEAVES)[node] for node in PATH],
     "those are the sums in the nodes; the numbers of the nodes are asked for, 1 for the root."),
    ([23, 14, 0, 0],
     "that is what is left of the prefix at each node; the numbers of the nodes are asked for."),
    ([1, 2, 3, 6, 7, 14],
     "the walk looks at left children to compare, but it visits only the nodes that it moves to."),
], where_it_leaves)  # fmt: skip


# 01.2: `find` in a tree whose root is node 0 ------------------------------------------------------


def find(
    nodes: Sequence[float],
    prefix: float,
    goes_left: Function = lambda prefix, left, right: prefix < left or right == 0,
    rest: Function = lambda prefix, left, right: prefix - left,
    result: Function = lambda node, nodes: node - len(nodes) // 2,
) -> int:
    node = 0
    while node < len(nodes) // 2:
        left, right = nodes[2 * node + 1], nodes[2 * node + 2]
        if goes_left(prefix, left, right):
            node = 2 * node + 1
        else:
            prefix = rest(prefix, left, right)
            node = 2 * node + 2
    return result(node, nodes)


def find_of_section_6(nodes: Sequence[float], prefix: float, more: int = 0) -> int:
    """The notebook's `find`, for a root at index 1; ``more`` is 1 if the list has no index 0."""
    leaves, node = len(nodes) // 2 + more, 1
    while node < leaves:
        if prefix < nodes[2 * node] or nodes[2 * node + 1] == 0.0:
            node = 2 * node
        else:
            prefix -= nodes[2 * node]
            node = 2 * node + 1
    return node - leaves


def shorter_comparison(prefix: float, left: float, right: float) -> bool:
    return prefix < left


def tie(side: int, *, guard: bool) -> dict[str, Function]:
    """Equal children as a special case: always this side (0: left), with the prefix unchanged."""

    def goes_left(prefix, left, right):
        return not side if left == right else prefix < left or (guard and right == 0)

    def rest(prefix, left, right):
        return prefix if left == right else prefix - left

    return {"goes_left": goes_left, "rest": rest}


TIES = (
    "Mistake 3: equal children are not a special case. When you go right, you subtract the left "
    "sum."
)


def where_it_should_be(case: Case, got: Any, results: Any) -> str:
    return (
        f"for a dart at {shown(case['prefix'], 17)} and the leaves "
        f"{shown(leaves_of(case['nodes']))} it should be leaf {find(**case)}, yours is "
        f"{shown(got)}."
    )


def reads_few(answer: Any, cases: Sequence[Case], most: int, sentence: str) -> str | None:
    """The sentence if an answer reads more than ``most`` nodes of a tree, else None."""
    for case in cases:
        nodes = CountedNodes(case["nodes"])
        call(answer, {**case, "nodes": nodes})
        if nodes.reads > most:
            return sentence.format(nodes.reads)
    return None


LAST = math.nextafter(1.0, 0.0)
TIED = [([1.0, 3.0, 1.0, 3.0], 4.5), ([2.0, 2.0, 1.0, 1.0], 3.0)]
DARTS = [
    *((LEAVES, prefix) for prefix in (0.0, 2.875, 3.0, 7.5, 8.0, 13.0, 14.0, 22.5, 23.0, 30.5)),
    ([7.0], 3.0), ([2.0, 5.0], 1.5), ([2.0, 5.0], 2.0), *TIED,
    ([0.0, 2.0, 1.0, 1.0], 0.0), ([0.0, 0.0, 4.0, 0.0], 0.0), ([3.0, 0.0, 0.0, 2.0], 3.0),
    ([0.3, 0.0, 0.7, 0.0], LAST), ([0.3, 0.0, 0.0, 0.0, 0.7, 0.0, 0.0, 0.0], LAST),
    *(([0.5, small, 0.5, 2.0 * small], prefix) for small in (1e-4, 1e-8, 1e-14)
      for prefix in (0.5 + 0.5 * small, 1.0 + 2.0 * small)),
    (LARGE[:16], 61.0), (LARGE[:64], 200.5), (LARGE, 4000.25),
]  # fmt: skip

function_exercise(
    "01.2", find, "nodes prefix",
    [(root_at_0(leaves), prefix) for leaves, prefix in DARTS], [
    (dict(goes_left=shorter_comparison),
     "nearly: after rounding, the prefix can be as large as all that is left. Then your walk ends "
     "in an empty leaf: never go right where the right sum is 0."),
    (dict(goes_left=lambda prefix, left, right: prefix <= left or right == 0),
     "Mistake 1: with `<=` a dart at the left end of a strip goes to the strip before, and a dart "
     "at exactly 0 to leaf 0, even if that is empty."),
    (dict(rest=lambda prefix, left, right: prefix),
     dict(rest=lambda prefix, left, right: prefix, goes_left=shorter_comparison),
     "when you go right, the prefix still counts from the start of the parent: subtract the "
     "left sum."),
    (dict(rest=lambda prefix, left, right: prefix - right),
     dict(rest=lambda prefix, left, right: prefix - right, goes_left=shorter_comparison),
     "when you go right, the leaves before you sum to the *left* sum: subtract that one."),
    (dict(goes_left=lambda prefix, left, right: prefix < right),
     dict(goes_left=lambda prefix, left, right: prefix < right or right == 0),
     dict(goes_left=lambda prefix, left, right: prefix < right or left == 0),
     "compare the prefix with the sum of the *left* child."),
    (dict(goes_left=lambda prefix, left, right: prefix >= left),
     "left and right are swapped: where the prefix is less than the left sum, go left."),
    (dict(goes_left=lambda prefix, left, right: prefix < left or left == 0),
     "the guard looks at the wrong child: it is the right one that must not be empty."),
    (dict(goes_left=lambda prefix, left, right: left == right or prefix < left or right == 0),
     "Mistake 3: equal children are not a special case."),
    (tie(0, guard=False), tie(1, guard=True), tie(1, guard=False), TIES),
    (*(dict(goes_left=lambda prefix, left, right, limit=limit: prefix < left or right < limit)
       for limit in 10.0 ** -np.arange(1, 14)),
     "a leaf with a small priority is not empty: the guard compares with 0."),
    (dict(goes_left=lambda prefix, left, right: left >= right),
     dict(goes_left=lambda prefix, left, right: left > right),
     "you follow the larger child, but the prefix says where to go."),
    (dict(result=lambda node, nodes: node),
     "that is the leaf's node; the number of the leaf is asked for, counted from 0."),
    (dict(result=lambda node, nodes: node - len(nodes) // 2 - 1),
     dict(result=lambda node, nodes: node - len(nodes) // 2 + 1),
     "it is off by one: with N leaves, the first leaf is node N - 1."),
    (dict(result=lambda node, nodes: nodes[node]),
     "that is the priority of the leaf; its number is asked for, counted from 0."),
    (dict(result=lambda node, nodes: node - 7),
     "it is right for 8 leaves, but not for other sizes: the first leaf is node len(nodes) // 2."),
    (find_of_section_6, functools.partial(find_of_section_6, more=1),
     "that is the numbering with the root at index 1. Here it is at index 0, and the children of "
     "node i are 2i + 1 and 2i + 2."),
], give=counted,
   asked_twice=([(root_at_0(leaves), prefix) for leaves, prefix in 8 * TIED], TIES),
   otherwise=where_it_should_be,
   dtype=AN_INDEX,
   after=functools.partial(
       reads_few, cases=cases_of("nodes prefix", [(root_at_0(LARGE), 4000.25)]), most=60, sentence=(
           "the leaf is right, but your function read {} nodes of a tree with 1024 leaves. Walk "
           "down from the root: ten comparisons are enough.")))  # fmt: skip


# 01.3: `set` in the same tree ---------------------------------------------------------------------


def set_leaf(
    nodes: Sequence[float],
    leaf: int,
    value: float,
    write: Function = lambda nodes, node, value, change: nodes[2 * node + 1] + nodes[2 * node + 2],
    first: Function = lambda nodes, leaf: len(nodes) // 2 + leaf,
    parent: Function = lambda node: (node - 1) // 2,
    put: Function = lambda old, value: value,
    goes_on: Function = lambda node: node > 0,
) -> list[float]:
    """Works on a copy."""
    nodes, node = list(nodes), first(nodes, leaf)
    change = value - nodes[node]
    nodes[node] = put(nodes[node], value)
    while goes_on(node):
        node = parent(node)
        nodes[node] = write(nodes, node, value, change)
    return nodes


def in_float32(nodes: Sequence[float], node: int, value: float, change: float) -> float:
    return float(np.float32(nodes[2 * node + 1]) + np.float32(nodes[2 * node + 2]))


def on_its_own_nodes(answer: Any, nodes: Sequence[float], leaf: int, value: float) -> Any:
    """The nodes after an answer that changes a copy in place, or that returns them."""
    own = CountedNodes(nodes)
    result = answer(own, leaf, value)
    return own if result is None else result  # `changes_them_well` reports a missing return


def where_the_sum_is_wrong(case: Case, got: Any, results: Any) -> str:
    right = set_leaf(**case)
    node = next(k for k in range(len(right)) if not math.isclose(right[k], got[k], rel_tol=1e-12))
    should, does = told_apart(right[node], got[node])
    return (
        f"after leaf {case['leaf']} of {shown(leaves_of(case['nodes']))} is set to "
        f"{shown(case['value'])}, node {node} should be {should}, yours is {does}."
    )


def changes_them_well(answer: Any) -> str | None:
    """What else is wrong with a function that finds the right sums, or None."""
    nodes = CountedNodes(root_at_0(LARGE))
    result = answer(nodes, 500, 30.0)
    if nodes == root_at_0(LARGE):
        return (
            "you return a changed copy, and `nodes` is as it was. Change `nodes` itself: copying a "
            "million nodes takes longer than walking along the strips."
        )
    if nodes.reads > 60:
        return (
            f"the sums are right, but your function read {nodes.reads} nodes of a tree with 1024 "
            "leaves. Only the ten sums above the leaf have changed: walk up."
        )
    if result is None:
        return (
            "`nodes` is changed correctly, but your function returns None: return `nodes` as well."
        )
    return None


CHANGES = [
    *((LEAVES, leaf, value) for leaf, value in enumerate([5, 0, 10, 2.5, 1, 9, 4, 7])),
    (LARGE[:16], 13, 20.0), (LARGE[:64], 22, 0.5), ([0.0, 0.0, 4.0, 0.0], 2, 0.0),
    ([1.0, 1e17], 1, 2.0), ([7.0], 0, 3.0), ([2.0, 5.0], 0, 4.0),
    ([0.1, 0.7, 1e-7, 0.3], 1, 1 / 3), ([0.1, 0.7, 1e-7, 0.3], 2, 1e-9),
]  # fmt: skip

function_exercise(
    "01.3", set_leaf, "nodes leaf value",
    [(root_at_0(leaves), *change) for leaves, *change in CHANGES], [
    (dict(goes_on=lambda node: False),
     "the leaf has its new value; the sums above it are still the old ones."),
    (dict(write=lambda nodes, node, value, change: nodes[node] + change),
     dict(write=lambda nodes, node, value, change: nodes[node] + change,
          put=lambda old, value: old + (value - old)),
     "Mistake 5: you add the change, and the sums keep every rounding error. Add the two children "
     "instead."),
    (dict(goes_on=lambda node: node > 2), "the root is node 0, and it needs its new sum as well."),
    (dict(goes_on=lambda node: node > 1),
     "the root is node 0: from its left child your walk does not go on to it."),
    (dict(goes_on=lambda node: node >= 0),
     "one step too far: above the root there is nothing, and nodes[-1] is the last leaf."),
    (dict(parent=lambda node: node // 2),
     "with the root at index 0, the parent of node i is (i - 1) // 2."),
    (dict(first=lambda nodes, leaf: len(nodes) // 2 + 1 + leaf),
     "one node too far: with N leaves, leaf 0 is node N - 1."),
    (dict(first=lambda nodes, leaf: leaf),
     "you change node number `leaf`; leaf [k] is node N - 1 + k."),
    (dict(put=lambda old, value: old + value),
     "you add to the leaf; `value` is its new value."),
    (dict(write=lambda nodes, node, value, change: nodes[2 * node] + nodes[2 * node + 1]),
     "with the root at index 0, the children of node i are 2i + 1 and 2i + 2."),
    (dict(write=lambda nodes, node, value, change: max(nodes[2 * node + 1], nodes[2 * node + 2])),
     "a node holds the sum of its children, not the larger of them."),
    (dict(write=lambda nodes, node, value, change: nodes[node] + value),
     "you add the new value to the sums, and the old one is still in them."),
    (dict(write=lambda nodes, node, value, change: value),
     "you write the value of the leaf into all nodes above it; they are sums of two children."),
    (dict(write=in_float32),
     dict(write=in_float32, put=lambda old, value: float(np.float32(value))),
     "the sums are rounded to float32: Python's own floats, float64, keep twice as many digits."),
    (dict(first=lambda nodes, leaf: 7 + leaf),
     "it is right for 8 leaves, but not for other sizes: the first leaf is node len(nodes) // 2."),
], calls=on_its_own_nodes,
   exact=True,
   otherwise=where_the_sum_is_wrong,
   after=changes_them_well)  # fmt: skip


# 01.4: the sum of all leaves before a leaf --------------------------------------------------------


def sum_before(nodes: Sequence[float], leaf: int) -> float:
    first = len(nodes) // 2
    return float(sum(nodes[first : first + leaf]))


def sum_after(nodes: Sequence[float], leaf: int) -> float:
    return nodes[1] - sum_before(nodes, leaf + 1)


def climbed(
    adds: Function, start: Function = lambda nodes, leaf: len(nodes) // 2 + leaf
) -> Function:
    """A walk up the tree that adds up `adds(nodes, node)`."""

    def wrong(nodes, leaf):
        node, before = start(nodes, leaf), 0.0
        while node > 1:
            before += adds(nodes, node)
            node //= 2
        return before

    return wrong


def left_sibling(nodes: Sequence[float], node: int) -> float:
    return nodes[node - 1] if node % 2 == 1 else 0.0


def which_sum_it_should_be(case: Case, got: Any, results: Any) -> str:
    return (
        f"for leaf {case['leaf']} of {shown(leaves_of(case['nodes']))} the sum before it is "
        f"{shown(sum_before(**case))}, yours is {shown(got)}."
    )


PLACES = [
    *((LEAVES, leaf) for leaf in range(8)),
    ([7.0], 0), ([2.0, 5.0], 1), (LARGE[:16], 13), (LARGE[:64], 22), (LARGE, 1023),
    ([0.125, 1e-4, 3e-4, 0.5], 2), ([0.125, 1e-4, 3e-4, 0.5], 3),
]  # fmt: skip

function_exercise(
    "01.4", climbed(left_sibling), "nodes leaf",
    [(sum_nodes(leaves), leaf) for leaves, leaf in PLACES], [
    (lambda nodes, leaf: sum_before(nodes, leaf + 1),
     "you count the leaf itself: the sum ends *before* it."),
    (sum_after,
     "that is the sum of all leaves after the leaf. At a right child, add its left sibling, not "
     "the other way round."),
    (lambda nodes, leaf: sum_after(nodes, leaf - 1),
     "that is the sum of the leaf and of all leaves after it."),
    (lambda nodes, leaf: nodes[len(nodes) // 2 + leaf],
     "that is the leaf alone; add up all leaves before it."),
    (lambda nodes, leaf: nodes[1], "that is the sum of all leaves."),
    (lambda nodes, leaf: sum(nodes[:leaf]),
     lambda nodes, leaf: sum(nodes[1 : leaf + 1]),
     lambda nodes, leaf: sum(nodes[1:leaf]),
     "you add up the first numbers of the list, which are the sums: the leaves begin in its "
     "middle, at len(nodes) // 2."),
    (climbed(left_sibling, start=lambda nodes, leaf: leaf),
     "the walk begins at the leaf's node, len(nodes) // 2 + leaf, not at `leaf`."),
    (climbed(lambda nodes, node: nodes[node - 1]),
     climbed(lambda nodes, node: nodes[node - node % 2]),
     "you add a node at every step: only a *right* child has a sibling before it."),
    (climbed(lambda nodes, node: nodes[node] if node % 2 else 0.0),
     "you add the right child itself; what comes before it is its left sibling."),
    (climbed(lambda nodes, node: nodes[node]),
     "you add the nodes that you visit; what comes before a right child is its left sibling."),
    (lambda nodes, leaf: left_sibling(nodes, len(nodes) // 2 + leaf),
     "after the first step up, the walk goes on to the root."),
    (lambda nodes, leaf: sum_before(nodes[:16], leaf),
     lambda nodes, leaf: sum(nodes[8 : 8 + leaf]),
     "it is right for 8 leaves, but not for other sizes: the leaves begin at len(nodes) // 2."),
], give=counted, otherwise=which_sum_it_should_be,
   after=functools.partial(
       reads_few, most=40,
       cases=cases_of("nodes leaf", [(sum_nodes(LARGE), leaf) for leaf in (512, 1023)]),
       sentence="the sums are right, but your function read {} nodes of a tree with 1024 leaves. "
                "Ten are enough: walk up, and add whole subtrees on the way."),
   calls=functools.partial(that_ends, hint=(
       "your walk never ends: does each step go to another node, and does it stop at the root, "
       "node 1?")))  # fmt: skip


# 01.5: the size of a tree -------------------------------------------------------------------------


CHECKERS["01.5"] = ValueExercise(2 * 2**20 * 8, [
    (2 * 1_000_000 * 8, (2 * 1_000_000 - 1) * 8,
     "a million is not a power of two: what is it padded to?"),
    (1_000_000 * 8, "these are the leaves alone, not padded, without the sums above them."),
    (2**20 * 8,
     "that is half: the sums above the leaves need as much again, and each node has 8 bytes."),
    (2 * 2**20, "that is the number of nodes; each is a float64 of 8 bytes."),
    (2**20, "that is the number of leaves; there are sums above them, and each node has 8 bytes."),
    ((2 * 2**20 - 1) * 8, "nearly: the array has an index 0, too, though no node uses it."),
    (4 * 2**20 * 8, "twice as much as it should be: 2**20 is more than a million already."),
    (2 * 2**20 * 64, "those are bits; a byte has eight."),
    (16.777216, 16.8, 17, "that is in megabytes; the question asks for bytes."),
    (16, "that is in MiB, 2**20 bytes; the question asks for bytes."),
    (16384, "that is in KiB, 1024 bytes; the question asks for bytes."),
], lambda size: "bytes = 8 × nodes, nodes = 2 × leaves, leaves = a power of two.")  # fmt: skip
