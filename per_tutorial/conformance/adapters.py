"""The adapters of this package's buffers, and those that files hold, by name."""

import os
import runpy
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from per_tutorial.conformance.adapter import (
    OBSERVATION_SHAPE,
    Adapter,
    BufferSettings,
    Distribution,
    Minibatch,
    as_adapter,
)
from per_tutorial.replay.buffers import PrioritizedReplayBuffer, RankBasedReplayBuffer, ReplayBuffer
from per_tutorial.replay.contracts import Floats, Transition
from per_tutorial.replay.replay import Replay


class Uniform(Adapter):
    """`ReplayBuffer`; subclasses have another `kind`."""

    name = "per_tutorial, uniform"
    distribution: ClassVar[Distribution] = "uniform"
    n_step = True
    packages: ClassVar[tuple[str, ...]] = ("numba",)
    kind: Callable[..., Replay] = ReplayBuffer
    _given: Mapping[str, Any] = {}  # further arguments of this kind of buffer

    def make(self, settings: BufferSettings) -> Replay:
        options = {"seed": settings.seed, "n_step": settings.n_step, "discount": settings.discount}
        options |= {"alpha": settings.alpha} if self.distribution != "uniform" else {}
        options |= {"priority_epsilon": self.epsilon} if self.epsilon else {}
        return self.kind(settings.capacity, OBSERVATION_SHAPE, **options, **self._given)

    def add(self, buffer: Replay, transition: Transition) -> None:
        buffer.add(*transition)

    def sample(self, buffer: Replay, batch_size: int, beta: float) -> Minibatch:
        batch = buffer.sample(batch_size, beta)
        shared = batch._asdict().keys() & Minibatch.__annotations__.keys()
        return Minibatch(keys=batch.indices, **{name: getattr(batch, name) for name in shared})

    def update(self, buffer: Replay, keys: Any, td_errors: Floats) -> None:
        buffer.update_priorities(keys, td_errors)

    def save(self, buffer: Replay, path: str) -> None:
        buffer.save(path)

    def load(self, buffer: Replay, path: str) -> None:
        buffer.load(path)


class Proportional(Uniform):
    """`PrioritizedReplayBuffer`."""

    name = "per_tutorial, proportional"
    distribution = "proportional"
    epsilon = 1e-6
    kind = PrioritizedReplayBuffer


class RankBased(Uniform):
    """`RankBasedReplayBuffer`, sorted after every write: between two sorts, ranks are approximate
    on purpose, as in the paper."""

    name = "per_tutorial, rank-based"
    distribution = "rank"
    kind = RankBasedReplayBuffer
    _given = {"sort_every": 1}


#: name → class
ADAPTERS: dict[str, type[Adapter]] = {
    "proportional": Proportional,
    "rank": RankBased,
    "uniform": Uniform,
}


def find_adapter(name: str) -> Adapter:
    """The adapter with a name in `ADAPTERS`, or from ``path/to/file.py:ClassName``.

    What it imports at its top is taken from its folder first, later imports from there last. An
    adapter without a `name` of its own has this one.

    Raises:
        ValueError, FileNotFoundError, TypeError: there is none, or it cannot be used; says why.
        ImportError: the library is not installed.

    Example:
        >>> from per_tutorial.conformance import find_adapter
        >>> find_adapter("rank").distribution
        'rank'
    """
    if name in ADAPTERS:
        return ADAPTERS[name]()
    path, colon, kind = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        known = f"{', '.join(ADAPTERS)}, or {name if name.endswith('.py') else 'file.py'}:ClassName"
        raise ValueError(f"NAME: must be one of {known}, got {name!r}")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"NAME: no file {path!r}")
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)  # else the current folder's modules come first
    try:
        found = runpy.run_path(path).get(kind)
    except ImportError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"NAME: {path!r} cannot be run: {said}") from error
    finally:
        sys.path.remove(folder)
        sys.path.append(folder)  # `cpprb.py` must not hide the library that its `make` imports
    if not isinstance(found, type):
        raise ValueError(f"NAME: {path!r} has no class {kind!r}")
    return as_adapter(found, name)
