"""Prioritized Experience Replay, taught and ready to use.

A replay buffer has two parts: a *storage* decides which experiences are kept, and a *sampler*
decides which of them are replayed. The rest of the package learns from what they draw, or shows the
results. Names are imported on first use, so ``import per_tutorial`` loads neither PyTorch nor
matplotlib.
"""

from per_tutorial.common.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take it as True; importing `typing` would take longer

if TYPE_CHECKING:
    from per_tutorial.dqn.checkpoints import Checkpoints as Checkpoints
    from per_tutorial.dqn.config import DQNConfig as DQNConfig
    from per_tutorial.dqn.environments.atari import make_atari_env as make_atari_env
    from per_tutorial.dqn.history import History as History
    from per_tutorial.dqn.learner import DQNLearner as DQNLearner
    from per_tutorial.dqn.networks import QNetwork as QNetwork
    from per_tutorial.dqn.training import evaluate as evaluate
    from per_tutorial.dqn.training import train as train
    from per_tutorial.replay import Batch as Batch
    from per_tutorial.replay import FrameStorage as FrameStorage
    from per_tutorial.replay import MinTree as MinTree
    from per_tutorial.replay import PrioritizedReplayBuffer as PrioritizedReplayBuffer
    from per_tutorial.replay import RankBasedReplayBuffer as RankBasedReplayBuffer
    from per_tutorial.replay import Replay as Replay
    from per_tutorial.replay import ReplayBuffer as ReplayBuffer
    from per_tutorial.replay import SumTree as SumTree
    from per_tutorial.replay import Transition as Transition

__version__ = "0.2.0.dev0"

_HOMES = {
    "replay": (
        "SumTree",
        "MinTree",
        "Transition",
        "Batch",
        "Replay",
        "ReplayBuffer",
        "PrioritizedReplayBuffer",
        "RankBasedReplayBuffer",
        "FrameStorage",
    ),
    "dqn.environments.atari": ("make_atari_env",),
    "dqn.config": ("DQNConfig",),
    "dqn.networks": ("QNetwork",),
    "dqn.learner": ("DQNLearner",),
    "dqn.training": ("train", "evaluate"),
    "dqn.history": ("History",),
    "dqn.checkpoints": ("Checkpoints",),
}

__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
__all__ += ["__version__"]
