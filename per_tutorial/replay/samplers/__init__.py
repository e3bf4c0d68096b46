"""Which experiences are replayed: the samplers by name, and how their settings reach them.

Trainings, the command line and the studies use these names. A sampler of your own needs none: pass
the object, as in `Replay(storage, MySampler(...))`.
"""

import inspect
from collections.abc import Callable
from typing import Any

from per_tutorial.common.arguments import one_of
from per_tutorial.replay.contracts import Sampler
from per_tutorial.replay.random_streams import seeds_for
from per_tutorial.replay.samplers.lap import LapSampler
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.samplers.rank import RankBasedSampler
from per_tutorial.replay.samplers.uniform import UniformSampler

#: The samplers by name.
SAMPLERS: dict[str, type] = {
    "uniform": UniformSampler,
    "proportional": ProportionalSampler,
    "rank": RankBasedSampler,
    "lap": LapSampler,
}


def make_sampler(name: str, capacity: int, seed: int | None = None, **settings: Any) -> Sampler:
    """The sampler of this name, for one run; ``seed`` None: a random one.

    Raises:
        ValueError: there is no sampler of this name, or a setting has a wrong value.
        TypeError: the sampler has no such setting.
    """
    make = SAMPLERS[one_of("sampler", name, SAMPLERS)]
    return make(capacity, seeds_for(seed, 1), **settings)


def settings_of(part: Callable) -> list[str]:
    """The names of the settings of a storage or sampler: its keyword-only arguments."""
    parameters = inspect.signature(part).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]


def settings_from(config: Any, part: Callable) -> dict[str, Any]:
    """The settings of a storage or sampler, from the attributes of the same name, if any."""
    return {name: getattr(config, name) for name in settings_of(part) if hasattr(config, name)}
