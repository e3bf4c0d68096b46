"""Replay buffers: which experiences to keep and which to replay. Needs only NumPy and numba.

A replay buffer is one storage (`storages/`) and one sampler (`samplers/`), which `Replay` joins.
`contracts.py` defines both.
"""

from per_tutorial.replay.buffers import PrioritizedReplayBuffer, RankBasedReplayBuffer, ReplayBuffer
from per_tutorial.replay.contracts import Batch, Sampler, Storage, Transition
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.samplers import SAMPLERS
from per_tutorial.replay.samplers.lap import LapSampler
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.samplers.rank import RankBasedSampler
from per_tutorial.replay.samplers.uniform import UniformSampler
from per_tutorial.replay.storages.frames import FrameStorage
from per_tutorial.replay.storages.rows import TransitionStorage
from per_tutorial.replay.trees import MinTree, SumTree

__all__ = [
    "SAMPLERS",
    "Batch",
    "FrameStorage",
    "LapSampler",
    "MinTree",
    "PrioritizedReplayBuffer",
    "ProportionalSampler",
    "RankBasedReplayBuffer",
    "RankBasedSampler",
    "Replay",
    "ReplayBuffer",
    "Sampler",
    "Storage",
    "SumTree",
    "Transition",
    "TransitionStorage",
    "UniformSampler",
]
