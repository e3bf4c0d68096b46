"""Which experiences to keep and which to replay: NumPy and numba, nothing else.

A replay buffer is one storage (`storages/`) and one sampler (`samplers/`).
"""

from per_tutorial.replay.buffers import (
    Batch,
    PrioritizedReplayBuffer,
    RankBasedReplayBuffer,
    Replay,
    ReplayBuffer,
    make_replay,
)
from per_tutorial.replay.segment_tree import MinTree, SumTree
from per_tutorial.replay.storages.frames import FrameStorage

__all__ = [
    "Batch",
    "FrameStorage",
    "MinTree",
    "PrioritizedReplayBuffer",
    "RankBasedReplayBuffer",
    "Replay",
    "ReplayBuffer",
    "SumTree",
    "make_replay",
]
