"""Three methods that came after PER, as plain as their papers (notebook 08).

Each is a sampler or a learner, which `train` takes beside its settings; nothing else knows them:

    train(config, seeds, replay=Replay(storage, ReaperSampler(storage, seeds), len(seeds)))
    train(config, seeds, replay=..., learner=LaberLearner)  # a `Replay` with a `LaberSampler`
    train(config.replace(sampler="uniform"), seeds, learner=PalLearner)

LAP is a sampler of `per_tutorial.replay`.
"""

from per_tutorial.common.lazy import missing_extra

try:
    import torch  # noqa: F401
except ImportError as error:
    raise missing_extra(error, __name__) from error

from per_tutorial.after_per.laber import LaberLearner, LaberSampler
from per_tutorial.after_per.pal import PalLearner
from per_tutorial.after_per.reaper import ReaperSampler

__all__ = [
    "LaberLearner",
    "LaberSampler",
    "PalLearner",
    "ReaperSampler",
]
