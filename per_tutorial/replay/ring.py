"""A ring of slots for each run, and the ids of the transitions in it.

The k-th transition of a run (from 0) has the id k. It is in slot k % capacity until transition
k + capacity overwrites it. Ids, slots and sizes therefore follow from two numbers, the transitions
added and the capacity: a `Ring`. If E environments take turns in adding, transition k belongs to
environment k % E, whose next step is E slots further on: the *stride*.
"""

import numpy as np
from numpy.typing import ArrayLike

from per_tutorial.common.arguments import float_array
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Floats, Ints

NO_SLOT = -1  # instead of a slot: the transition was overwritten


@njit_cached
def fill_ids(ids, slots, added, capacity):
    """Write into `ids` (runs, batch) the id of the transition in each slot."""
    for run in range(slots.shape[0]):
        lap = added[run] // capacity * capacity  # the id at which the current lap of the ring began
        for k in range(slots.shape[1]):
            number = lap + slots[run, k]  # if the slot was written in this lap
            ids[run, k] = number if number < added[run] else number - capacity


@njit_cached
def fill_slots(slots, ids, td_errors, added, capacity):
    """Write into `slots` (runs, batch) the slot of each id, NO_SLOT for overwritten ones.

    Return whether all ids were added, and all TD errors are within ±1e100.
    """
    for run in range(ids.shape[0]):
        lap = added[run] // capacity * capacity
        for k in range(ids.shape[1]):
            if not (0 <= ids[run, k] < added[run] and abs(td_errors[run, k]) <= 1e100):
                return False
            slot = ids[run, k] - lap
            stored = ids[run, k] >= added[run] - capacity
            slots[run, k] = NO_SLOT if not stored else slot if slot >= 0 else slot + capacity
    return True


@njit_cached
def sum_n_steps(
    rewards, terminated, truncated, added, stride, slots, n_step, discount, returns, last, steps
):
    """Walk forward from each of `slots` (runs, batch), through at most `n_step` transitions.

    `rewards`, `terminated` and `truncated` are (runs, capacity), `added` is (runs,). The outputs,
    each (runs, batch), are `returns` Σ_j γ^j r_{t+j}, the `last` slots and the number of `steps`.
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
            returns[run, k], last[run, k], steps[run, k] = total, slot, length


class Ring:
    """How many transitions were added to each run, and thus which slot holds each.

    Args:
        added: (runs,) transitions ever added to each run, equally many. The array is not copied:
            its owner updates it.
        capacity: slots of each run.
    """

    def __init__(self, added: Ints, capacity: int) -> None:
        self.added = added
        self.capacity = capacity
        self._limit = np.array(capacity)  # faster for NumPy than an int

    @property
    def count(self) -> int:
        """Transitions ever added to each run."""
        return self.added.item(0)

    @property
    def sizes(self) -> Ints:
        """(runs,): transitions stored now."""
        return np.minimum(self.added, self._limit)

    def ids(self, slots: Ints) -> Ints:
        """(runs, batch): the ids of the transitions in ``slots``."""
        ids = np.empty_like(slots)
        fill_ids(ids, slots, self.added, self.capacity)
        return ids

    def since(self, before: int) -> Ints:
        """(runs, n): the slots of what was added since ``before`` and is still stored, in order."""
        ids = np.arange(max(before, self.count - self.capacity), self.count)
        return np.tile(ids % self.capacity, (len(self.added), 1))

    def slots_to_update(self, ids: Ints, td_errors: Floats) -> Ints:
        """(runs, batch): the slots of these transitions, NO_SLOT for overwritten ones.

        Raises:
            IndexError: no transition with this id was added.
            ValueError: a TD error is NaN or beyond 1e100: sums of priorities must stay finite.
        """
        slots = np.empty_like(ids)
        if not fill_slots(slots, ids, td_errors, self.added, self.capacity):
            outside = (ids < 0) | (ids >= self.count)
            if outside.any():
                raise IndexError(f"indices: must be in [0, {self.count}), got {ids[outside][0]}")
            refuse_infinite(td_errors)
        return slots


def errors_like(indices: Ints, td_errors: ArrayLike) -> Floats:
    """TD errors as floats, in the shape of ``indices``; ValueError if theirs differs."""
    errors = float_array("td_errors", td_errors)
    if errors.shape != indices.shape:
        raise ValueError(
            f"td_errors: must have the shape of indices {indices.shape}, got {errors.shape}"
        )
    return errors


def refuse_infinite(td_errors: Floats) -> None:
    """Raise ValueError if a TD error is NaN, infinite or beyond 1e100."""
    wrong = ~(np.abs(td_errors) <= 1e100)  # NaN fails the comparison as well
    if wrong.any():
        raise ValueError(f"td_errors: must be finite (|δ| ≤ 1e100), got {td_errors[wrong][0]}")
