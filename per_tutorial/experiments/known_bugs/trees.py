"""Trees with wrong sums, wrong descents or wrong initial values."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.experiments.known_bugs.bug import Bug
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Floats, Slots
from per_tutorial.replay.random_streams import next_uniform
from per_tutorial.replay.samplers.proportional import ProportionalSampler, note_largest
from per_tutorial.replay.trees import SumTree, step_down

PREFIXES = "prefixes[run, k] = (k + next_uniform(states, run)) / batch * nodes[first_root + run]"
ANCESTORS = "nodes[node] = nodes[2 * node] + nodes[2 * node + 1]"


class PlainDraw(ProportionalSampler):
    """The real draw in NumPy, in two methods, so that a bug can override either."""

    def _draw(self, batch_size: int, sizes: NDArray[np.int64]) -> tuple[Slots, Floats]:
        slots = self._find(self._prefixes(batch_size, sizes))
        return slots, self.sums.get(slots) / self.sums.total[:, None] * sizes[:, None]

    def _prefixes(self, batch_size: int, sizes: NDArray[np.int64]) -> Floats:
        draws = np.arange(batch_size) + self.streams.uniform(batch_size)
        return draws / batch_size * self.sums.total[:, None]

    def _find(self, prefixes: Floats) -> Slots:
        return self.sums.find(prefixes)


class OffByOneTotal(PlainDraw):
    """Prefix sums end before the newest slot, or, in a full ring, before the last one."""

    def _prefixes(self, batch_size: int, sizes: NDArray[np.int64]) -> Floats:
        draws = np.arange(batch_size) + self.streams.uniform(batch_size)
        total_but_one = self.sums.total[:, None] - self.sums.get(sizes[:, None] - 1)
        return draws / batch_size * total_but_one


@njit_cached
def find_with_ties(nodes, first_root, states, prefixes, slots):
    """`find_leaves`, but if two children are equal, it takes a random one and subtracts nothing."""
    leaves = len(nodes) // (2 * first_root)
    for run in range(prefixes.shape[0]):
        for k in range(prefixes.shape[1]):
            node, rest = first_root + run, prefixes[run, k]
            while node < (first_root + run) * leaves:
                if nodes[2 * node] == nodes[2 * node + 1]:
                    node = 2 * node + (next_uniform(states, run) < 0.5)
                else:
                    node, rest = step_down(nodes, node, rest)
            slots[run, k] = node - (first_root + run) * leaves


class TieBranch(PlainDraw):
    """If two children are equal, a random one is taken, and nothing is subtracted."""

    def _find(self, prefixes: Floats) -> Slots:
        slots = np.empty(prefixes.shape, dtype=np.int64)
        sums = self.sums
        find_with_ties(sums.nodes, sums.first_root, self.streams.states, prefixes, slots)
        return slots


@njit_cached
def find_unguarded(nodes, first_root, prefixes, slots):
    """`find_leaves` without the guard against empty subtrees on the right."""
    leaves = len(nodes) // (2 * first_root)
    for run in range(prefixes.shape[0]):
        for k in range(prefixes.shape[1]):
            node, rest = first_root + run, prefixes[run, k]
            while node < (first_root + run) * leaves:
                node = 2 * node
                if rest >= nodes[node]:
                    rest -= nodes[node]
                    node += 1
            slots[run, k] = node - (first_root + run) * leaves


class UnguardedTree(SumTree):
    """Prefix sums in float32: one may be rounded up to the total and find an empty leaf."""

    def find(self, prefix_sums: ArrayLike) -> Slots:
        prefixes = np.asarray(prefix_sums, dtype=np.float32)
        slots = np.empty(prefixes.shape, dtype=np.int64)
        find_unguarded(self.nodes, self.first_root, prefixes, slots)
        return np.minimum(slots, self.capacity - 1)


class DrawAtTheEdge(PlainDraw):
    """A prefix sum that is rounded up to the total finds an empty slot."""

    __signature__ = inspect.signature(ProportionalSampler)  # the registry finds settings by it

    def __init__(self, capacity: int, seeds: Sequence[int], **settings: Any) -> None:
        super().__init__(capacity, seeds, **settings)
        self.sums = UnguardedTree(capacity, runs=self.runs)


@njit_cached
def add_changes(nodes, first_root, slots, values):
    """Add the change of each leaf to all its ancestors, in float32."""
    leaves = len(nodes) // (2 * first_root)
    for run in range(slots.shape[0]):
        for k in range(slots.shape[1]):
            if slots[run, k] < 0:
                continue
            node = (first_root + run) * leaves + slots[run, k]
            change = np.float32(values[run, k]) - np.float32(nodes[node])
            while node >= first_root:
                nodes[node] = np.float32(nodes[node]) + change
                node //= 2


class DriftingSums(ProportionalSampler):
    """Sums in float32 are updated by differences and never recomputed."""

    def _write(self, slots: Slots, priorities: Floats) -> None:
        add_changes(self.sums.nodes, self.sums.first_root, slots, priorities**self.alpha)
        note_largest(slots, priorities, self.largest_priority)


class DuplicatesCountTwice(ProportionalSampler):
    """All changes are computed before any leaf is written: a duplicate changes the sums twice."""

    def _write(self, slots: Slots, priorities: Floats) -> None:
        sums, values = self.sums, priorities**self.alpha
        for run in range(self.runs):
            mine = slots[run] >= 0
            node = (sums.first_root + run) * sums.leaves + slots[run, mine]
            changes = values[run, mine] - sums.nodes[node]
            sums.nodes[node] = values[run, mine]
            while (node := node // 2).size and node[0] >= sums.first_root:
                np.add.at(sums.nodes, node, changes)
        note_largest(slots, priorities, self.largest_priority)


class UnfilledSlots(ProportionalSampler):
    """Every slot starts with priority 1, so empty slots are drawn."""

    __signature__ = inspect.signature(ProportionalSampler)  # the registry finds settings by it

    def __init__(self, capacity: int, seeds: Sequence[int], **settings: Any) -> None:
        super().__init__(capacity, seeds, **settings)
        everywhere = np.tile(np.arange(self.capacity), (self.runs, 1))
        self.sums.set(everywhere, np.ones(everywhere.shape))


KNOWN_BUGS = (
    Bug(
        name="off-by-one-total",
        mistake="The prefix sums leave out the last slot: the newest transition is never drawn, "
        "and in a full buffer one slot is dead.",
        wrong="total_but_one = self.sums.total[:, None] - self.sums.get(sizes[:, None] - 1)",
        right=PREFIXES,
        seen=(
            "openai/baselines#76",
            "openai/baselines#170",
            "hill-a/stable-baselines#941",
            "Curt-Park/rainbow-is-all-you-need#88",
        ),
        lived="reported in 2017 and 2020 and never closed; seven years in the last of them",
        found_by="reach",
        sampler=OffByOneTotal,
    ),
    Bug(
        name="tie-branch",
        mistake="Where two subtrees are equal, one is taken by chance and the prefix sum stays as "
        "it was.",
        wrong="node = 2 * node + (next_uniform(states, run) < 0.5)",
        right="return right, prefix - nodes[left]",
        found_by="zero-errors",
        sampler=TieBranch,
    ),
    Bug(
        name="single-precision-prefix",
        mistake="A prefix sum in float32 is rounded up to the total, and finds a slot where "
        "nothing is.",
        wrong="if rest >= nodes[node]:",
        right="if (prefix < nodes[left]) | (nodes[right] == 0.0):",
        seen=(
            "pytorch/rl#2230",
            "Kaixhin/Rainbow#76",
            "Kaixhin/Rainbow#81",
            "JuliaReinforcementLearning/ReinforcementLearningCore.jl#83",
        ),
        lived="reported in 2024 in the first of them; its repair clamps the index",
        found_by="edges",
        sampler=DrawAtTheEdge,
    ),
    Bug(
        name="drifting-sums",
        mistake="Each change is added to the sums above in float32, and the rounding errors stay.",
        wrong="nodes[node] = np.float32(nodes[node]) + change",
        right=ANCESTORS,
        seen=("instadeepai/flashbax#52",),
        lived="until 2025; since then one can choose float64",
        found_by="sum-after-outliers",
        sampler=DriftingSums,
    ),
    Bug(
        name="duplicates-count-twice",
        mistake="A transition that is in the minibatch twice changes the sums above it twice.",
        wrong="np.add.at(sums.nodes, node, changes)",
        right=ANCESTORS,
        found_by="duplicates",
        sampler=DuplicatesCountTwice,
    ),
    Bug(
        name="unfilled-slots",
        mistake="Empty slots have a priority, and a draw returns a transition that was never "
        "stored.",
        wrong="self.sums.set(everywhere, np.ones(everywhere.shape))",
        right="self.nodes = np.full(2 * self.first_root * self.leaves, self._empty, "
        "dtype=np.float64)",
        found_by="only-stored",
        sampler=UnfilledSlots,
    ),
)
