"""One of our samplers over the transitions of a buffer of Stable-Baselines3.

All environments share it. With E environments, the transition of environment e in step t has the id
t · E + e, as in `replay.ring`, so a `Ring` maps ids to slots.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import index_array
from per_tutorial.integrations.hosted import errors_of, hosted_sampler
from per_tutorial.replay.contracts import Slots
from per_tutorial.replay.ring import Ring


class RingSampler:
    """Draws transitions from a ring, and keeps their priorities.

    It learns only how many transitions were added in all. So transitions that SB3 or a user wrote
    directly into the arrays get priorities, too, and the next call completes an interrupted one.

    Args:
        capacity: slots.
        sampler, seed, settings: as in `hosted_sampler`.
    """

    def __init__(
        self, capacity: int, sampler: str, seed: int | None, settings: dict[str, Any]
    ) -> None:
        self.sampler = hosted_sampler(sampler, capacity, seed, settings)
        self.needs_updates = getattr(self.sampler, "needs_updates", False)
        self.ring = Ring(np.zeros(1, dtype=np.int64), capacity)
        self.since_update = 0  # minibatches
        self.last_weights: NDArray = np.empty(0)  # of the last minibatch
        self.last_errors: NDArray = np.empty(0)  # TD errors of the last update

    @property
    def added(self) -> int:
        """Transitions that the sampler knows of, overwritten ones included."""
        return int(self.ring.added[0])

    def add(self, added: int) -> None:
        """Give new transitions the largest priority so far; ``added`` is how many there are now."""
        first = max(self.added, added - self.ring.capacity)
        self.sampler.add(np.arange(first, added)[None] % self.ring.capacity)
        self.ring.added[0] = added  # last, so that an interrupted call is repeated

    def sample(self, batch_size: int, beta: float) -> tuple[Slots, NDArray]:
        """Slots and weights, both (1, batch)."""
        self.since_update += 1
        slots, self.last_weights = self.sampler.sample(batch_size, self.ring.sizes, beta)
        return slots, self.last_weights

    def update(self, indices: ArrayLike, td_errors: ArrayLike) -> None:
        """See `PrioritizedReplayBuffer.update_priorities`."""
        ids = index_array("indices", indices)
        errors = errors_of(ids, td_errors).reshape(1, -1)
        self.sampler.update(self.ring.slots_to_update(ids.reshape(1, -1), errors), errors)
        self.since_update, self.last_errors = 0, errors

    def probabilities(self) -> NDArray[np.float64]:
        """(capacity,): P(i) of every slot, 0 where nothing is stored."""
        return self.sampler.probabilities(np.arange(self.ring.capacity)[None], self.ring.sizes)[0]

    def metrics(self) -> dict[str, float]:
        """See `PrioritizedReplayBuffer.metrics`."""
        metrics = getattr(self.sampler, "metrics", None)  # which a sampler may leave out
        measured = metrics(self.ring.sizes) if metrics and self.added else {}
        means = {name: float(values[0]) for name, values in measured.items()}
        if self.last_weights.size:
            means["mean_weight"] = float(self.last_weights.mean())
        if self.last_errors.size:
            means["mean_td_error"] = float(np.abs(self.last_errors).mean())
        return means
