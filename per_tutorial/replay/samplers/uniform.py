"""Uniform replay: every stored transition is equally likely (notebook 02)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import whole_number
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Floats, Ints, Slots, State
from per_tutorial.replay.random_streams import RandomStreams, next_uniform


@njit_cached
def draw_uniform(states, sizes, slots, probabilities, weights):
    """Write into `slots` (runs, batch) numbers in [0, sizes[run]), all equally likely.

    Also P(i), and weights of 1.
    """
    for run in range(slots.shape[0]):
        share = 1 / sizes[run]
        for k in range(slots.shape[1]):
            slots[run, k] = int(next_uniform(states, run) * sizes[run])
            probabilities[run, k], weights[run, k] = share, 1.0


class UniformSampler:
    """Every stored transition is equally likely, drawn with replacement (notebook 02).

    Args:
        capacity: slots per run.
        seeds: one int per run.

    Example:
        >>> import numpy as np
        >>> from per_tutorial.replay import UniformSampler
        >>> sampler = UniformSampler(capacity=100, seeds=[0, 1])  # two runs
        >>> slots, chances, weights = sampler.sample(8, sizes=np.array([50, 20]), beta=0.4)
        >>> slots.shape, np.isclose(chances[1], 1 / 20).all().item(), weights.min().item()
        ((2, 8), True, 1.0)
    """

    def __init__(self, capacity: int, seeds: Sequence[int]) -> None:
        self.capacity = whole_number("capacity", capacity)
        self.streams = RandomStreams(seeds, "replay")
        self.runs = len(self.streams.states)
        self.settings: dict[str, Any] = {"sampler": "uniform"}

    def add(self, slots: Slots) -> None:
        """Nothing to record: all slots are alike."""

    def sample(self, batch_size: int, sizes: Ints, beta: float) -> tuple[Slots, NDArray, NDArray]:
        """Slots, P(i) and weights, (runs, batch) each; the weights are all 1."""
        shape = self.runs, batch_size
        slots, weights = np.empty(shape, np.int64), np.empty(shape, np.float32)
        probabilities = np.empty(shape, np.float32)
        draw_uniform(self.streams.states, sizes, slots, probabilities, weights)
        return slots, probabilities, weights

    def update(self, slots: Slots, td_errors: Floats) -> None:
        """Nothing to record: TD errors do not matter here."""

    def probabilities(self, slots: Slots, sizes: Ints) -> Floats:
        """P(i) of slots (runs, n), which hold transitions."""
        return np.ones(slots.shape) / sizes[:, None]

    @property
    def state(self) -> State:
        """The random streams."""
        return {"streams": self.streams.states}
