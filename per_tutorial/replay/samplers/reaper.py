"""ReaPER: prioritised replay adjusted by reliability (Pleiss et al., ICLR 2026)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import one_of, real_number
from per_tutorial.common.states import ArraySpec, Schema, State
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Floats, Slots
from per_tutorial.replay.random_streams import next_uniform
from per_tutorial.replay.reliability import (
    RUNNING,
    compute_all,
    compute_conservative,
    compute_run,
    mark_episodes,
    mark_running,
    refresh_ends,
    refresh_minima,
    reliability,
)
from per_tutorial.replay.ring import NO_SLOT
from per_tutorial.replay.samplers.proportional import (
    LARGEST_PRIORITY,
    SMALLEST_EPSILON,
    ProportionalSampler,
    write_sums,
)
from per_tutorial.replay.segment_tree import MinTree, SumTree, find_leaf, set_sums

UNFINISHED = ("reliable", "conservative")
TRIES = 64  # proposals of a draw before all priorities are computed for it


@njit_cached
def draw_one(priorities, chance):
    """A slot drawn in proportion to `priorities`; the last one if rounding leaves none."""
    prefix, drawn = chance * priorities.sum(), 0
    for slot in range(len(priorities)):
        if priorities[slot] > 0.0:
            drawn = slot
            if prefix < priorities[slot]:
                break
            prefix -= priorities[slot]
    return drawn


@njit_cached
def sample_reliable(
    sums,
    errors,
    first_root,
    before,
    after,
    num_added,
    strides,
    omega,
    tries,
    states,
    slots,
    priorities,
):
    """Draw slots (runs, batch) in proportion to p^α · R^ω, and write these into `priorities`.

    Rejection sampling: a slot is proposed in proportion to p^α and accepted with probability R^ω,
    so a change of R need not be written to all steps of an episode. With equal errors, at least
    half of the proposals are accepted. If `tries` of them are rejected, one pass over all slots
    draws with the same probabilities.
    """
    runs, batch = slots.shape
    leaves = len(sums) // (2 * first_root)
    every = np.empty(after.shape[1])
    for run in range(runs):
        root = first_root + run
        first_leaf = root * leaves
        episodes = before[run], after[run], num_added[run], strides[run]
        for k in range(batch):
            slots[run, k] = -1
            for _ in range(tries):
                prefix = next_uniform(states, run) * sums[root]
                slot = find_leaf(sums, root, first_leaf, prefix) - first_leaf
                share = reliability(errors, first_leaf, *episodes, slot) ** omega
                if next_uniform(states, run) < share:
                    slots[run, k] = slot
                    priorities[run, k] = sums[first_leaf + slot] * share
                    break
            if slots[run, k] < 0:
                compute_run(sums, errors, first_leaf, *episodes, omega, every)
                slots[run, k] = draw_one(every, next_uniform(states, run))
                priorities[run, k] = every[slots[run, k]]


@njit_cached
def sample_from(every, states, slots, priorities):
    """Draw slots (runs, batch) in proportion to `every` (runs, capacity), and write what they have
    of it into `priorities`.
    """
    for run in range(slots.shape[0]):
        sums = np.cumsum(every[run])
        last = np.flatnonzero(every[run])[-1]
        for k in range(slots.shape[1]):
            prefix = next_uniform(states, run) * sums[-1]
            slot = min(last, np.searchsorted(sums, prefix, side="right"))
            slots[run, k], priorities[run, k] = slot, every[run, slot]


@njit_cached
def write_both(sums, errors, first_root, slots, values, priorities, largest):
    """Set p^α and p of slots and record the largest p in one call, which cannot be interrupted."""
    write_sums(sums, first_root, slots, values, priorities, largest)
    set_sums(errors, first_root, slots, priorities)


@njit_cached
def write_and_refresh(
    minima,
    sums,
    errors,
    first_root,
    before,
    after,
    num_added,
    strides,
    omega,
    slots,
    values,
    priorities,
    largest,
):
    """`write_both` and `refresh_ends` in one call, which cannot be interrupted."""
    write_both(sums, errors, first_root, slots, values, priorities, largest)
    refresh_ends(minima, sums, errors, first_root, before, after, num_added, strides, omega, slots)


class ReaperSampler(ProportionalSampler):
    """P(i) ∝ R_i^ω · p_i^α with p_i = |δ_i| + ε and the reliability R_i of its target.

    R_t = 1 − Σ_{i>t} p_i / Σ_i p_i over the episode of step t: the smaller the errors between a
    step and the end of its episode, the more its target can be trusted (section 4 of Pleiss et
    al.). Each TD error changes the R of its whole episode. Sums over part of an episode take
    O(log N) in a tree if one environment feeds a run, and O(length) if several take turns. If the
    weights need the smallest priority, another tree keeps that of each episode.

    Differences from the authors' code: ε; sums go over the steps that are still stored; R is 1
    while the episode runs, unless ``unfinished`` says otherwise. A new transition gets the largest
    p so far, 1 at the start. The weights are (N · P(i))^−β.

    Args:
        capacity: slots per run.
        seeds: one int per run.
        alpha: how strongly errors count, in [0, 1].
        omega: how strongly reliability counts, in [0, 1]; 0 is proportional replay without
            stratified draws.
        priority_epsilon: ε, in [1e-20, 1e20].
        normalize: weights are divided by the largest one of the "batch", or of the whole "buffer",
            as in the authors' code, at the cost of a pass over the episodes that an update
            changes; "none" leaves them as they are, at the cost of a pass over all slots.
        unfinished: what R is while an episode runs. "reliable": 1. "conservative": as in the paper,
            Σ_{i≤t} p_i / F, where F is the largest sum of p over a stored episode. Each draw then
            takes a pass over all slots.

    Example:
        >>> from per_tutorial import Replay
        >>> from per_tutorial.replay import ReaperSampler, TransitionStorage
        >>> sampler = ReaperSampler(9, seeds=[0], alpha=1.0, omega=1.0)
        >>> replay = Replay(TransitionStorage(9, (1,)), sampler)
        >>> for step in range(2):
        ...     replay.add([step], 1, 0.5, [step + 1], terminated=step == 1)
        >>> replay.update_priorities([0, 1], [1.0, 1.0])  # R = 1/2 and 1
        >>> replay.probabilities[:2].round(2).tolist()
        [0.33, 0.67]
    """

    def __init__(
        self,
        capacity: int,
        seeds: Sequence[int],
        *,
        alpha: float = 0.3,
        omega: float = 0.3,
        priority_epsilon: float = 1e-6,
        normalize: str = "batch",
        unfinished: str = "reliable",
    ) -> None:
        super().__init__(capacity, seeds, alpha=alpha, priority_epsilon=priority_epsilon)
        self.omega = real_number("omega", omega, 0, 1)
        self.unfinished = one_of("unfinished", unfinished, UNFINISHED)
        self.normalize = one_of("normalize", normalize, ("batch", "buffer", "none"))
        self.errors = SumTree(self.capacity, runs=self.runs)
        self.before = np.zeros((self.runs, self.capacity), dtype=np.int64)  # steps of the episode
        self.after = np.full((self.runs, self.capacity), RUNNING)
        self.num_added = np.zeros(self.runs, dtype=np.int64)  # transitions added
        self.strides = np.ones(self.runs, dtype=np.int64)  # slots from a step to the next one
        keeps_least = normalize == "buffer" and unfinished == "reliable"
        self.least = MinTree(self.capacity, runs=self.runs) if keeps_least else None
        self.settings = {
            "sampler": "reaper",
            "alpha": self.alpha,
            "omega": self.omega,
            "priority_epsilon": self.priority_epsilon,
            "normalize": self.normalize,
            "unfinished": self.unfinished,
        }

    def add(self, slots: Slots, added: NDArray[np.int64]) -> None:
        """Give newly written slots (runs, n) the largest priority seen so far."""
        mark_running(self.before, self.after, slots)
        self.num_added[:] = added
        super().add(slots, added)
        if self.least is not None:
            # The oldest episodes have lost their first steps, which changes their sums.
            oldest = (added[:, None] + np.arange(self.strides[0])) % self.capacity
            full = added[:, None] >= self.capacity
            refresh_ends(self.least.nodes, *self._memory, np.where(full, oldest, NO_SLOT))

    def end_episodes(self, slots: Slots, lengths: NDArray[np.int64], stride: int) -> None:
        """Record which steps make up the episodes that end in ``slots`` (runs, n)."""
        self.strides[:] = stride
        mark_episodes(self.before, self.after, slots, lengths, stride)
        if self.least is not None:
            # Only the columns with an end: a table of all steps of `extend` by the length of the
            # longest episode may not fit the memory.
            ends = (slots >= 0).any(axis=0)
            slots, lengths = slots[:, ends], lengths[:, ends]
            back = np.arange(lengths.max(initial=0))
            steps = (slots[..., None] - stride * back) % self.capacity
            steps = np.where((slots[..., None] >= 0) & (back < lengths[..., None]), steps, NO_SLOT)
            refresh_minima(self.least.nodes, *self._memory, steps.reshape(self.runs, -1))

    def sample(
        self, batch_size: int, sizes: NDArray[np.int64], beta: float
    ) -> tuple[Slots, NDArray]:
        """Slots and importance-sampling weights, both (runs, batch)."""
        shape = (len(sizes), batch_size)
        slots, priorities = np.empty(shape, dtype=np.int64), np.empty(shape)
        every = None if self.unfinished == "reliable" else self._priorities()
        if every is None:
            sample_reliable(*self._memory, TRIES, self.streams.states, slots, priorities)
        else:
            sample_from(every, self.streams.states, slots, priorities)
        if self.normalize == "batch":
            unit = priorities.min(axis=1, keepdims=True)
        elif self.least is not None:
            unit = self.least.min[:, None]
        else:
            every = self._priorities() if every is None else every
            if self.normalize == "buffer":
                unit = np.where(every > 0, every, np.inf).min(axis=1, keepdims=True)
            else:
                unit = every.sum(axis=1, keepdims=True) / sizes[:, None]
        return slots, (priorities / unit) ** -beta

    def probabilities(self, slots: Slots, sizes: NDArray[np.int64]) -> Floats:
        """P(i) of slots (runs, n): 0 where nothing is stored. Takes a pass over all slots."""
        every = self._priorities()
        totals = every.sum(axis=1, keepdims=True)
        return np.take_along_axis(every / np.where(totals > 0, totals, 1.0), slots, axis=1)

    @property
    def state(self) -> State:
        """The state of proportional replay, the tree of p, and where episodes begin and end."""
        return {
            **super().state,
            "errors": self.errors.nodes,
            "before": self.before,
            "after": self.after,
            "num_added": self.num_added,
            "strides": self.strides,
        }

    @property
    def schema(self) -> Schema:
        """What `restore` takes."""
        runs, slots = (self.runs,), (self.runs, self.capacity)
        return {
            **super().schema,
            "errors": ArraySpec(np.float64, self.errors.nodes.shape, low=0),
            "before": ArraySpec(np.int64, slots, 0, self.capacity - 1),
            "after": ArraySpec(np.int64, slots, RUNNING, self.capacity - 1),
            "num_added": ArraySpec(np.int64, runs, 0),
            "strides": ArraySpec(np.int64, runs, 1, self.capacity),
        }

    def check(self, state: State, sizes: NDArray[np.int64]) -> None:
        """Raise ValueError unless trees and episodes are consistent, with possible priorities."""
        super().check(state, sizes)
        self.errors.check("errors", state["errors"], sizes)
        stored = np.arange(self.errors.leaves) < sizes[:, None]
        errors, sums = (
            self.errors.leaves_of(state[name])[: self.runs][stored] for name in ("errors", "sums")
        )
        if not ((errors >= SMALLEST_EPSILON) & (errors <= LARGEST_PRIORITY)).all():
            raise ValueError("state: errors has a leaf that is not a possible priority")
        if not np.allclose(errors**self.alpha, sums, rtol=1e-9, atol=0):  # powers are rounded
            raise ValueError("state: errors and sums have leaves of different priorities")
        if not np.array_equal(np.minimum(state["num_added"], self.capacity), sizes):
            raise ValueError("state: num_added must be the number of transitions added")
        # In an ended episode, the successor of a step is stored and counts one step further.
        slots, before, after = np.arange(self.capacity), state["before"], state["after"]
        following = (slots + state["strides"][:, None]) % self.capacity
        stored = slots < sizes[:, None]
        there, steps, left = (
            np.take_along_axis(each, following, axis=1) for each in (stored, before, after)
        )
        follows = there & (steps == before + 1) & (left == after - 1)
        if (stored & (after > 0) & ~follows).any():
            raise ValueError("state: before and after must count the steps of episodes")

    def restore(self, state: State) -> None:
        """Continue from a checked state."""
        super().restore(state)
        if self.least is not None:
            self.least.nodes[:] = np.inf
            every = np.arange(self.capacity)
            stored = np.where(every < self.num_added[:, None], every, NO_SLOT)
            refresh_minima(self.least.nodes, *self._memory, stored)

    @property
    def _memory(self) -> tuple[NDArray | int | float, ...]:
        """The first arguments of the kernels."""
        tree = self.sums
        return (
            tree.nodes,
            self.errors.nodes,
            tree.first_root,
            self.before,
            self.after,
            self.num_added,
            self.strides,
            self.omega,
        )

    def _priorities(self) -> Floats:
        """R^ω · p^α of every slot, (runs, capacity)."""
        every = np.empty((self.runs, self.capacity))
        if self.unfinished == "reliable":
            compute_all(*self._memory, every)
        else:
            sums, errors, first_root, _, *others = self._memory
            compute_conservative(sums, errors, first_root, *others, every)
        return every

    def _write(self, slots: Slots, priorities: Floats) -> None:
        """Set the priorities of slots, in one compiled call."""
        written = slots, priorities**self.alpha, priorities, self.largest_priority
        if self.least is None:
            write_both(self.sums.nodes, self.errors.nodes, self.sums.first_root, *written)
        else:
            write_and_refresh(self.least.nodes, *self._memory, *written)
