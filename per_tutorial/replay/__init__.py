"""Replay buffers: which experiences to keep and which to replay. Needs only NumPy and numba.

A replay buffer is one storage (`storages/`) and one sampler (`samplers/`). `contracts.py` defines
both; `registry.py` lists them by name.
"""

from per_tutorial.replay.buffers import PrioritizedReplayBuffer, RankBasedReplayBuffer, ReplayBuffer
from per_tutorial.replay.contracts import Batch, Sampler, Storage, Transition
from per_tutorial.replay.registry import (
    SAMPLERS,
    STORAGES,
    make_replay,
    register_sampler,
    register_storage,
)
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.samplers.laber import LaberSampler
from per_tutorial.replay.samplers.lap import LapSampler
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.samplers.rank_based import RankBasedSampler
from per_tutorial.replay.samplers.reaper import ReaperSampler
from per_tutorial.replay.samplers.relo import ReloSampler
from per_tutorial.replay.samplers.uniform import UniformSampler
from per_tutorial.replay.segment_tree import MinTree, SumTree
from per_tutorial.replay.storages.frames import FrameStorage
from per_tutorial.replay.storages.transitions import TransitionStorage

__all__ = [
    "SAMPLERS",
    "STORAGES",
    "Batch",
    "FrameStorage",
    "LaberSampler",
    "LapSampler",
    "MinTree",
    "PrioritizedReplayBuffer",
    "ProportionalSampler",
    "RankBasedReplayBuffer",
    "RankBasedSampler",
    "ReaperSampler",
    "ReloSampler",
    "Replay",
    "ReplayBuffer",
    "Sampler",
    "Storage",
    "SumTree",
    "Transition",
    "TransitionStorage",
    "UniformSampler",
    "make_replay",
    "register_sampler",
    "register_storage",
]
