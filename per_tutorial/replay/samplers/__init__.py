"""Which experiences are replayed: the samplers by name.

Trainings, the command line and the studies use these names. A sampler of your own needs none: pass
the object, as in `Replay(storage, MySampler(...))`.
"""

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
