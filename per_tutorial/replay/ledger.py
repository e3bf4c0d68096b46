"""What a sampler knows of the transitions that a buffer stores: one ledger for all buffers.

Whoever stores transitions writes them first and counts them last, in an array `added`. What is
counted there is whole. A `Ledger` compares that count with what its sampler knows, and reports the
rest before the sampler is next used: so a call that Ctrl-C cut short is completed by the next one.
"""

import warnings
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.files import AnyArray, copy_arrays
from per_tutorial.replay.contracts import Floats, Ints, Sampler, Slots, State
from per_tutorial.replay.ring import NO_SLOT, Ring

DRAWS_WITHOUT_UPDATE = 1000  # this many draws without an update mean training, not inspection
REMEDY = "call update_priorities with the TD errors of each minibatch"


class Ledger:
    """A sampler, and the ring of transitions that it draws from.

    Args:
        sampler: one of `per_tutorial.replay.samplers`, or your own.
        added: as in `Ring`.
        remedy: what the warning of draws without an update advises.

    Attributes:
        ring: which slot holds which transition.
    """

    def __init__(self, sampler: Sampler, added: Ints, remedy: str = REMEDY) -> None:
        self.sampler = sampler
        self.ring = Ring(added, sampler.capacity)
        self.remedy = remedy
        self._known = 0  # how many transitions of each run the sampler knows of
        self._sizes = self.ring.sizes  # how many are stored of these
        # Draws since the start; None after an update, or if none is needed
        self._draws: int | None = 0 if getattr(sampler, "needs_updates", False) else None

    def add(self, slots: Slots) -> None:
        """Report the transitions that were just written to ``slots`` (runs, n) and counted.

        Before these, there were no others: `catch_up` before you write.
        """
        self.sampler.add(slots)
        if self._known < self.ring.capacity:  # saves time: sizes of full rings don't change
            self._sizes = self.ring.sizes
        self._known = self.ring.count  # last: the sampler may hear of a slot twice

    def catch_up(self) -> None:
        """Report what was counted and not reported yet."""
        if self._known != self.ring.count:
            self.add(self.ring.since(self._known))

    def sample(self, batch_size: int, beta: float) -> tuple[Slots, NDArray, NDArray]:
        """Slots, their P(i) and their weights, as `Sampler.sample` returns them.

        Warns, once, if so many minibatches were drawn without any update that priorities mean
        nothing.
        """
        self.catch_up()
        if self._draws is not None:
            self._draws += 1
            if self._draws == DRAWS_WITHOUT_UPDATE:
                warnings.warn(
                    f"{DRAWS_WITHOUT_UPDATE} minibatches were drawn without any TD error, so "
                    f"priorities mean nothing yet: {self.remedy}",
                    stacklevel=3,
                )
        return self.sampler.sample(batch_size, self._sizes, beta)

    def update(self, slots: Slots, td_errors: Floats) -> None:
        """Pass checked TD errors to the sampler, both (runs, batch); it skips `NO_SLOT`."""
        self.catch_up()
        self._draws = None  # never warn again
        self.sampler.update(slots, td_errors)

    def probabilities(self, ids: Ints | None = None) -> Floats:
        """P(i) of the transitions with these ids (runs, n); None: of all, the oldest first.

        0 for overwritten ones. Raises IndexError for an id that was not added.
        """
        self.catch_up()
        if ids is None:
            slots = self.ring.since(0)
        else:
            slots = self.ring.slots_to_update(ids, np.zeros(ids.shape))
        shares = self.sampler.probabilities(np.maximum(slots, 0), self.ring.sizes)
        return np.where(slots == NO_SLOT, 0.0, shares)

    @property
    def state(self) -> State:
        """The sampler's."""
        self.catch_up()
        return self.sampler.state

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Copy a checked state of a sampler that knows all that ``added`` counts now."""
        copy_arrays(self.sampler.state, state)
        self._known, self._sizes = self.ring.count, self.ring.sizes
