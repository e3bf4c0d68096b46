"""Rank-based prioritised replay: the order of the TD errors counts, their size does not.

P(i) = rank(i)^−α / Σ_k k^−α, where the transition of the largest |δ| has rank 1 (Schaul et al.,
section 3.3). Keeping N errors sorted would cost too much, so the paper takes the array of a binary
heap for an approximately sorted one (appendix B.2.1): what lies at position i of the heap has, about,
rank i. From time to time the array is sorted in full, which leaves it a heap.

The paper cuts the ranks into k segments of equal probability, draws one transition in each, and
keeps the cuts until N has changed by much. Here the segments are exact for every N, at no cost: the
sums H(n) = 1 + 2^−α + … + n^−α do not depend on N, so one table serves all, and segment j of k is the
stretch [j/k, (j + 1)/k) · H(N) of it. A rank that a cut goes through belongs to both segments by its
shares, so that, over a batch, P(i) is exactly the formula's.

Heaps are rows of arrays, one run a row. Entry 0 is unused: position 1 is the top, the children of
position i are 2i and 2i + 1, as in `segment_tree`, and a rank of 0 means "nothing stored".
"""

import numpy as np
from numba import njit

from per_tutorial.common.arguments import one_of, real_number, whole_number
from per_tutorial.replay.random_streams import RandomStreams, next_uniform


@njit(cache=True)
def settle(keys, slots, ranks, size, rank, key, slot):
    """Put (key, slot) into the hole at position `rank` of one heap, and move it to where it belongs.

    Invariant: but for the hole, no key is larger than its parent's. A newcomer moves up past its
    equals, so of transitions that were never replayed the newest come first.
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


@njit(cache=True)
def set_keys(keys, slots, ranks, sizes, written, largest, changed, values):
    """Set the keys of the slots `changed` (runs, batch), adding those that are new.

    Of duplicates the last one wins, and a negative slot is skipped. `written` counts the rest, and
    `largest` holds the largest key so far.
    """
    for run in range(changed.shape[0]):
        heap_keys, heap_slots, rank_of = keys[run], slots[run], ranks[run]
        for k in range(changed.shape[1]):
            slot = changed[run, k]
            if slot < 0:
                continue
            if rank_of[slot] == 0:
                sizes[run] += 1
                rank_of[slot] = sizes[run]
            rank, key = rank_of[slot], values[run, k]
            settle(heap_keys, heap_slots, rank_of, sizes[run], rank, key, slot)
            written[run] += 1
            largest[run] = max(largest[run], key)


@njit(cache=True)
def find_rank(sums, size, prefix):
    """The smallest rank ≤ `size` with prefix < sums[rank]; `size` if rounding leaves none."""
    low, high = 1, size
    while low < high:
        middle = (low + high) // 2
        if prefix < sums[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True)
def sample_ranks(sums, sizes, states, ranks):
    """Draw one rank in each of `batch` segments of equal probability, for every run."""
    runs, batch = ranks.shape
    for run in range(runs):
        total = sums[sizes[run]]
        for k in range(batch):
            prefix = (k + next_uniform(states, run)) / batch * total
            ranks[run, k] = find_rank(sums, sizes[run], prefix)


class RankBasedSampler:
    """P(i) = rank(i)^−α / Σ_k k^−α, ranks by |δ| (section 3.3 and appendix B.2.1; notebook 00).

    A new transition gets the largest |δ| seen so far in its run, 1 at the start. The weights
    w_i = (N · P(i))^−β take P from the position in the heap that i was drawn at, so they correct for
    what was done even where position and rank differ.

    Args:
        capacity: slots per run.
        seeds: one int per run.
        alpha: how strongly ranks count, in [0, 1]; 0 is uniform replay.
        normalize: weights are divided by the largest one of the "batch" (the default), or of the
            whole "buffer", that of rank N; "none" leaves them as they are.
        sort_every: priorities written to a run (new and updated ones) between two full sorts of its
            heap; None for as many as the capacity.
    """

    def __init__(self, capacity, seeds, *, alpha=0.7, normalize="batch", sort_every=None):
        self.capacity = whole_number("capacity", capacity)
        self.alpha = real_number("alpha", alpha, 0, 1)
        self.normalize = one_of("normalize", normalize, ("batch", "buffer", "none"))
        sort_every = self.capacity if sort_every is None else sort_every
        self.sort_every = whole_number("sort_every", sort_every)
        self.streams = RandomStreams(seeds, "replay")
        runs, positions = len(seeds), np.arange(1, self.capacity + 1)
        self.sums = np.concatenate(([0.0], np.cumsum(positions**-self.alpha)))  # H(0), H(1), …
        self.keys = np.zeros((runs, self.capacity + 1))
        self.slots = np.full((runs, self.capacity + 1), -1, dtype=np.int32)
        self.ranks = np.zeros((runs, self.capacity), dtype=np.int32)
        self.sizes = np.zeros(runs, dtype=np.int64)
        self.written = np.zeros(runs, dtype=np.int64)  # since the last full sort
        self.largest_priority = np.ones(runs)
        self.settings = {
            "sampler": "rank",
            "alpha": self.alpha,
            "normalize": self.normalize,
            "sort_every": self.sort_every,
        }
        self.state = {
            "streams": self.streams.states,
            "keys": self.keys,
            "slots": self.slots,
            "ranks": self.ranks,
            "sizes": self.sizes,
            "written": self.written,
            "largest_priority": self.largest_priority,
        }

    def add(self, slots):
        """Give newly written slots (runs, n) the largest priority seen so far.

        Heaps are sorted where they would be if the slots came one by one.
        """
        start = 0
        while start < slots.shape[1]:
            stop = start + self.sort_every - max(self.written.tolist())
            part = slots[:, start:stop]
            self._set(part, np.broadcast_to(self.largest_priority[:, None], part.shape))
            start = stop

    def sample(self, batch_size, sizes, beta):
        """Slots and importance-sampling weights, both (runs, batch)."""
        ranks = np.empty((len(sizes), batch_size), dtype=np.int64)
        sample_ranks(self.sums, sizes, self.streams.states, ranks)
        weights = (sizes[:, None] * self._probability(ranks, sizes)) ** -beta
        if self.normalize == "batch":
            weights /= weights.max(axis=1, keepdims=True)
        elif self.normalize == "buffer":
            weights /= (sizes * self._probability(sizes[:, None], sizes)[:, 0])[:, None] ** -beta
        return np.take_along_axis(self.slots, ranks, axis=1).astype(np.int64), weights

    def update(self, slots, td_errors):
        """Set the priorities of replayed slots from their TD errors, both (runs, batch)."""
        self._set(slots, np.abs(td_errors))

    def statistics(self, sizes):
        """Measurements per run for `History`: the largest |δ| seen, and their mean now."""
        mean = self.keys.sum(axis=1) / sizes
        return {"largest_priority": self.largest_priority.copy(), "priority": mean}

    def probabilities(self, slots):
        """P(i) of slots (runs, n): 0 where nothing is stored."""
        ranks = np.take_along_axis(self.ranks, slots, axis=1)
        stored = ranks > 0
        return np.where(stored, self._probability(np.where(stored, ranks, 1), self.sizes), 0.0)

    def sort(self, run):
        """Sort a run's heap, so that each position is a true rank; equals keep their order."""
        size = self.sizes[run]
        heap = slice(1, size + 1)
        order = np.argsort(-self.keys[run, heap], kind="stable")
        self.keys[run, heap] = self.keys[run, heap][order]
        self.slots[run, heap] = self.slots[run, heap][order]
        self.ranks[run, self.slots[run, heap]] = np.arange(1, size + 1)
        self.written[run] = 0

    def _probability(self, ranks, sizes):
        """P of ranks (runs, n) >= 1."""
        return ranks**-self.alpha / self.sums[sizes][:, None]

    def _set(self, slots, values):
        heaps = (self.keys, self.slots, self.ranks, self.sizes)
        set_keys(*heaps, self.written, self.largest_priority, slots, values)
        for run in np.flatnonzero(self.written >= self.sort_every):
            self.sort(run)
