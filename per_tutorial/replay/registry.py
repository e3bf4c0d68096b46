"""Storages and samplers by name, and how to make a replay buffer of them.

Trainings, the command line and the studies use these names. A new sampler is one file in
`samplers/`, its import and one line here, and its own test.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from per_tutorial.common.arguments import one_of
from per_tutorial.replay.contracts import Sampler, Storage, require
from per_tutorial.replay.random_streams import seeds_for
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.samplers.laber import LaberSampler
from per_tutorial.replay.samplers.lap import LapSampler
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.samplers.rank_based import RankBasedSampler
from per_tutorial.replay.samplers.reaper import ReaperSampler
from per_tutorial.replay.samplers.relo import ReloSampler
from per_tutorial.replay.samplers.uniform import UniformSampler
from per_tutorial.replay.storages.frames import FrameStorage
from per_tutorial.replay.storages.transitions import TransitionStorage

#: The samplers by name; `register_sampler` adds one.
#:
#: >>> SAMPLERS["proportional"].__name__
#: 'ProportionalSampler'
SAMPLERS: dict[str, Callable[..., Sampler]] = {}
#: The storages by name; `register_storage` adds one.
#:
#: >>> STORAGES["frames"].__name__
#: 'FrameStorage'
STORAGES: dict[str, Callable[..., Storage]] = {}


def register_sampler(name: str, sampler: type) -> None:
    """Register a sampler under a name; it replaces any sampler of that name.

    Args:
        name: what trainings and studies call it.
        sampler: a class; see `contracts.Sampler`.

    Raises:
        TypeError: the class lacks members of a `Sampler`; the error names them.

    Example:
        >>> from per_tutorial.replay import SAMPLERS, UniformSampler, register_sampler
        >>> class MySampler(UniformSampler):
        ...     pass  # override `sample` to draw in another way
        >>> register_sampler("mine", MySampler)
        >>> SAMPLERS["mine"] is MySampler  # trainings take sampler="mine" now
        True
        >>> del SAMPLERS["mine"]
    """
    require("sampler", sampler, Sampler)
    SAMPLERS[name] = sampler


def register_storage(name: str, storage: type) -> None:
    """Register a storage under a name; TypeError if it lacks members of `contracts.Storage`.

    Example:
        >>> from per_tutorial.replay import STORAGES, TransitionStorage, register_storage
        >>> class MyStorage(TransitionStorage):
        ...     pass  # override what you like
        >>> register_storage("mine", MyStorage)
        >>> STORAGES["mine"] is MyStorage
        True
        >>> del STORAGES["mine"]
    """
    require("storage", storage, Storage)
    STORAGES[name] = storage


register_storage("transitions", TransitionStorage)
register_storage("frames", FrameStorage)

register_sampler("uniform", UniformSampler)
register_sampler("proportional", ProportionalSampler)
register_sampler("rank", RankBasedSampler)
register_sampler("lap", LapSampler)
register_sampler("reaper", ReaperSampler)
register_sampler("laber", LaberSampler)
register_sampler("relo", ReloSampler)


def make_sampler(name: str, capacity: int, seed: int | None = None, **settings: Any) -> Sampler:
    """The sampler of this name, for one run; ``seed`` None: a random one.

    Raises:
        ValueError: there is no sampler of this name, or a setting has a wrong value.
        TypeError: the sampler has no such setting.

    Example:
        >>> from per_tutorial.replay.registry import make_sampler
        >>> make_sampler("proportional", 1000, seed=0, alpha=0.5).settings["alpha"]
        0.5
    """
    make = SAMPLERS[one_of("sampler", name, SAMPLERS)]
    check_settings(f"the sampler {name!r}", settings, settings_of(make))
    return make(capacity, seeds_for(seed, 1), **settings)


def make_replay(config: Any, observation_shape: tuple[int, ...], seeds: Sequence[int]) -> Replay:
    """The replay buffer that the settings describe, with one run per seed.

    Args:
        config: an object with the attributes `storage`, `sampler` and `capacity`. Other keywords
            of the storage and the sampler come from attributes of the same name, if any.
        observation_shape: shape of one observation.
        seeds: one int per run.

    Example:
        >>> from types import SimpleNamespace
        >>> from per_tutorial.replay import make_replay
        >>> config = SimpleNamespace(storage="transitions", sampler="rank", capacity=500, alpha=0.5)
        >>> replay = make_replay(config, (4,), seeds=[0, 1])
        >>> replay.capacity, replay.runs, replay.settings["alpha"]
        (500, 2, 0.5)
    """
    make = STORAGES[config.storage]
    storage = make(config.capacity, observation_shape, len(seeds), **_taken_from(config, make))
    return Replay(storage, sampler_for(config, config.capacity, seeds), runs=len(seeds))


def sampler_for(config: Any, capacity: int, seeds: Sequence[int]) -> Sampler:
    """The sampler that the settings describe (see `make_replay`), with one run per seed."""
    make = SAMPLERS[config.sampler]
    return make(capacity, seeds, **_taken_from(config, make))


def make_parts(
    storage: type,
    sampler: type,
    capacity: int,
    observation_shape: int | tuple[int, ...],
    runs: int | None,
    seed: int | Sequence[int] | None,
    settings: Mapping[str, Any],
) -> tuple[Any, Any]:
    """A storage and a sampler of these classes; each takes its own among the ``settings``.

    Raises:
        TypeError: a setting belongs to neither.
        ValueError, TypeError: a setting has a wrong value.
    """
    keywords = settings_of(storage), settings_of(sampler)
    check_settings("the buffer", settings, [*keywords[1], *keywords[0], "runs", "seed"])
    of_storage, of_sampler = (
        {name: settings[name] for name in names if name in settings} for names in keywords
    )
    kept = storage(capacity, observation_shape, 1 if runs is None else runs, **of_storage)
    return kept, sampler(capacity, seeds_for(seed, kept.ring.runs), **of_sampler)


def settings_of(part: Callable) -> list[str]:
    """The names of the settings of a storage or sampler: its keyword-only arguments."""
    parameters = inspect.signature(part).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]


def check_settings(owner: str, settings: Iterable[str], allowed: Sequence[str]) -> None:
    """Raise TypeError for a setting that is not allowed; it lists those of the ``owner``."""
    for name in settings:
        if name not in allowed:
            listed = ", ".join(allowed) or "none"
            raise TypeError(f"{name}: {owner} has no such setting; its settings are: {listed}")


def _taken_from(config: Any, part: Callable) -> dict[str, Any]:
    return {name: getattr(config, name) for name in settings_of(part) if hasattr(config, name)}
