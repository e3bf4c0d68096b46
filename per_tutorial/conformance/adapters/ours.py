"""The buffers of `per_tutorial.replay`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.conformance.adapter import OBSERVATION_SHAPE, Adapter, Drawn, Settings
from per_tutorial.conformance.plain import Plain
from per_tutorial.replay.buffers import PrioritizedReplayBuffer, RankBasedReplayBuffer, ReplayBuffer
from per_tutorial.replay.contracts import Floats, Transition
from per_tutorial.replay.replay import Replay


class ReplayAdapter(Adapter):
    """A `Replay` of one run; a subclass defines its constructor and options."""

    n_step = True
    packages = ("numba",)
    time_limit = 60.0  # numba compiles on first use
    kind: Callable[..., Replay]

    def make(self, settings: Settings) -> Replay:
        """An empty buffer."""
        return self.kind(
            settings.capacity,
            OBSERVATION_SHAPE,
            seed=settings.seed,
            n_step=settings.n_step,
            discount=settings.discount,
            **self.options(settings),
        )

    def options(self, settings: Settings) -> dict[str, Any]:
        """The further arguments of this kind of buffer."""
        return {}

    def add(self, buffer: Replay, transition: Transition) -> None:
        """Store one transition."""
        buffer.add(*transition)

    def sample(self, buffer: Replay, batch_size: int, beta: float) -> Drawn:
        """Draw a `Batch`, which has every field of a `Drawn`."""
        batch = buffer.sample(batch_size, beta)
        fields = batch._asdict()
        fields["keys"] = fields.pop("indices")
        return Drawn(**fields)

    def update(self, buffer: Replay, keys: Any, td_errors: Floats) -> None:
        """Pass the raw TD errors."""
        buffer.update_priorities(keys, td_errors)

    def save(self, buffer: Replay, path: str) -> None:
        """Write one file."""
        buffer.save(path)

    def load(self, buffer: Replay, path: str) -> None:
        """Read it."""
        buffer.load(path)


class Proportional(ReplayAdapter):
    """`PrioritizedReplayBuffer`."""

    name = "per_tutorial, proportional"
    epsilon = 1e-6
    kind: Callable[..., Replay] = PrioritizedReplayBuffer

    def options(self, settings: Settings) -> dict[str, Any]:
        return {"alpha": settings.alpha, "priority_epsilon": self.epsilon}

    def find(self, buffer: Replay, fraction: float) -> NDArray:
        """Ask the sum tree."""
        sampler: Any = buffer.sampler
        slot = sampler.sums.find(np.array([[fraction * sampler.sums.total[0]]]))
        rows: Any = buffer.storage.n_step_transitions(slot)[0]
        return rows["observation"][0, 0]


class PlainAdapter(Proportional):
    """`conformance.plain.Plain`, or a subclass of it, such as a planted bug."""

    name = "plain"
    packages = ()

    def __init__(self, buffer: type[Plain] = Plain, **options: Any) -> None:
        self.kind, self.name, self.given = buffer, buffer.__name__, options  # type: ignore[misc]

    def options(self, settings: Settings) -> dict[str, Any]:
        return super().options(settings) | self.given

    def find(self, buffer: Any, fraction: float) -> NDArray:
        masses = buffer.masses()
        return buffer.observations[buffer.find(np.array([fraction * masses.sum()]), masses)[0]]


class RankBased(ReplayAdapter):
    """`RankBasedReplayBuffer`, sorted after every write.

    Between two sorts, the position in the heap approximates the rank, as in the paper. The size of
    that difference is not a fault, so the examination looks at true ranks.
    """

    name = "per_tutorial, rank-based"
    distribution = "rank"
    kind = RankBasedReplayBuffer

    def options(self, settings: Settings) -> dict[str, Any]:
        return {"alpha": settings.alpha, "sort_every": 1}


class Uniform(ReplayAdapter):
    """`ReplayBuffer`."""

    name = "per_tutorial, uniform"
    distribution = "uniform"
    kind = ReplayBuffer
