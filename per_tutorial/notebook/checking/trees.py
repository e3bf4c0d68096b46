"""Trees for the exercises of notebook 01: right ones, wrong ones, and nodes that watch the reader.

Nodes are a list of sums, whose root is at place 1 as in the notebook, or at place 0.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from per_tutorial.notebook.checking.answers import Hint

Function = Callable[..., Any]

LEAVES = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
LARGE = np.random.default_rng(2).integers(1, 10, 1024).astype(float).tolist()


def sum_nodes(leaves: Sequence[float]) -> list[float]:
    nodes = [0.0] * len(leaves) + list(leaves)
    for node in reversed(range(1, len(leaves))):
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
    return nodes


class CountedNodes(list):
    """Nodes that count how often they are read, and end a walk that goes in circles."""

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


def root_at_0(leaves: Sequence[float]) -> list[float]:
    return sum_nodes(leaves)[1:]


def leaves_of(nodes: Sequence[float]) -> list[float]:
    return list(nodes)[len(nodes) // 2 :]


def walk_down(
    goes_left: Function = lambda prefix, left, right: prefix < left or right == 0,
    rest: Function = lambda prefix, left, right: prefix - left,
    result: Function = lambda node, nodes: node - len(nodes) // 2,
) -> Function:
    """A `find` that may go the wrong way, or keep the wrong rest of the prefix."""

    def walk(nodes, prefix):
        node = 0
        while node < len(nodes) // 2:
            left, right = nodes[2 * node + 1], nodes[2 * node + 2]
            if goes_left(prefix, left, right):
                node = 2 * node + 1
            else:
                prefix = rest(prefix, left, right)
                node = 2 * node + 2
        return result(node, nodes)

    return walk


def climb(
    write: Function = lambda nodes, node, value, change: nodes[2 * node + 1] + nodes[2 * node + 2],
    *,
    first: Function = lambda nodes, leaf: len(nodes) // 2 + leaf,
    parent: Function = lambda node: (node - 1) // 2,
    put: Function = lambda old, value: value,
    goes_on: Function = lambda node: node > 0,
) -> Function:
    """A `set_leaf` that may start, climb or add wrongly. It works on a copy."""

    def changed(nodes, leaf, value):
        nodes, node = list(nodes), first(nodes, leaf)
        change = value - nodes[node]
        nodes[node] = put(nodes[node], value)
        while goes_on(node):
            node = parent(node)
            nodes[node] = write(nodes, node, value, change)
        return nodes

    return changed


def on_its_own_nodes(answer: Any) -> Any:
    """An answer that changes nodes in place, as one that leaves its arguments alone."""
    if not callable(answer):
        return answer

    @functools.wraps(answer)
    def changed(nodes, leaf, value):
        own = CountedNodes(nodes)
        result = answer(own, leaf, value)
        return own if result is None else result  # without `return` it is in place all the same

    return changed


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
