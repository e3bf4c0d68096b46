"""Buffers of every kind and a life for them, where another process finds them too."""

import numpy as np
from replay_helpers import AnyFrames, bits

from per_tutorial.replay import (
    FrameStorage,
    PrioritizedReplayBuffer,
    RankBasedReplayBuffer,
    RankBasedSampler,
    Replay,
    ReplayBuffer,
)


def uniform(capacity=20, seed=0, pixels=2):
    return ReplayBuffer(capacity, pixels, seed=seed)


def proportional(capacity=20, seed=0):
    return PrioritizedReplayBuffer(capacity, 2, normalize="buffer", n_step=3, seed=seed)


def rank(capacity=20, seed=0):
    return RankBasedReplayBuffer(capacity, 2, sort_every=7, runs=2, seed=seed)


def frames(capacity=20, seed=0, pixels=2):
    storage = AnyFrames(capacity, (3, pixels), environments=2, n_step=2)
    return Replay(storage, RankBasedSampler(capacity, [seed]))


BUFFERS = {each.__name__: each for each in (uniform, proportional, rank, frames)}


def a_step(buffer):
    """The fields of the next transition; all tell its number, as far as it fits."""
    storage, k = buffer.storage, int(buffer.storage.added[0])
    axes = storage.leading_axes[buffer.runs is None :]
    if isinstance(storage, FrameStorage):
        shape, dtype = (storage.stack, *storage.frames.shape[1:]), np.uint8
    else:
        shape, dtype = storage.rows.dtype["observation"].shape, np.float32
    seen, number = np.full((*axes, *shape), k % 200, dtype), np.full(axes, k)
    return seen, number, number / 2, seen + 1, number % 4 == 3, number % 7 == 6


def go_on(buffer, steps):
    """Add, sample and learn."""
    for _ in range(steps):
        buffer.add(*a_step(buffer))
        batch = buffer.sample(1)
        buffer.update_priorities(batch.indices, np.sin(batch.indices + 1.0))
    return buffer


def go_on_and_save(buffer, steps, path):
    """For another process: what the buffer is in the end."""
    go_on(buffer, steps).save(path)
    return bits(buffer)
