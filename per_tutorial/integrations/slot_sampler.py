"""What all integrations share: one of our samplers for one run, inside another library's buffer.

`SlotSampler` is for libraries that identify transitions by slot. tianshou gives each environment
its own ring, and torchrl leaves the order to its writers, but our samplers expect slots to be
filled from 0 on. So each slot is mapped to the next free *row* when it is first written, and the
sampler sees rows only.

Both libraries return TD errors with the slots of a minibatch, and these may hold other transitions
by then. So the last minibatches without TD errors are kept. An update of the same slots in the same
order belongs to the oldest of them, and skips transitions that were written since. If a minibatch
never gets TD errors (it served validation, say), the next update of its slots in its order is taken
for its own. That happens only with very few slots, or in minibatches of one or two.
"""

import inspect
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import (
    indices_below,
    one_of,
    plain_array,
    up_to_one,
    whole_number,
)
from per_tutorial.common.files import copy_arrays, join_parts, part_of
from per_tutorial.replay.contracts import Floats, Sampler, State
from per_tutorial.replay.ledger import Ledger
from per_tutorial.replay.random_streams import seeds_for
from per_tutorial.replay.ring import NO_SLOT, errors_like, refuse_infinite
from per_tutorial.replay.samplers import SAMPLERS

MAX_PENDING = 32  # pending minibatches that are kept; more are rarely in flight
REMEDY = (
    "write the TD errors of each minibatch back, by update_weight in tianshou, and by "
    "update_tensordict_priority or update_priority in torchrl"
)


def errors_of(indices: NDArray[np.int64], td_errors: ArrayLike) -> Floats:
    """TD errors (batch,) or (batch, 1), as floats of the shape of ``indices`` (batch,)."""
    errors = plain_array("td_errors", td_errors)
    if errors.shape == (*indices.shape, 1):
        errors = errors[..., 0]
    return errors_like(indices, errors)


def make_sampler(name: str, capacity: int, seed: int | None = None, **settings: Any) -> Sampler:
    """The sampler of this name, for one run; ``seed`` None: a random one.

    Settings that are None keep the sampler's own default.

    Raises:
        ValueError: there is no sampler of this name, or a setting has a wrong value.
        TypeError: the sampler has no such setting.
    """
    kind = SAMPLERS[one_of("sampler", name, SAMPLERS)]
    parameters = inspect.signature(kind).parameters.values()
    known = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    given = {setting: value for setting, value in settings.items() if value is not None}
    for unknown in sorted(given.keys() - known):
        raise TypeError(
            f"{unknown}: the sampler {name!r} has no such setting; its settings are: "
            f"{', '.join(known) or 'none'}"
        )
    return kind(capacity, seeds_for(seed, 1), **given)


class SlotSampler:
    """Draws slots by priority, and keeps the priorities.

    Args:
        make: makes an empty sampler for one run, such as a `partial` of `make_sampler`.
    """

    def __init__(self, make: Callable[[], Sampler]) -> None:
        self._make = make
        # Each row is added once to the ledger's ring, which counts the slots that are filled.
        self._ledger = Ledger(make(), np.zeros(1, dtype=np.int64), REMEDY)
        self.capacity = self._ledger.sampler.capacity  # slots
        self._rows = np.full(self.capacity, -1, dtype=np.int64)  # of the slots; −1: none yet
        self._slots = np.full(self.capacity, -1, dtype=np.int64)  # of the rows
        self._versions = np.zeros(self.capacity, dtype=np.int64)  # how often rows were written
        # Slots and versions, both (batch,), of minibatches whose TD errors have not come back yet.
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
            self.write(held[self._is_new(held)])

    def write(self, slots: ArrayLike) -> None:
        """Give the transitions that were written to ``slots`` (n,) the largest priority so far.

        Nothing is counted before all is written. So after an interrupt (Ctrl-C), `sync` finds the
        new transitions, or the ledger reports them; those in used slots may keep old priorities.
        """
        written = np.unique(self._checked(slots))
        if len(written) == 0:
            return
        self._ledger.catch_up()
        rows, new = self._rows[written], self._is_new(written)
        filled = self.filled + int(new.sum())
        rows[new] = np.arange(self.filled, filled)
        self._rows[written], self._slots[rows] = rows, written
        self._versions[rows] += 1
        self._ledger.ring.added[0] = filled
        self._ledger.add(rows[None])

    @property
    def filled(self) -> int:
        """Slots that hold a transition."""
        return self._ledger.ring.count

    def _is_new(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these slots hold no transition yet; an interrupted `write` may leave rows."""
        rows = self._rows[slots]
        return (rows < 0) | (rows >= self.filled) | (self._slots[rows] != slots)

    def sample(self, batch_size: int, beta: float) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Slots and importance-sampling weights, both (batch,).

        Raises:
            ValueError: nothing is stored, or β is not in [0, 1].
        """
        if self.filled == 0:
            raise ValueError("sample: the replay buffer is empty")
        batch_size = whole_number("batch_size", batch_size)
        beta = up_to_one("beta", beta)
        rows, _, weights = self._ledger.sample(batch_size, beta)
        slots = self._slots[rows[0]]
        self._pending.append((slots.copy(), self._versions[rows[0]]))
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
        if (new := self._is_new(known)).any():
            raise IndexError(f"indices: no transition is stored at {known[new][0]}")
        refuse_infinite(errors)
        waiting = [k for k, (drawn, _) in enumerate(self._pending) if np.array_equal(drawn, known)]
        if waiting:
            rows = np.where(self._versions[rows] == self._pending[waiting[0]][1], rows, NO_SLOT)
        self._ledger.update(rows[None], errors[None])
        if waiting:  # last: after an interrupt, the same update finds its minibatch again
            del self._pending[waiting[0]]

    def probabilities(self) -> NDArray[np.float64]:
        """(capacity,): P(i) of every slot, 0 where nothing is stored."""
        shares = np.zeros(self.capacity)
        shares[self._slots[: self.filled]] = self._ledger.probabilities()[0]
        return shares

    @property
    def settings(self) -> dict[str, Any]:
        """What must match to `restore` the `state` of another one."""
        return {"capacity": self.capacity, **self._ledger.sampler.settings}

    @property
    def state(self) -> State:
        """Everything that changes, except pending minibatches and what is compared with them."""
        return join_parts(sampler=self._ledger.state) | self._arrays

    @property
    def _arrays(self) -> State:
        return {"slots": self._slots, "filled": self._ledger.ring.added}

    def restore(self, state: Mapping[str, NDArray]) -> None:
        """Continue from a `state` with arrays like its own; ValueError, with no change, if not."""
        new = SlotSampler(self._make)
        copy_arrays(new._arrays, state)
        new._ledger.restore(part_of(state, "sampler"))
        slots = new._slots[: new.filled]
        if ((slots < 0) | (slots >= self.capacity)).any():
            raise ValueError(f"state: slots must be in [0, {self.capacity}), got others")
        new._rows[slots] = np.arange(len(slots))
        vars(self).update(vars(new))  # in one step, as in `clear`

    def _checked(self, slots: ArrayLike) -> NDArray[np.int64]:
        known = np.atleast_1d(indices_below(self.capacity, slots))
        if known.ndim != 1:
            raise ValueError(f"indices: must have the shape (batch,), got {known.shape}")
        return known
