"""One of our samplers over the transitions of a buffer of Stable-Baselines3.

All environments share it, "once for all": with E environments, the transition that environment e made
in step t has the number t · E + e, and lies in slot number % capacity. These are the rules of
`replay.storages.ring`, so its kernels serve here as well.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import index_array, plain_array
from per_tutorial.replay import Sampler
from per_tutorial.replay.contracts import Slots
from per_tutorial.replay.registry import make_sampler
from per_tutorial.replay.storages.ring import count_steps, fill_ids, fill_slots
from per_tutorial.replay.td_errors import are_valid, errors_like, refuse


class Draws:
    """Draws transitions from a ring, and keeps their priorities.

    It is told how many were added, and not of each of them: what SB3 or a user wrote into a buffer by
    hand gets its priority as well, and an interrupted call is made up for.

    Args:
        capacity: slots.
        stride: E, how far apart a transition and its successor are.
        sampler: a name in `per_tutorial.replay.SAMPLERS`.
        seed: None: from the system.
        settings: keyword arguments of the sampler.
    """

    def __init__(
        self, capacity: int, stride: int, sampler: str, seed: int | None, settings: dict[str, Any]
    ) -> None:
        self.capacity = capacity
        self.stride = stride
        self.added = 0  # transitions that the sampler knows of, those that are gone included
        self.since_update = 0  # minibatches
        self.last_weights: NDArray = np.empty(0)  # of the last minibatch, as its TD errors are
        self.last_errors: NDArray = np.empty(0)
        self.sampler: Sampler = make_sampler(sampler, capacity, seed, **settings)
        if hasattr(self.sampler, "choose"):
            raise ValueError(
                f"sampler: must draw a minibatch at once, and {sampler!r} chooses it from a larger one "
                "by fresh TD errors, for which Stable-Baselines3 has no place"
            )

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(1,): transitions stored."""
        return np.array([min(self.added, self.capacity)])

    def tell(self, added: int, dones: NDArray, timeouts: NDArray) -> None:
        """Give those that are new the largest priority so far.

        Args:
            added: how many there were in all, a multiple of the stride.
            dones, timeouts: (steps, environments), where episodes end.
        """
        first = max(self.added, added - self.capacity)
        slots = np.arange(first, added)[None] % self.capacity
        self.sampler.add(slots, np.array([added]))
        self.added = added
        ends = (dones.reshape(-1)[slots[0]] != 0) | (timeouts.reshape(-1)[slots[0]] != 0)
        self.end_episodes(slots[0, ends], dones, timeouts)

    def end_episodes(self, slots: NDArray[np.int64], dones: NDArray, timeouts: NDArray) -> None:
        """Tell a sampler that wants to know it that episodes end with ``slots`` (n,)."""
        end_episodes = getattr(self.sampler, "end_episodes", None)
        if end_episodes is None or len(slots) == 0:
            return
        lengths = np.empty((1, len(slots)), dtype=np.int64)
        flat = dones.reshape(1, -1), timeouts.reshape(1, -1)
        count_steps(*flat, np.array([self.added]), self.stride, slots[None], lengths)
        end_episodes(slots[None], lengths, self.stride)

    def sample(self, batch_size: int, beta: float) -> tuple[Slots, NDArray]:
        """Slots and weights, both (1, batch)."""
        self.since_update += 1
        slots, self.last_weights = self.sampler.sample(batch_size, self.sizes, beta)
        return slots, self.last_weights

    def ids(self, slots: Slots) -> NDArray[np.int64]:
        """(1, batch): the numbers of the transitions in ``slots``."""
        ids = np.empty_like(slots)
        fill_ids(ids, slots, np.array([self.added]), self.capacity)
        return ids

    def update(self, indices: ArrayLike, td_errors: ArrayLike) -> None:
        """See `PrioritizedReplayBuffer.update_priorities`."""
        numbers = index_array("indices", indices)
        errors = plain_array("td_errors", td_errors)
        if errors.shape == (*numbers.shape, 1):
            errors = errors[..., 0]
        errors = errors_like(numbers, errors).reshape(1, -1)
        numbers, added = numbers.reshape(1, -1), np.array([self.added])
        if not are_valid(numbers, errors, added):
            refuse(numbers, errors, added)
        slots = np.empty_like(numbers)
        fill_slots(slots, numbers, added, self.capacity)
        self.sampler.update(slots, errors)
        self.since_update, self.last_errors = 0, errors

    def probabilities(self) -> NDArray[np.float64]:
        """(capacity,): P(i) of every slot."""
        return self.sampler.probabilities(np.arange(self.capacity)[None], self.sizes)[0]

    def measures(self) -> dict[str, float]:
        """See `PrioritizedReplayBuffer.measures`."""
        measured = {} if self.added == 0 else self.sampler.measures(self.sizes)
        means = {name: float(values[0]) for name, values in measured.items()}
        if self.last_weights.size:
            means["mean_weight"] = float(self.last_weights.mean())
        if self.last_errors.size:
            means["mean_td_error"] = float(np.abs(self.last_errors).mean())
        return means
