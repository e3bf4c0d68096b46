"""Sum and min trees: draw in proportion to priority in O(log N) (Schaul et al., appendix B.2.1).

A tree is one array `nodes`. Node i has the children 2i and 2i + 1, so its parent is i // 2, and the
leaves, padded to a power of two, fill the second half of the array. A *forest* is such a tree whose
top is cut off: the leaves of R runs are side by side, and run r's tree is the subtree rooted at
node R + r (R padded to a power of two as well). A single tree is the forest of one run.
"""

from __future__ import annotations  # so that `help` shows ArrayLike as a name

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from per_tutorial.common.arguments import by_run, float_array, indices_below, whole_number
from per_tutorial.replay.compiling import njit_cached


@njit_cached
def set_leaves(nodes, first_root, indices, values, minima=False):
    """Write leaves (runs, batch), then recompute all their ancestors, level by level.

    An ancestor is the sum of its two children, or with `minima` the smaller one. The last of
    duplicate indices wins; negative indices are skipped.

    Adding the change of a leaf to each ancestor would read less, but every addition rounds, and
    the rounding errors of a million updates stay in the sums (notebook 01 shows it). The nodes of
    one level do not depend on each other, so the processor fetches them at the same time. Each sum
    is final before the level above is computed: common ancestors need no special care.
    """
    leaves = len(nodes) // (2 * first_root)  # per run
    runs, batch = indices.shape
    changed = np.empty(batch, dtype=np.int64)
    for run in range(runs):
        root, count = first_root + run, 0
        for k in range(batch):
            if indices[run, k] >= 0:
                changed[count] = root * leaves + indices[run, k]
                nodes[changed[count]] = values[run, k]
                count += 1
        width = leaves  # nodes in the level of `changed`
        while width > 1:
            width //= 2
            if width < count:  # fewer nodes than changes: compute each of them once
                count = width
                for k in range(count):
                    changed[k] = 2 * (root * width + k)
            for k in range(count):
                node = changed[k] // 2
                left, right = nodes[2 * node], nodes[2 * node + 1]
                nodes[node] = min(left, right) if minima else left + right
                changed[k] = node


@njit_cached
def find_leaves(nodes, first_root, prefixes, indices):
    """Walk down to the leaves that hold prefix sums (runs, batch); write them into `indices`.

    A walk goes to the child whose range holds the rest of its prefix. Invariant: the sum of the
    node is positive. `rest < left` implies left > 0, and we go right only if right > 0, so an empty
    leaf is never reached, even if rounding makes the rest as large as the sum of the node. All
    walks go down together, level by level: see `set_leaves`.
    """
    leaves = len(nodes) // (2 * first_root)
    runs, batch = prefixes.shape
    rest = np.empty(batch)
    for run in range(runs):
        root = first_root + run
        for k in range(batch):
            indices[run, k], rest[k] = root, prefixes[run, k]
        width = 1
        while width < leaves:
            for k in range(batch):
                child = 2 * indices[run, k]
                # `|`, not `or`: both sides are always read, so there is no branch to mispredict.
                if not ((rest[k] < nodes[child]) | (nodes[child + 1] == 0.0)):
                    rest[k] -= nodes[child]
                    child += 1
                indices[run, k] = child
            width *= 2
        for k in range(batch):
            indices[run, k] -= root * leaves


class _SegmentTree:
    """What the two trees share: the array, the shapes, the checks."""

    _empty = 0.0  # the value of a leaf that was never set
    _minima = False  # whether nodes are minima rather than sums

    def __init__(self, capacity: int, runs: int | None = None) -> None:
        self.capacity = whole_number("capacity", capacity)
        self.runs = None if runs is None else whole_number("runs", runs)
        self.first_root = 1 << ((self.runs or 1) - 1).bit_length()  # a power of two
        self.leaves = 1 << (self.capacity - 1).bit_length()  # per run
        self.nodes = np.full(2 * self.first_root * self.leaves, self._empty, dtype=np.float64)

    def set(self, indices: ArrayLike, values: ArrayLike) -> None:
        """Set leaves; the last of duplicate indices wins. A single value is written to all.

        Raises:
            IndexError: an index is outside [0, capacity).
            ValueError: a value is negative, NaN, infinite or so large that sums could overflow, or
                ``values`` do not broadcast to the shape of ``indices``. Nothing is written then.
        """
        leaves, numbers = indices_below(self.capacity, indices), float_array("values", values)
        limit = np.finfo(np.float64).max / self.leaves  # the sum of all leaves must not overflow
        wrong = ~((numbers >= 0) & (numbers <= limit))
        if wrong.any():
            raise ValueError(
                f"values: must be finite, at least 0 and at most {limit:.3g}, "
                f"got {numbers[wrong].flat[0]}"
            )
        try:
            numbers = np.broadcast_to(numbers, leaves.shape)
        except ValueError:
            raise ValueError(
                f"values: must have the shape of indices {leaves.shape}, got {numbers.shape}"
            ) from None
        rows = by_run("indices", leaves, self.runs), by_run("values", numbers, self.runs)
        set_leaves(self.nodes, self.first_root, *rows, self._minima)

    def get(self, indices: ArrayLike) -> Any:
        """The values of leaves, in the shape of ``indices``. Raises IndexError if out of range."""
        leaves = indices_below(self.capacity, indices)
        rows = by_run("indices", leaves, self.runs)
        roots = self.first_root + np.arange(len(rows))[:, None]
        values = self.nodes[roots * self.leaves + rows].reshape(leaves.shape)
        return float(values) if leaves.shape == () else values

    def _root_values(self) -> Any:
        if self.runs is None:
            return float(self.nodes[1])
        return self.nodes[self.first_root : self.first_root + self.runs].copy()


class SumTree(_SegmentTree):
    """Leaves with values >= 0; finds the leaf at a given prefix sum in O(log N) (notebook 01).

    Args:
        capacity: number of leaves, any integer >= 1.
        runs: None for a single tree, whose methods take arrays of any shape; R for a forest of R
            trees, whose methods take arrays of shape (R, batch), row r for tree r.

    Example:
        >>> from per_tutorial import SumTree
        >>> tree = SumTree(4)
        >>> tree.set([0, 1, 2, 3], [3, 1, 4, 2])
        >>> float(tree.total)
        10.0
        >>> tree.find([2.9, 3.0, 7.9, 8.0]).tolist()  # leaf 1 has the range [3, 4)
        [0, 1, 2, 3]
    """

    @property
    def total(self) -> Any:
        """The sum of all leaves: a float, or (runs,) for a forest."""
        return self._root_values()

    def find(self, prefix_sums: ArrayLike) -> Any:
        """The smallest i with prefix_sum < leaf[0] + … + leaf[i], in the shape of ``prefix_sums``.

        A leaf of value zero is never returned. Raises ValueError for a prefix sum outside
        [0, total), and thus for every one if all leaves are zero.
        """
        sums = float_array("prefix_sums", prefix_sums)
        prefixes = by_run("prefix_sums", sums, self.runs)
        totals = np.atleast_1d(self.total)[:, None]
        outside = ~((prefixes >= 0) & (prefixes < totals))
        if outside.any():
            run = np.nonzero(outside)[0][0]
            raise ValueError(
                f"prefix_sums: must be in [0, {totals[run, 0]}), got {prefixes[outside][0]}"
            )
        indices = np.empty(prefixes.shape, dtype=np.int64)
        find_leaves(self.nodes, self.first_root, prefixes, indices)
        return int(indices[0, 0]) if sums.shape == () else indices.reshape(sums.shape)


class MinTree(_SegmentTree):
    """Leaves with values >= 0; their minimum in O(1). Leaves that were never set count as +inf.

    Args:
        capacity: number of leaves, any integer >= 1.
        runs: as in `SumTree`.

    Example:
        >>> from per_tutorial import MinTree
        >>> tree = MinTree(4)
        >>> tree.set([0, 2], [3, 0.5])
        >>> float(tree.min)
        0.5
    """

    _empty = math.inf
    _minima = True

    @property
    def min(self) -> Any:
        """The smallest leaf: a float, or (runs,) for a forest."""
        return self._root_values()
