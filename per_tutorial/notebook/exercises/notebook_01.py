"""Notebook 01, the segment tree: a walk, prefix sums, stratified draws, memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.notebook.exercises.answers import Case, call, cases_of, number, numbers, shown
from per_tutorial.notebook.exercises.checking import checks
from per_tutorial.notebook.exercises.comparing import Function, compare

LEAVES = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]


def sum_nodes(leaves: Sequence[float]) -> list[float]:
    nodes = [0.0] * len(leaves) + list(leaves)
    for node in reversed(range(1, len(leaves))):
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
    return nodes


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


# 01.2: the sum of all leaves before a leaf -------------------------------------------------------


class CountedNodes(Sequence[float]):
    """Nodes that count how often they are read."""

    def __init__(self, nodes: Sequence[float]) -> None:
        self.nodes = nodes
        self.reads = 0

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, place: Any) -> Any:
        found = self.nodes[place]
        self.reads += len(found) if isinstance(place, slice) else 1
        return found


def sum_before(nodes: Sequence[float], leaf: int) -> float:
    first = len(nodes) // 2
    return float(sum(nodes[first : first + leaf]))


def sum_after(nodes: Sequence[float], leaf: int) -> float:
    return nodes[1] - sum_before(nodes, leaf + 1)


def climbed(
    adds: Function, start: Function = lambda nodes, leaf: len(nodes) // 2 + leaf
) -> Function:
    """A walk up the tree that adds what `adds(nodes, node)` says."""

    def wrong(nodes, leaf):
        node, before = start(nodes, leaf), 0.0
        while node > 1:
            before += adds(nodes, node)
            node //= 2
        return before

    return wrong


def left_sibling(nodes: Sequence[float], node: int) -> float:
    return nodes[node - 1] if node % 2 == 1 else 0.0


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


@checks("01.2")
def check_sum_before(answer: object) -> str | None:
    large = np.random.default_rng(2).integers(1, 10, 1024).astype(float).tolist()
    places = [(LEAVES, leaf) for leaf in range(8)]
    places += [([7.0], 0), ([2.0, 5.0], 1), (large[:16], 13), (large[:64], 22), (large, 1023)]
    cases = cases_of("nodes leaf", [(sum_nodes(leaves), leaf) for leaves, leaf in places])

    def otherwise(case: Case, got: Any) -> str:
        leaves = case["nodes"][len(case["nodes"]) // 2 :]
        return (
            f"for leaf {case['leaf']} of {shown(leaves)} the sum before it is "
            f"{shown(sum_before(**case))}, yours is {shown(got)}."
        )

    if mistake := compare(answer, sum_before, cases, SUM_MISTAKES, otherwise=otherwise):
        return mistake
    counted = CountedNodes(sum_nodes(large))
    call(answer, {"nodes": counted, "leaf": 1023})
    if counted.reads > 40:
        return (
            f"the sums are right, but it read {counted.reads} nodes of a tree of 1024 leaves. Ten "
            "are enough: walk up, and add whole subtrees on the way."
        )
    return None


# 01.3: one prefix sum in each range --------------------------------------------------------------

Array = NDArray[np.float64]


def stratified_prefixes(total: float, uniforms: Array) -> Array:
    batch = len(uniforms)
    return (np.arange(batch) + uniforms) / batch * total


def with_places(place: Function) -> Function:
    """Prefix sums whose draw number k lies at `place(k, u)` ranges from the left."""

    def wrong(total, uniforms):
        batch = len(uniforms)
        return place(np.arange(batch), uniforms) * total / batch

    return wrong


UNSCALED = "these are in [0, 1): stretch them to [0, total)."
ALWAYS_THE_SAME = (
    "every batch would get the same prefix sums; where each lies in its range is up to its random "
    "number."
)

STRATIFIED_MISTAKES = [
    (lambda total, u: total * u,
     "these are independent draws from all of [0, total); but draw number k has a range of its "
     "own."),
    (lambda total, u: np.sort(total * u),
     "these are independent draws, sorted: two of them may fall into the same range."),
    (lambda total, u: stratified_prefixes(1.0, u), UNSCALED),
    *((with_places(lambda k, u, at=at: k + at), ALWAYS_THE_SAME) for at in (0.5, 0, 1)),
    (with_places(lambda k, u: k + 1 + u),
     "every range is one too far to the right, and the last lies beyond the total: k starts at 0."),
    (with_places(lambda k, u: k - 1 + u), "every range is one too far to the left: k starts at 0."),
    (with_places(lambda k, u: u),
     "all of them lie in the first range: draw number k belongs into range number k."),
    (with_places(lambda k, u: k * u),
     "k says which range it is: add it to the random number, don't multiply."),
    (with_places(lambda k, u: k + u[0]), "all draws share one random number; each has its own."),
    (with_places(lambda k, u: k + 1 - u),
     "each lies in its range, but counted from the right end: with u = 0 it would be the end "
     "itself, which belongs to the next."),
    (with_places(lambda k, u: len(u) - 1 - k + u),
     "the ranges are in the wrong order: draw 0 belongs into the first."),
    (with_places(lambda k, u: (k + u)[::-1]),
     "the prefix sums are in the wrong order: draw 0 comes first."),
    (with_places(lambda k, u: k + np.sort(u)),
     "each random number belongs to its own draw: don't sort."),
    (lambda total, u: (np.arange(len(u)) + u) * total,
     "far beyond the total: a range is total / batch wide."),
    (lambda total, u: np.arange(len(u)) + u, "a range is total / batch wide, not 1."),
    (lambda total, u: np.arange(len(u)) * total / len(u) + u,
     "the ranges begin where they should, but each is total / batch wide: stretch the random "
     "number, too."),
    (lambda total, u: np.arange(len(u)) * total / len(u) + u * total,
     "the random number reaches over the whole line: it moves a draw within its range alone, "
     "which is total / batch wide."),
    (lambda total, u: np.arange(len(u)) + u * total / len(u),
     "range number k begins at k * total / batch."),
]  # fmt: skip


@checks("01.3")
def check_stratified(answer: object) -> str | None:
    batches = [
        (8.0, [0.5, 0.25, 0.75, 0.0]),
        (31.0, [0.5, 0.25, 0.75, 0.0]),
        (31.0, [0.9, 0.3, 0.65, 0.1, 0.8]),
        (2.5, [0.7, 0.2]),
        (5.0, [0.375]),
    ]
    cases = cases_of("total uniforms", [(total, np.array(u)) for total, u in batches])

    def otherwise(case: Case, got: Array) -> str | None:
        uniforms = case["uniforms"]
        edges = np.linspace(0.0, case["total"], len(uniforms) + 1)
        if not np.all((edges[:-1] <= got) & (got < edges[1:])):
            return None
        return (
            f"each lies in its range, but not where the random numbers {shown(uniforms)} say: "
            f"{shown(got)}."
        )

    return compare(answer, stratified_prefixes, cases, STRATIFIED_MISTAKES, otherwise=otherwise)


# 01.4: the size of a tree ------------------------------------------------------------------------

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


@checks("01.4")
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
