"""The buffers of `per_tutorial.replay`, and the plain one."""

from collections.abc import Callable
from typing import Any, ClassVar

from per_tutorial.conformance.adapter import OBSERVATION_SHAPE, Adapter, Drawn, Settings
from per_tutorial.conformance.plain import Plain
from per_tutorial.replay.buffers import PrioritizedReplayBuffer, RankBasedReplayBuffer, ReplayBuffer
from per_tutorial.replay.contracts import Floats, Transition
from per_tutorial.replay.replay import Replay


class ReplayAdapter(Adapter):
    """A `Replay` of one run; a subclass defines its constructor and options."""

    n_step = True
    packages: ClassVar[tuple[str, ...]] = ("numba",)
    kind: Callable[..., Replay]

    def make(self, settings: Settings) -> Replay:
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
        buffer.add(*transition)

    def sample(self, buffer: Replay, batch_size: int, beta: float) -> Drawn:
        """A `Batch` begins with the fields that a `Drawn` has, but for the weights' place."""
        *fields, weights, keys = buffer.sample(batch_size, beta)[:7]
        return Drawn(fields[0], weights, keys, *fields[1:])

    def update(self, buffer: Replay, keys: Any, td_errors: Floats) -> None:
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


class PlainAdapter(Proportional):
    """`conformance.plain.Plain`, or a subclass of it, such as a planted bug."""

    packages = ()

    def __init__(self, buffer: type[Plain] = Plain, **options: Any) -> None:
        self.kind, self.name, self.given = buffer, buffer.__name__, options  # type: ignore[misc, assignment]

    def options(self, settings: Settings) -> dict[str, Any]:
        return super().options(settings) | self.given


class RankBased(ReplayAdapter):
    """`RankBasedReplayBuffer`, sorted after every write: between two sorts, ranks are approximate
    on purpose, as in the paper."""

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
