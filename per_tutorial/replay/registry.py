"""The parts that a replay buffer can be made of, by name.

`DQNConfig`, the command line, the studies and the colours of plots all follow this list: a new sampler
is one file in `samplers/`, one line here, and its own test.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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


class SamplerEntry(NamedTuple):
    """A sampler that can be asked for by name."""

    make: Callable[..., Sampler]  # the class
    color: str  # of its curves


#: The samplers by name, for `DQNConfig.sampler`; `register_sampler` adds one.
#:
#: >>> SAMPLERS["proportional"].make.__name__
#: 'ProportionalSampler'
SAMPLERS: dict[str, SamplerEntry] = {}
#: The storages by name, for `DQNConfig.storage`; `register_storage` adds one.
#:
#: >>> STORAGES["frames"].__name__
#: 'FrameStorage'
STORAGES: dict[str, Callable[..., Storage]] = {}


def register_sampler(name: str, sampler: type, color: str) -> None:
    """Make a sampler known by a name; a sampler that had this name before is replaced.

    Args:
        name: of `DQNConfig.sampler`.
        sampler: a class; see `contracts.Sampler`.
        color: of its curves, such as "#0072B2".

    Raises:
        TypeError: the class lacks something of a `Sampler`; the error says what.

    Example:
        >>> from per_tutorial.replay import SAMPLERS, UniformSampler, register_sampler
        >>> class MySampler(UniformSampler):
        ...     pass  # override `sample` to draw in another way
        >>> register_sampler("mine", MySampler, "#882255")
        >>> SAMPLERS["mine"].make is MySampler  # and `DQNConfig(sampler="mine")` trains with it
        True
        >>> del SAMPLERS["mine"]
    """
    require("sampler", sampler, Sampler)
    SAMPLERS[name] = SamplerEntry(sampler, color)


def register_storage(name: str, storage: type) -> None:
    """Make a storage known by a name; a TypeError says what a class lacks of a `contracts.Storage`.

    Example:
        >>> from per_tutorial.replay import STORAGES, TransitionStorage, register_storage
        >>> class MyStorage(TransitionStorage):
        ...     pass  # override what you like
        >>> register_storage("mine", MyStorage)
        >>> sorted(STORAGES)
        ['frames', 'mine', 'transitions']
        >>> del STORAGES["mine"]
    """
    require("storage", storage, Storage)
    STORAGES[name] = storage


register_storage("transitions", TransitionStorage)
register_storage("frames", FrameStorage)

# Colours dark enough to be read as text on white, and different enough for colour-blind readers.
register_sampler("uniform", UniformSampler, "#0072B2")
register_sampler("proportional", ProportionalSampler, "#D55E00")
register_sampler("rank", RankBasedSampler, "#661A66")
register_sampler("lap", LapSampler, "#8A5A00")
register_sampler("reaper", ReaperSampler, "#117733")
register_sampler("laber", LaberSampler, "#5D4FB3")
register_sampler("relo", ReloSampler, "#B3003C")


def make_sampler(name: str, capacity: int, seed: int | None = None, **settings: Any) -> Sampler:
    """The sampler of this name, for one run; ``seed`` None: from the system.

    Raises:
        ValueError: there is no sampler of this name, or a setting has a wrong value.
        TypeError: the sampler has no such setting.

    Example:
        >>> from per_tutorial.replay.registry import make_sampler
        >>> make_sampler("proportional", 1000, seed=0, alpha=0.5).settings["alpha"]
        0.5
    """
    name = one_of("sampler", name, SAMPLERS)
    return SAMPLERS[name].make(capacity, seeds_for(seed, 1), **settings)


def make_replay(config: Any, observation_shape: tuple[int, ...], seeds: Sequence[int]) -> Replay:
    """The replay buffer that a `DQNConfig` asks for, for one run per seed.

    The keywords of a storage or sampler that have the name of a setting get its value.

    Example:
        >>> from per_tutorial import DQNConfig
        >>> from per_tutorial.replay import make_replay
        >>> replay = make_replay(DQNConfig(sampler="rank", capacity=500), (4,), seeds=[0, 1])
        >>> replay.capacity, replay.runs, type(replay.sampler).__name__
        (500, 2, 'RankBasedSampler')
    """
    make = STORAGES[config.storage]
    storage = make(config.capacity, observation_shape, len(seeds), **_keywords(make, config))
    return Replay(storage, sampler_for(config, config.capacity, seeds), runs=len(seeds))


def sampler_for(config: Any, capacity: int, seeds: Sequence[int]) -> Sampler:
    """The sampler that a `DQNConfig` asks for, for ``capacity`` transitions and one run per seed."""
    make = SAMPLERS[config.sampler].make
    return make(capacity, seeds, **_keywords(make, config))


def _keywords(part: Callable, config: Any) -> dict[str, Any]:
    """The settings that have the name of a keyword of this part."""
    parameters = inspect.signature(part).parameters.values()
    named = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    return {name: getattr(config, name) for name in named if hasattr(config, name)}
