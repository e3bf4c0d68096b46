"""Trees for the exercises of notebook 01, and nodes that watch the reader.

Nodes are a list of sums, whose root is at place 1 as in the notebook, or at place 0.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from per_tutorial.notebook.checking.answers import Hint

LEAVES = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
LARGE = np.random.default_rng(2).integers(1, 10, 1024).astype(float).tolist()


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


def sum_nodes(leaves: Sequence[float]) -> list[float]:
    """Root at place 1."""
    nodes = [0.0] * len(leaves) + list(leaves)
    for node in reversed(range(1, len(leaves))):
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
    return nodes


def root_at_0(leaves: Sequence[float]) -> list[float]:
    return sum_nodes(leaves)[1:]


def leaves_of(nodes: Sequence[float]) -> list[float]:
    return list(nodes)[len(nodes) // 2 :]
