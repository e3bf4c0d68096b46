"""One of our samplers for a library that identifies transitions by slot.

tianshou gives each environment its own ring, and torchrl leaves the order to its writers, but our
samplers expect slots to be filled from 0 on. So each slot is mapped to the next free *row* when
it is first written, and the sampler sees rows only.

Both libraries return TD errors with the slots of a minibatch, and these may hold other transitions
by then. So the last minibatches without TD errors are kept, with the ids of their transitions
(`ids`). An update of the same slots in the same order belongs to the oldest of them.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import index_array, up_to_one, whole_number
from per_tutorial.common.files import copy_arrays, join_parts, part_of, require_like
from per_tutorial.integrations.hosted import errors_of, hosted_sampler
from per_tutorial.replay.contracts import State
from per_tutorial.replay.ring import NO_SLOT, refuse_infinite

MAX_PENDING = 32  # pending minibatches that are kept; more are rarely in flight


class PendingBatch(NamedTuple):
    """A minibatch whose TD errors have not come back yet."""

    slots: NDArray[np.int64]  # (batch,)
    ids: NDArray[np.int64]  # (batch,) of the transitions that were in them


class SlotSampler:
    """Draws slots by priority, and keeps the priorities.

    If `write` is interrupted (Ctrl-C), the next call completes it.

    Args:
        capacity: slots.
        beta: β of the next draws, in [0, 1].
        sampler: a name in `per_tutorial.replay.samplers.SAMPLERS`.
        seed: of the draws; None: from the system.
        settings: of the sampler, such as ``alpha``; None: its own default.

    Raises:
        ValueError, TypeError: an argument is invalid, or the sampler has no such setting.
    """

    def __init__(
        self,
        capacity: int,
        beta: float = 0.4,
        *,
        sampler: str = "proportional",
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        self.capacity = whole_number("capacity", capacity)
        self.beta = beta
        self.sampler = hosted_sampler(sampler, self.capacity, seed, settings)
        self._made_of = {"sampler": sampler, "seed": seed, **settings}
        self.filled = 0  # slots that hold a transition
        self.added = 0  # transitions ever added
        self._rows = np.full(self.capacity, -1, dtype=np.int64)  # of the slots; −1: none yet
        self._slots = np.full(self.capacity, -1, dtype=np.int64)  # of the rows
        self._ids = np.full(self.capacity, -1, dtype=np.int64)  # by row
        self._awaited: deque[PendingBatch] = deque(maxlen=MAX_PENDING)
        self._unfinished: NDArray[np.int64] | None = None  # slots of a write, until it is done

    @property
    def beta(self) -> float:
        """β of the next draws."""
        return self._beta

    @beta.setter
    def beta(self, beta: float) -> None:
        self._beta = up_to_one("beta", beta)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(1,): slots that hold a transition."""
        return np.array([self.filled])

    def clear(self) -> None:
        """Remove all transitions. With a seed, the random stream starts again."""
        # In one step: an interrupt leaves either the old state or the new one.
        vars(self).update(vars(SlotSampler(self.capacity, self.beta, **self._made_of)))

    def sync(self, stored: int, slots: Callable[[], NDArray[np.int64]]) -> None:
        """Catch up with transitions that were added or removed without this sampler's knowledge.

        Args:
            stored: how many the library stores.
            slots: returns their slots, (stored,).
        """
        self._finish()
        if self.filled > stored:
            self.clear()
        if self.filled < stored:
            held = slots()
            self.write(held[self._rows[held] < 0])

    def write(self, slots: ArrayLike) -> None:
        """Give the transitions that were written to ``slots`` (n,) the largest priority so far.

        Raises:
            IndexError: a slot is outside [0, capacity).
        """
        self._finish()
        written = np.unique(self._checked(slots))
        if len(written):
            self._unfinished = written
            self._finish()

    def sample(self, batch_size: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Slots and importance-sampling weights, both (batch,).

        Raises:
            ValueError: nothing is stored yet.
        """
        self._finish()
        if self.filled == 0:
            raise ValueError("sample: the replay buffer is empty")
        batch_size = whole_number("batch_size", batch_size)
        rows, weights = self.sampler.sample(batch_size, self.sizes, self.beta)
        slots = self._slots[rows[0]]
        self._awaited.append(PendingBatch(slots.copy(), self._ids[rows[0]]))
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
        self._finish()
        known = self._checked(slots)
        errors = errors_of(known, td_errors)
        rows = self._rows[known]
        if (rows < 0).any():
            raise IndexError(f"indices: no transition is stored at {known[rows < 0][0]}")
        refuse_infinite(errors)
        ids = self._ids_as_drawn(known)
        if ids is not None:
            rows = np.where(self._ids[rows] == ids, rows, NO_SLOT)
        self.sampler.update(rows[None], errors[None])

    def probabilities(self) -> NDArray[np.float64]:
        """(capacity,): P(i) of every slot, 0 where nothing is stored."""
        self._finish()
        shares = np.zeros(self.capacity)
        rows = np.arange(self.filled)
        shares[self._slots[rows]] = self.sampler.probabilities(rows[None], self.sizes)[0]
        return shares

    @property
    def settings(self) -> dict[str, Any]:
        """What must match to `restore` the `state` of another one."""
        return {"capacity": self.capacity, **self.sampler.settings}

    @property
    def state(self) -> State:
        """Everything that changes, except pending minibatches."""
        self._finish()
        return join_parts(sampler=self.sampler.state) | {
            "slots": self._slots,
            "ids": self._ids,
            "counts": np.array([self.filled, self.added]),
            "beta": np.array([self.beta]),
        }

    def restore(self, state: Mapping[str, NDArray]) -> None:
        """Continue from a `state`.

        Raises:
            ValueError: it is not a state of such a sampler. Nothing has changed then.
        """
        require_like(self.state, state)
        restored = SlotSampler(self.capacity, float(state["beta"][0]), **self._made_of)
        copy_arrays(restored.sampler.state, part_of(state, "sampler"))
        copy_arrays({"slots": restored._slots, "ids": restored._ids}, state)
        restored.filled, restored.added = state["counts"].tolist()
        slots = restored._slots[: restored.filled]
        if not all(0 <= slot < self.capacity for slot in slots.tolist()):
            raise ValueError(f"state: slots must be in [0, {self.capacity}), got others")
        restored._rows[slots] = np.arange(len(slots))
        vars(self).update(vars(restored))  # in one step, as in `clear`

    def __getstate__(self) -> dict[str, Any]:
        self._finish()
        return vars(self).copy()

    def _finish(self) -> None:
        """Carry out a write. After an interrupt it is done again, until it is counted."""
        written = self._unfinished
        if written is None:
            return
        rows = self._rows[written]
        new = (rows < 0) | (rows >= self.filled)
        filled, added = self.filled + int(new.sum()), self.added + len(rows)
        rows[new] = np.arange(self.filled, filled)
        self._rows[written], self._slots[rows] = rows, written
        self._ids[rows] = np.arange(self.added, added)
        self.sampler.add(rows[None])
        vars(self).update(filled=filled, added=added, _unfinished=None)  # all at once

    def _checked(self, slots: ArrayLike) -> NDArray[np.int64]:
        known = np.atleast_1d(index_array("indices", slots))
        if known.ndim != 1:
            raise ValueError(f"indices: must have the shape (batch,), got {known.shape}")
        outside = (known < 0) | (known >= self.capacity)
        if outside.any():
            raise IndexError(f"indices: must be in [0, {self.capacity}), got {known[outside][0]}")
        return known

    def _ids_as_drawn(self, slots: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The ids in the oldest pending minibatch with exactly these slots, if there is one."""
        for k, draw in enumerate(self._awaited):
            if np.array_equal(draw.slots, slots):
                del self._awaited[k]
                return draw.ids
        return None
