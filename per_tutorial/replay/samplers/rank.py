"""Rank-based prioritised replay: the order of the TD errors counts, their size does not.

P(i) = rank(i)^−α / Σ_k k^−α, where the transition with the largest |δ| has rank 1 (Schaul et al.,
section 3.3). Keeping N errors sorted would cost too much, so the paper uses the array of a binary
heap as an approximately sorted one (appendix B.2.1): position i of the heap is roughly rank i. From
time to time the array is sorted in full, which leaves it a heap.

The paper cuts the ranks into k segments of equal probability, draws one transition from each, and
keeps the cuts until N has changed a lot. Here the segments are exact for every N, at no cost: the
sums H(n) = 1 + 2^−α + … + n^−α do not depend on N, so one table serves all, and segment j of k is
its range [j/k, (j + 1)/k) · H(N). A rank on a cut belongs to both segments in proportion, so over a
batch P(i) is exactly the formula's.

Heaps are rows of arrays, one row per run. Entry 0 is unused: position 1 is the top, the children of
position i are 2i and 2i + 1, as in `trees`, and a rank of 0 means "nothing stored".
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import one_of, real_number, whole_number
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Floats, Ints, Slots, State
from per_tutorial.replay.random_streams import RandomStreams, next_uniform
from per_tutorial.replay.samplers.proportional import divide_by_largest

# The arrays of a sampler that its kernels change, in the order of their arguments
HEAPS = ("keys", "slots", "ranks", "sizes", "written", "largest_priority")
NEVER = 2**63 - 1  # writes between two sorts


@njit_cached
def settle(keys, slots, ranks, size, rank, key, slot):
    """Put (key, slot) into the hole at position `rank` of a heap, and restore the order.

    Invariant: apart from the hole, no key is larger than its parent's. A key moves up past equal
    ones, so among transitions that were never replayed the newest come first.
    """
    while rank > 1 and keys[rank // 2] <= key:
        parent = rank // 2
        moved = slots[parent]
        keys[rank], slots[rank], ranks[moved] = keys[parent], moved, rank
        rank = parent
    while 2 * rank <= size:
        child = 2 * rank
        if child < size and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        moved = slots[child]
        keys[rank], slots[rank], ranks[moved] = keys[child], moved, rank
        rank = child
    keys[rank], slots[rank], ranks[slot] = key, slot, rank


@njit_cached
def sort_heap(keys, slots, ranks, size):
    """Sort one heap, so that each position is a true rank; equals keep their order."""
    order = np.argsort(-keys[1 : size + 1], kind="mergesort") + 1  # stable
    keys[1 : size + 1], slots[1 : size + 1] = keys[order], slots[order]
    for rank in range(1, size + 1):
        ranks[slots[rank]] = rank


@njit_cached
def set_keys(keys, slots, ranks, sizes, written, largest, changed, values, sort_every=NEVER):
    """Set or add the keys of the slots `changed` (runs, batch), then sort the heaps that are due.

    The last of duplicates wins; negative slots are skipped. `written` (runs,) counts the keys, and
    `largest` (runs,) is the largest so far. One call, which cannot be interrupted.
    """
    for run in range(changed.shape[0]):
        for k in range(changed.shape[1]):
            slot, key = changed[run, k], values[run, k]
            if slot >= 0:
                if ranks[run, slot] == 0:
                    sizes[run] += 1
                    ranks[run, slot] = sizes[run]
                settle(keys[run], slots[run], ranks[run], sizes[run], ranks[run, slot], key, slot)
                written[run] += 1
                largest[run] = max(largest[run], key)
        if written[run] >= sort_every:
            sort_heap(keys[run], slots[run], ranks[run], sizes[run])
            written[run] = 0


@njit_cached
def add_keys(keys, slots, ranks, sizes, written, largest, changed, sort_every):
    """Give each of the slots `changed` (runs, n) its run's largest key, one after the other.

    A heap that becomes due in between is sorted at once. Done twice, the keys are the same, and
    only the order of equal ones may differ.
    """
    heaps = keys, slots, ranks, sizes, written, largest
    for k in range(changed.shape[1]):
        set_keys(*heaps, changed[:, k : k + 1], largest.reshape(-1, 1), sort_every)


@njit_cached
def sample_ranks(sums, sizes, states, ranks):
    """Draw one rank in each of `batch` segments of equal probability, for every run.

    It is the smallest rank with prefix < sums[rank]; the last one, if rounding leaves none.
    """
    runs, batch = ranks.shape
    for run in range(runs):
        size = sizes[run]
        for k in range(batch):
            prefix = (k + next_uniform(states, run)) / batch * sums[size]
            ranks[run, k] = 1 + np.searchsorted(sums[1:size], prefix, side="right")


class RankBasedSampler:
    """P(i) = rank(i)^−α / Σ_k k^−α, ranks by |δ| (section 3.3 and appendix B.2.1; notebook 00).

    A new transition gets the largest |δ| seen so far in its run, 1 at the start. The weights
    w_i = (N · P(i))^−β use the P of the position in the heap at which i was drawn, so they correct
    the actual draws even where position and rank differ.

    Args:
        capacity: slots per run.
        seeds: one int per run.
        alpha: how strongly ranks count, in [0, 1]; 0 is uniform replay.
        normalize: weights are divided by the largest one of the "batch" (the default), or of the
            whole "buffer", that of rank N; "none" leaves them as they are.
        sort_every: priorities written to a run (new and updated ones) between two full sorts of its
            heap; None: the capacity.

    Example:
        >>> from per_tutorial import Replay
        >>> from per_tutorial.replay import RankBasedSampler, TransitionStorage
        >>> sampler = RankBasedSampler(1000, seeds=[0], alpha=1.0)
        >>> replay = Replay(TransitionStorage(1000, (2,)), sampler)
        >>> for step in range(2):
        ...     replay.add([step, 0], 1, 0.5, [step + 1, 0], terminated=False)
        >>> replay.update_priorities([0, 1], [9.0, 1.0])
        >>> replay.probabilities().round(2).tolist()  # 1/1 : 1/2
        [0.67, 0.33]
    """

    needs_updates = True

    def __init__(
        self,
        capacity: int,
        seeds: Sequence[int],
        *,
        alpha: float = 0.7,
        normalize: str = "batch",
        sort_every: int | None = None,
    ) -> None:
        self.capacity = whole_number("capacity", capacity)
        self.streams = RandomStreams(seeds, "replay")
        self.runs = len(self.streams.states)
        self.alpha = real_number("alpha", alpha, 0, 1)
        self.normalize = one_of("normalize", normalize, ("batch", "buffer", "none"))
        sort_every = self.capacity if sort_every is None else sort_every
        self.sort_every = whole_number("sort_every", sort_every)
        positions = np.arange(1, self.capacity + 1)
        self.sums = np.concatenate(([0.0], np.cumsum(positions**-self.alpha)))  # H(0), H(1), …
        self.keys = np.zeros((self.runs, self.capacity + 1))
        self.slots = np.full((self.runs, self.capacity + 1), -1, dtype=np.int32)
        self.ranks = np.zeros((self.runs, self.capacity), dtype=np.int32)
        self.sizes = np.zeros(self.runs, dtype=np.int64)
        self.written = np.zeros(self.runs, dtype=np.int64)  # since the last full sort
        self.largest_priority = np.ones(self.runs)
        self._heaps = tuple(getattr(self, name) for name in HEAPS)
        self.settings: dict[str, Any] = {
            "sampler": "rank",
            "alpha": self.alpha,
            "normalize": self.normalize,
            "sort_every": self.sort_every,
        }

    def add(self, slots: Slots) -> None:
        """Give newly written slots (runs, n) the largest priority seen so far."""
        add_keys(*self._heaps, slots, self.sort_every)

    def sample(self, batch_size: int, sizes: Ints, beta: float) -> tuple[Slots, NDArray, NDArray]:
        """Slots, P(i) and importance-sampling weights, (runs, batch) each."""
        ranks = np.empty((len(sizes), batch_size), dtype=np.int64)
        sample_ranks(self.sums, sizes, self.streams.states, ranks)
        probabilities = self._probability(ranks, sizes)
        weights = (sizes[:, None] * probabilities) ** -beta
        if self.normalize == "batch":
            divide_by_largest(weights)
        elif self.normalize == "buffer":
            weights /= (sizes * self._probability(sizes[:, None], sizes)[:, 0])[:, None] ** -beta
        slots = np.take_along_axis(self.slots, ranks, axis=1).astype(np.int64)
        return slots, probabilities, weights

    def update(self, slots: Slots, td_errors: Floats) -> None:
        """Set the priorities of replayed slots from their TD errors, both (runs, batch)."""
        set_keys(*self._heaps, slots, np.abs(td_errors), self.sort_every)

    def probabilities(self, slots: Slots, sizes: Ints) -> Floats:
        """P(i) of slots (runs, n), which hold transitions."""
        return self._probability(np.take_along_axis(self.ranks, slots, axis=1), sizes)

    def metrics(self, sizes: Ints) -> dict[str, NDArray]:
        """Measurements per run for `History`: the largest |δ| seen, and their mean now."""
        mean = self.keys.sum(axis=1) / sizes
        return {"largest_priority": self.largest_priority.copy(), "priority": mean}

    @property
    def state(self) -> State:
        """The random streams, the heaps, and their counters."""
        return {"streams": self.streams.states, **dict(zip(HEAPS, self._heaps, strict=True))}

    def _probability(self, ranks: NDArray, sizes: Ints) -> Floats:
        """P of ranks (runs, n) >= 1."""
        return ranks**-self.alpha / self.sums[sizes][:, None]
