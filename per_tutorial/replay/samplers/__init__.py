"""Which experiences are replayed: the samplers by name.

Trainings, the command line and the studies use these names. A sampler of your own needs none: pass
the object, as in `Replay(storage, MySampler(...))`.
"""

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
