"""Prioritized Experience Replay, taught and ready to use.

Two kinds of parts make a replay buffer: a *storage* decides which experiences are kept, a *sampler*
decides which of them are replayed. Everything else in the package learns from what they hand out
or shows what came of it. Names are imported when they are first used, so that
``import per_tutorial`` loads neither PyTorch nor matplotlib.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "SumTree": "segment_tree",
    "MinTree": "segment_tree",
    "Batch": "replay",
    "Replay": "replay",
    "ReplayBuffer": "replay",
    "PrioritizedReplayBuffer": "replay",
    "RankBasedReplayBuffer": "replay",
    "FrameStorage": "frames",
    "make_atari_environments": "atari",
    "make_atari_reference": "atari",
    "DQNConfig": "config",
    "QNetwork": "networks",
    "DQNLearner": "learner",
    "train": "training",
    "evaluate": "training",
    "History": "history",
    "Checkpoints": "checkpoints",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__():
    return sorted(__all__)
