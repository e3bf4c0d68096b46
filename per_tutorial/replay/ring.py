"""A ring of slots for each run, and the ids of the transitions in it.

The k-th transition of a run (from 0) has the id k. It is in slot k % capacity until transition
k + capacity overwrites it. Ids, slots and sizes therefore follow from two numbers, the transitions
added and the capacity: a `Ring`. If E environments take turns in adding, transition k belongs to
environment k % E, whose next step is E slots further on: the *stride*.
"""

import numpy as np
from numpy.typing import NDArray

from per_tutorial.replay.compiling import njit_cached

NO_SLOT = -1  # instead of a slot: nothing was added, or the transition was overwritten


@njit_cached
def fill_ids(ids, slots, added, capacity):
    """Write into `ids` (runs, batch) the id of the transition in each slot."""
    for run in range(slots.shape[0]):
        lap = added[run] // capacity * capacity  # the id at which the current lap of the ring began
        for k in range(slots.shape[1]):
            number = lap + slots[run, k]  # if the slot was written in this lap
            ids[run, k] = number if number < added[run] else number - capacity


@njit_cached
def fill_slots(slots, ids, added, capacity):
    """Write into `slots` (runs, batch) the slot of each id, NO_SLOT for overwritten ones."""
    for run in range(ids.shape[0]):
        lap = added[run] // capacity * capacity
        for k in range(ids.shape[1]):
            slot = ids[run, k] - lap
            stored = ids[run, k] >= added[run] - capacity
            slots[run, k] = NO_SLOT if not stored else slot if slot >= 0 else slot + capacity


@njit_cached
def claim_slots(slots, counts, added, valid, capacity):
    """Write into `slots` (runs, n) where the next n transitions of each run go.

    `counts` (runs,) becomes what `added` (runs,) will be after these. Runs that are not `valid` add
    nothing: NO_SLOT.
    """
    runs, n = slots.shape
    for run in range(runs):
        for k in range(n):
            slots[run, k] = (added[run] + k) % capacity if valid[run] else NO_SLOT
        counts[run] = added[run] + n if valid[run] else added[run]


@njit_cached
def sum_n_steps(
    rewards,
    terminated,
    truncated,
    added,
    stride,
    slots,
    n_step,
    discount,
    returns,
    last_slots,
    steps,
):
    """Walk forward from each of `slots` (runs, batch), through at most `n_step` transitions.

    `rewards`, `terminated` and `truncated` are (runs, capacity), `added` is (runs,). The outputs,
    each (runs, batch), are `returns` Σ_j γ^j r_{t+j}, `last_slots` and the number of `steps`.
    """
    runs, batch = slots.shape
    capacity = rewards.shape[1]
    for run in range(runs):
        for k in range(batch):
            slot = slots[run, k]
            # The slots after the newest transitions hold the oldest ones: no successors.
            newer = (added[run] - 1 - slot) % capacity // stride
            total, factor, length = 0.0, 1.0, 0
            while True:
                total += factor * rewards[run, slot]
                factor *= discount
                length += 1
                over = terminated[run, slot] or truncated[run, slot]
                if over or length == n_step or length > newer:
                    break
                slot = (slot + stride) % capacity
            returns[run, k], last_slots[run, k], steps[run, k] = total, slot, length


@njit_cached
def count_steps(terminated, truncated, added, stride, slots, lengths):
    """Write into `lengths` (runs, n) how many steps are stored of the episodes that end in `slots`.

    0 where no episode ends, and for NO_SLOT. The walk stops at the oldest transition: the slot
    before it holds the newest one.
    """
    capacity = terminated.shape[1]
    for run in range(slots.shape[0]):
        for k in range(slots.shape[1]):
            slot, length = slots[run, k], 0
            newer = (added[run] - 1 - slot) % capacity
            older = min(added[run], capacity) - 1 - newer
            ends = slot >= 0 and (terminated[run, slot] or truncated[run, slot])
            while ends:
                length += 1
                slot = (slots[run, k] - length * stride) % capacity
                if length * stride > older or terminated[run, slot] or truncated[run, slot]:
                    break
            lengths[run, k] = length


class Ring:
    """How many transitions were added to each run, and thus which slot holds each.

    Args:
        added: (runs,) transitions ever added. The array is not copied: its owner updates it.
        capacity: slots of each run.

    Example:
        >>> import numpy as np
        >>> from per_tutorial.replay.ring import Ring
        >>> ring = Ring(np.array([5]), capacity=3)  # one run; transitions 2, 3 and 4 are stored
        >>> ring.sizes.tolist(), ring.ids(np.array([[0, 1, 2]])).tolist()
        ([3], [[3, 4, 2]])
        >>> ring.slots(np.array([[4, 0]])).tolist()  # 0 was overwritten
        [[1, -1]]
    """

    def __init__(self, added: NDArray[np.int64], capacity: int) -> None:
        self.added = added
        self.capacity = capacity
        self._limit = np.array(capacity)  # faster for NumPy than an int

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.added)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(runs,): transitions stored now."""
        return np.minimum(self.added, self._limit)

    def ids(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """(runs, batch): the ids of the transitions in ``slots``."""
        ids = np.empty_like(slots)
        fill_ids(ids, slots, self.added, self.capacity)
        return ids

    def slots(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """(runs, batch): the slots of transitions, NO_SLOT for overwritten ones."""
        slots = np.empty_like(ids)
        fill_slots(slots, ids, self.added, self.capacity)
        return slots

    def newest(self, count: int) -> NDArray[np.int64]:
        """(runs, count): the slots of the newest transitions, NO_SLOT where there are fewer."""
        ids = self.added[:, None] + np.arange(-count, 0)
        return np.where(ids < 0, NO_SLOT, ids % self.capacity)

    def episode_lengths(
        self, slots: NDArray[np.int64], terminated: NDArray, truncated: NDArray, stride: int
    ) -> NDArray[np.int64]:
        """(runs, n): how many steps are stored of the episodes that end in ``slots``; 0 for none.

        Args:
            slots: (runs, n); NO_SLOT is allowed.
            terminated, truncated: (runs, capacity).
            stride: slots from a step to the next one of its episode.
        """
        lengths = np.empty(slots.shape, dtype=np.int64)
        count_steps(terminated, truncated, self.added, stride, slots, lengths)
        return lengths
