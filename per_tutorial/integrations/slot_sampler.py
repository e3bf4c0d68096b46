"""What all integrations share: one of our samplers for one run, inside another library's buffer.

`SlotSampler` is for libraries that identify transitions by slot. tianshou gives each environment
its own ring, and torchrl leaves the order to its writers, but our samplers expect slots to be
filled from 0 on. So each slot is mapped to the next free *row* when it is first written, and the
sampler sees rows only.

Both libraries return TD errors with the slots of a minibatch, and these may hold other transitions
by then. So the last minibatches without TD errors are kept, with the ids of their transitions. An
update of the same slots in the same order belongs to the oldest of them.
"""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import index_array, plain_array, up_to_one, whole_number
from per_tutorial.common.files import copy_arrays, join_parts, part_of
from per_tutorial.replay.contracts import Floats, Sampler, State
from per_tutorial.replay.ring import NO_SLOT, errors_like, refuse_infinite
from per_tutorial.replay.samplers import make_sampler

MAX_PENDING = 32  # pending minibatches that are kept; more are rarely in flight


def errors_of(indices: NDArray[np.int64], td_errors: ArrayLike) -> Floats:
    """TD errors (batch,) or (batch, 1), as floats of the shape of ``indices`` (batch,)."""
    errors = plain_array("td_errors", td_errors)
    if errors.shape == (*indices.shape, 1):
        errors = errors[..., 0]
    return errors_like(indices, errors)


def sampler_maker(name: str, capacity: int, **settings: Any) -> Callable[..., Sampler]:
    """What makes the sampler of this name; settings that are None keep the sampler's own default.

    Raises, when it is called, what `make_sampler` raises.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    return partial(make_sampler, name, capacity, **given)


class SlotSampler:
    """Draws slots by priority, and keeps the priorities.

    Args:
        make: makes an empty sampler for one run, as `sampler_maker` returns it.
    """

    def __init__(self, make: Callable[[], Sampler]) -> None:
        self._make = make
        self.sampler: Any = make()
        self.capacity = self.sampler.capacity  # slots
        self.filled = 0  # slots that hold a transition
        self.added = 0  # transitions ever added
        self._rows = np.full(self.capacity, -1, dtype=np.int64)  # of the slots; −1: none yet
        self._slots = np.full(self.capacity, -1, dtype=np.int64)  # of the rows
        self._ids = np.full(self.capacity, -1, dtype=np.int64)  # by row
        # Slots and ids, both (batch,), of minibatches whose TD errors have not come back yet.
        self._pending: deque[tuple[NDArray, NDArray]] = deque(maxlen=MAX_PENDING)

    def clear(self) -> None:
        """Remove all transitions. With a seed, the random stream starts again."""
        # In one step: an interrupt leaves either the old state or the new one.
        vars(self).update(vars(SlotSampler(self._make)))

    def sync(self, stored: int, slots: Callable[[], NDArray[np.int64]]) -> None:
        """Catch up with a library that has ``stored`` transitions, in the ``slots`` (stored,)."""
        if self.filled > stored:
            self.clear()
        if self.filled < stored:
            held = slots()
            self.write(held[self._is_new(self._rows[held])])

    def write(self, slots: ArrayLike) -> None:
        """Give the transitions that were written to ``slots`` (n,) the largest priority so far.

        Nothing is counted before all is written, so an interrupt (Ctrl-C) leaves a whole sampler,
        and `sync` tells it again of transitions that are new.
        """
        written = np.unique(self._checked(slots))
        if len(written) == 0:
            return
        rows = self._rows[written]
        new = self._is_new(rows)
        filled, added = self.filled + int(new.sum()), self.added + len(rows)
        rows[new] = np.arange(self.filled, filled)
        self._rows[written], self._slots[rows] = rows, written
        self._ids[rows] = np.arange(self.added, added)
        self.sampler.add(rows[None])
        self.filled, self.added = filled, added

    def _is_new(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these rows of slots hold no transition yet."""
        return (rows < 0) | (rows >= self.filled)

    def sample(self, batch_size: int, beta: float) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Slots and importance-sampling weights, both (batch,).

        Raises:
            ValueError: nothing is stored, or β is not in [0, 1].
        """
        if self.filled == 0:
            raise ValueError("sample: the replay buffer is empty")
        batch_size = whole_number("batch_size", batch_size)
        beta = up_to_one("beta", beta)
        rows, _, weights = self.sampler.sample(batch_size, np.array([self.filled]), beta)
        slots = self._slots[rows[0]]
        self._pending.append((slots.copy(), self._ids[rows[0]]))
        return slots, weights[0].astype(np.float32)

    def update(self, slots: ArrayLike, td_errors: ArrayLike) -> None:
        """Update priorities from raw TD errors; |δ|, ε and α are applied here.

        Args:
            slots: (batch,) exactly as drawn, so that transitions overwritten since are skipped. Any
                other slots refer to what they hold now. Of duplicates, the last one counts.
            td_errors: (batch,) or (batch, 1), with or without sign, NumPy or torch.

        Raises:
            IndexError: a slot holds no transition.
            ValueError: a TD error is not finite, or the shapes differ.
        """
        known = self._checked(slots)
        errors = errors_of(known, td_errors)
        rows = self._rows[known]
        if (new := self._is_new(rows)).any():
            raise IndexError(f"indices: no transition is stored at {known[new][0]}")
        refuse_infinite(errors)
        for k, (drawn, ids) in enumerate(self._pending):
            if np.array_equal(drawn, known):
                rows = np.where(self._ids[rows] == ids, rows, NO_SLOT)
                del self._pending[k]
                break
        self.sampler.update(rows[None], errors[None])

    def probabilities(self) -> NDArray[np.float64]:
        """(capacity,): P(i) of every slot, 0 where nothing is stored."""
        shares, rows = np.zeros(self.capacity), np.arange(self.filled)
        sizes = np.array([self.filled])
        shares[self._slots[rows]] = self.sampler.probabilities(rows[None], sizes)[0]
        return shares

    @property
    def settings(self) -> dict[str, Any]:
        """What must match to `restore` the `state` of another one."""
        return {"capacity": self.capacity, **self.sampler.settings}

    @property
    def state(self) -> State:
        """Everything that changes, except pending minibatches."""
        return join_parts(sampler=self.sampler.state) | {
            "slots": self._slots,
            "ids": self._ids,
            "counts": np.array([self.filled, self.added]),
        }

    def restore(self, state: Mapping[str, NDArray]) -> None:
        """Continue from a `state` with arrays like its own; ValueError, with no change, if not."""
        new = SlotSampler(self._make)
        copy_arrays(new.sampler.state, part_of(state, "sampler"))
        copy_arrays({"slots": new._slots, "ids": new._ids}, state)
        new.filled, new.added = state["counts"].tolist()
        slots = new._slots[: new.filled]
        if ((slots < 0) | (slots >= self.capacity)).any():
            raise ValueError(f"state: slots must be in [0, {self.capacity}), got others")
        new._rows[slots] = np.arange(len(slots))
        vars(self).update(vars(new))  # in one step, as in `clear`

    def _checked(self, slots: ArrayLike) -> NDArray[np.int64]:
        known = np.atleast_1d(index_array("indices", slots))
        if known.ndim != 1:
            raise ValueError(f"indices: must have the shape (batch,), got {known.shape}")
        outside = (known < 0) | (known >= self.capacity)
        if outside.any():
            raise IndexError(f"indices: must be in [0, {self.capacity}), got {known[outside][0]}")
        return known
