"""Notebook 01, the segment tree: a walk, `find` and `set` from memory, prefix sums, memory."""

import math
from collections.abc import Sequence
from typing import Any

from per_tutorial.notebook.checking import checks
from per_tutorial.notebook.checking.answers import (
    Case,
    call,
    cases_of,
    number,
    numbers,
    shown,
)
from per_tutorial.notebook.checking.comparing import compare
from per_tutorial.notebook.checking.trees import (
    LARGE,
    LEAVES,
    CountedNodes,
    climb,
    climbed,
    counted,
    leaves_of,
    left_sibling,
    on_its_own_nodes,
    root_at_0,
    sum_after,
    sum_before,
    sum_nodes,
    walk_down,
)

# 01.1: the nodes that `find(23)` visits ----------------------------------------------------------

PATH = [1, 3, 7, 14]

WRONG_PATHS = [
    ([1, 3, 6, 13],
     "at node 3 the prefix equals the left sum, 14. A leaf's strip does not hold its right end: "
     "go left only if the prefix is *less* than the left sum."),
    ([1, 3, 7, 15],
     "you are right as far as node 7, but from there? Its left sum is 2, and after both steps to "
     "the right you subtract the left sum from the prefix."),
    ([1, 3, 7], "you are right so far, but node 7 is no leaf: go on until you stand on one."),
    ([1, 3, 7, 6], "leaf [6] it is, but as a node it has another number: leaf [k] is node 8 + k."),
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
     "the walk looks at left children to compare, but it only visits the nodes that it stands on."),
]  # fmt: skip


@checks("01.1")
def check_path(answer: object) -> str | None:
    array = numbers(answer)
    if array.ndim != 1:
        return "the answer is a list, with the numbers of the nodes on the way: [1, …]."
    path = array.tolist()
    if path == PATH:
        return None
    for wrong, sentence in WRONG_PATHS:
        if path == wrong:
            return sentence
    if path[:1] != [1]:
        return "the walk starts at the root, and the root is node 1."
    for step, node in enumerate(PATH[1:], start=1):
        if path[step : step + 1] != [node]:
            parent = PATH[step - 1]
            return (
                f"you leave the path at node {parent}: compare what is left of the prefix there "
                f"with the sum of its left child, node {2 * parent}."
            )
    return "the walk is over when it stands on a leaf; four nodes are enough."


# 01.2: `find` in a tree whose root is node 0 -----------------------------------------------------

find = walk_down()


def find_of_section_6(nodes: Sequence[float], prefix: float) -> int:
    """The notebook's own, for a root at place 1."""
    leaves, node = len(nodes) // 2, 1
    while node < leaves:
        if prefix < nodes[2 * node] or nodes[2 * node + 1] == 0.0:
            node = 2 * node
        else:
            prefix -= nodes[2 * node]
            node = 2 * node + 1
    return node - leaves


def shorter_comparison(prefix: float, left: float, right: float) -> bool:
    return prefix < left


NUMBERING = (
    "that is the numbering with the root at place 1. Here it is at place 0, and the children of "
    "node i are 2i + 1 and 2i + 2."
)
FIRST_LEAF = "it is off by one or more: with N leaves, the first leaf is node N - 1."

FIND_MISTAKES = [
    (walk_down(shorter_comparison),
     "nearly: after rounding, the prefix can be as large as all that is left. Then your walk ends "
     "in an empty leaf: never go right where nothing is."),
    (walk_down(lambda prefix, left, right: prefix <= left or right == 0),
     "Mistake 1: with `<=` a dart at the left end of a strip goes to the neighbour, even to an "
     "empty one."),
    *((walk_down(goes_left, lambda prefix, left, right: prefix),
       "when you go right, the prefix still counts from the start of the parent: subtract the "
       "left sum.")
      for goes_left in (lambda prefix, left, right: prefix < left or right == 0,
                        shorter_comparison)),
    *((walk_down(goes_left, lambda prefix, left, right: prefix - right),
       "when you go right, what lies before you is the *left* sum: subtract that one.")
      for goes_left in (lambda prefix, left, right: prefix < left or right == 0,
                        shorter_comparison)),
    *((walk_down(goes_left), "compare the prefix with the sum of the *left* child.")
      for goes_left in (lambda prefix, left, right: prefix < right,
                        lambda prefix, left, right: prefix < right or right == 0,
                        lambda prefix, left, right: prefix < right or left == 0)),
    (walk_down(lambda prefix, left, right: prefix >= left),
     "left and right are exchanged: a prefix below the left sum lies on the left."),
    (walk_down(lambda prefix, left, right: prefix < left or left == 0),
     "the guard looks at the wrong child: it is the right one that must not be empty."),
    (walk_down(lambda prefix, left, right: left == right or prefix < left or right == 0),
     "Mistake 3: equal children are no special case."),
    *((walk_down(goes_left), "you follow the larger child; but the prefix says where to go.")
      for goes_left in (lambda prefix, left, right: left >= right,
                        lambda prefix, left, right: left > right)),
    (walk_down(result=lambda node, nodes: node),
     "that is the leaf's node; the number of the leaf is asked for, from 0."),
    (walk_down(result=lambda node, nodes: node - len(nodes) // 2 - 1), FIRST_LEAF),
    (walk_down(result=lambda node, nodes: node - len(nodes) // 2 + 1), FIRST_LEAF),
    (walk_down(result=lambda node, nodes: nodes[node]),
     "that is the priority of the leaf; its number is asked for, from 0."),
    (walk_down(result=lambda node, nodes: node - 7),
     "it is right for 8 leaves, but not for other sizes: the first leaf is node len(nodes) // 2."),
    (find_of_section_6, NUMBERING),
]  # fmt: skip


@checks("01.2")
def check_find(answer: object) -> str | None:
    darts = [(LEAVES, prefix) for prefix in (0.0, 2.9, 3.0, 7.5, 8.0, 13.0, 14.0, 22.5, 23.0, 30.5)]
    darts += [([7.0], 3.0), ([2.0, 5.0], 1.5), ([2.0, 5.0], 2.0), ([1.0, 3.0, 1.0, 3.0], 4.5)]
    darts += [([0.0, 2.0, 1.0, 1.0], 0.0), ([0.0, 0.0, 4.0, 0.0], 0.0), ([3.0, 0.0, 0.0, 2.0], 3.0)]
    last = math.nextafter(1.0, 0.0)
    darts += [([0.3, 0.0, 0.7, 0.0], last), ([0.3, 0.0, 0.0, 0.0, 0.7, 0.0, 0.0, 0.0], last)]
    darts += [(LARGE[:16], 61.0), (LARGE[:64], 200.5), (LARGE, 4000.25)]
    cases = cases_of("nodes prefix", [(root_at_0(leaves), prefix) for leaves, prefix in darts])

    def otherwise(case: Case, got: Any) -> str:
        return (
            f"for a dart at {shown(case['prefix'], 17)} and the leaves "
            f"{shown(leaves_of(case['nodes']))} it should be leaf {find(**case)}, yours is "
            f"{shown(got)}."
        )

    if mistake := compare(answer, find, cases, FIND_MISTAKES, give=counted, otherwise=otherwise):
        return mistake
    nodes = CountedNodes(root_at_0(LARGE))
    call(answer, {"nodes": nodes, "prefix": 4000.25})
    if nodes.reads > 60:
        return (
            f"the leaf is right, but it read {nodes.reads} nodes of a tree of 1024 leaves. Walk "
            "down from the root: ten comparisons are enough."
        )
    return None


# 01.3: `set` in the same tree --------------------------------------------------------------------

set_leaf = climb()

SET_MISTAKES = [
    (climb(goes_on=lambda node: False), "the leaf has its value; the sums above it are still the old."),
    *((climb(lambda nodes, node, value, change: nodes[node] + change, put=put),
       "Mistake 5: you add the change, and the sums keep every rounding error. Add the two children "
       "instead.")
      for put in (lambda old, value: value, lambda old, value: old + (value - old))),
    (climb(goes_on=lambda node: node > 2), "the root is node 0, and it needs its new sum as well."),
    (climb(goes_on=lambda node: node > 1),
     "the root is node 0: from the left side your walk ends before it."),
    (climb(goes_on=lambda node: node >= 0),
     "one step too far: above the root there is nothing, and nodes[-1] is the last leaf."),
    (climb(parent=lambda node: node // 2),
     "with the root at place 0, the parent of node i is (i - 1) // 2."),
    (climb(first=lambda nodes, leaf: len(nodes) // 2 + 1 + leaf),
     "one place too far: with N leaves, leaf 0 is node N - 1."),
    (climb(first=lambda nodes, leaf: leaf),
     "you change node number `leaf`; leaf [k] is node N - 1 + k."),
    (climb(put=lambda old, value: old + value),
     "you add to the leaf; `value` is what the leaf has afterwards."),
    (climb(lambda nodes, node, value, change: nodes[2 * node] + nodes[2 * node + 1]),
     "with the root at place 0, the children of node i are 2i + 1 and 2i + 2."),
    (climb(lambda nodes, node, value, change: max(nodes[2 * node + 1], nodes[2 * node + 2])),
     "a node holds the sum of its children, not the larger of them."),
    (climb(lambda nodes, node, value, change: nodes[node] + value),
     "you add the new value to the sums, and the old one is still in them."),
    (climb(lambda nodes, node, value, change: value),
     "you write the value of the leaf into all nodes above it; they are sums of two children."),
    (climb(first=lambda nodes, leaf: 7 + leaf),
     "it is right for 8 leaves, but not for other sizes: the first leaf is node len(nodes) // 2."),
]  # fmt: skip


@checks("01.3")
def check_set(answer: Any) -> str | None:
    changes = [(LEAVES, leaf, value) for leaf, value in enumerate([5, 0, 10, 2.5, 1, 9, 4, 7])]
    changes += [(LARGE[:16], 13, 20.0), (LARGE[:64], 22, 0.5), ([0.0, 0.0, 4.0, 0.0], 2, 0.0)]
    changes += [([1.0, 1e17], 1, 2.0), ([7.0], 0, 3.0), ([2.0, 5.0], 0, 4.0)]
    cases = cases_of("nodes leaf value", [(root_at_0(leaves), *rest) for leaves, *rest in changes])

    def otherwise(case: Case, got: Any) -> str:
        right = set_leaf(**case)
        node = next(k for k in range(len(right)) if not math.isclose(right[k], got[k]))
        return (
            f"after leaf {case['leaf']} of {shown(leaves_of(case['nodes']))} is set to "
            f"{shown(case['value'])}, node {node} should be {shown(right[node])}, yours is "
            f"{shown(got[node])}."
        )

    if mistake := compare(
        on_its_own_nodes(answer), set_leaf, cases, SET_MISTAKES, otherwise=otherwise
    ):
        return mistake
    nodes = CountedNodes(root_at_0(LARGE))
    answer(nodes, 500, 30.0)
    if nodes == root_at_0(LARGE):
        return (
            "you return a changed copy, and `nodes` is as it was. Change `nodes` itself: to copy a "
            "million nodes takes longer than to walk along the strips."
        )
    if nodes.reads > 60:
        return (
            f"the sums are right, but it read {nodes.reads} nodes of a tree of 1024 leaves. Only "
            "the ten sums above the leaf have changed: walk up."
        )
    return None


# 01.4: the sum of all leaves before a leaf -------------------------------------------------------

FIRST_NODES = (
    "you add up the first places of the list, which hold the sums: the leaves begin in its "
    "middle, at len(nodes) // 2."
)

SUM_MISTAKES = [
    (lambda nodes, leaf: sum_before(nodes, leaf + 1),
     "you count the leaf itself: the sum ends *before* it."),
    (sum_after,
     "that is the sum of what lies to the right of the leaf. Standing on a right child, add its "
     "left sibling, not the other way round."),
    (lambda nodes, leaf: sum_after(nodes, leaf - 1),
     "that is the sum of the leaf and of what lies to its right."),
    (lambda nodes, leaf: nodes[len(nodes) // 2 + leaf],
     "that is the leaf alone; add up all leaves before it."),
    (lambda nodes, leaf: nodes[1], "that is the sum of all leaves."),
    (lambda nodes, leaf: sum(nodes[:leaf]), FIRST_NODES),
    (lambda nodes, leaf: sum(nodes[1 : leaf + 1]), FIRST_NODES),
    (lambda nodes, leaf: sum(nodes[1:leaf]), FIRST_NODES),
    (climbed(left_sibling, start=lambda nodes, leaf: leaf),
     "the walk begins at the leaf's node, len(nodes) // 2 + leaf, not at `leaf`."),
    (climbed(lambda nodes, node: nodes[node - 1]),
     "you add a node at every step: only where you stand on a *right* child does its sibling "
     "come before."),
    (climbed(lambda nodes, node: nodes[node - node % 2]),
     "you add a node at every step: only where you stand on a *right* child does its sibling "
     "come before."),
    (climbed(lambda nodes, node: nodes[node] if node % 2 else 0.0),
     "you add the right child that you stand on; what comes before it is its left sibling."),
    (climbed(lambda nodes, node: nodes[node]),
     "you add the nodes that you stand on; what comes before a right child is its left sibling."),
    (lambda nodes, leaf: left_sibling(nodes, len(nodes) // 2 + leaf),
     "after the first step up, the walk goes on to the root."),
    (lambda nodes, leaf: sum_before(nodes[:16], leaf),
     "it is right for 8 leaves, but not for other sizes: the leaves begin at len(nodes) // 2."),
    (lambda nodes, leaf: sum(nodes[8 : 8 + leaf]),
     "it is right for 8 leaves, but not for other sizes: the leaves begin at len(nodes) // 2."),
]  # fmt: skip


@checks("01.4")
def check_sum_before(answer: object) -> str | None:
    places = [(LEAVES, leaf) for leaf in range(8)]
    places += [([7.0], 0), ([2.0, 5.0], 1), (LARGE[:16], 13), (LARGE[:64], 22), (LARGE, 1023)]
    cases = cases_of("nodes leaf", [(sum_nodes(leaves), leaf) for leaves, leaf in places])

    def otherwise(case: Case, got: Any) -> str:
        leaves = case["nodes"][len(case["nodes"]) // 2 :]
        return (
            f"for leaf {case['leaf']} of {shown(leaves)} the sum before it is "
            f"{shown(sum_before(**case))}, yours is {shown(got)}."
        )

    if mistake := compare(
        answer, sum_before, cases, SUM_MISTAKES, give=counted, otherwise=otherwise
    ):
        return mistake
    for leaf in (512, 1023):  # far from both ends, and at one of them
        nodes = CountedNodes(sum_nodes(LARGE))
        call(answer, {"nodes": nodes, "leaf": leaf})
        if nodes.reads > 40:
            return (
                f"the sums are right, but it read {nodes.reads} nodes of a tree of 1024 leaves. Ten "
                "are enough: walk up, and add whole subtrees on the way."
            )
    return None


# 01.5: the size of a tree ------------------------------------------------------------------------

NO_POWER_OF_TWO = "a million is no power of two: what is it padded to?"

WRONG_SIZES = {
    2 * 1_000_000 * 8: NO_POWER_OF_TWO,
    (2 * 1_000_000 - 1) * 8: NO_POWER_OF_TWO,
    1_000_000 * 8: "these are the leaves alone, not padded, without the sums above them.",
    2**20
    * 8: "half of it: the sums above the leaves need as much again, and each node has 8 bytes.",
    2 * 2**20: "that is the number of nodes; each is a float64 of 8 bytes.",
    2**20: "that is the number of leaves; there are sums above them, and each node has 8 bytes.",
    (2 * 2**20 - 1) * 8: "nearly: the array has a place 0, too, though no node uses it.",
    4 * 2**20 * 8: "twice too much: 2**20 is more than a million already.",
    2 * 2**20 * 64: "those are bits; a byte has eight.",
    16: "that is in MiB, 2**20 bytes; the question asks for bytes.",
    16384: "that is in KiB, 1024 bytes; the question asks for bytes.",
}


@checks("01.5")
def check_bytes(answer: object) -> str | None:
    size = number(answer)
    if size == 2 * 2**20 * 8:
        return None
    if size in (16.777216, 16.8, 17):
        return "that is in megabytes; the question asks for bytes."
    return WRONG_SIZES.get(
        int(size) if size.is_integer() else -1,
        "bytes = 8 × nodes, nodes = 2 × leaves, leaves = a power of two.",
    )
