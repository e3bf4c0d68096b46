"""Buffers of every kind and a life for them."""

import numpy as np

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
    storage = FrameStorage(capacity, (3, pixels), environments=2, n_step=2)
    return Replay(storage, RankBasedSampler(capacity, [seed]))


BUFFERS = {each.__name__: each for each in (uniform, proportional, rank, frames)}


def a_step(buffer):
    """The fields of the next transition; all tell its number, as far as it fits."""
    storage, k = buffer.storage, int(buffer.storage.added[0])
    axes = storage.leading_axes[buffer.runs is None :]
    number = np.full(axes, k)
    if isinstance(storage, FrameStorage):
        seen, following = (
            np.broadcast_to(stack, (*axes, *stack.shape)) for stack in stacks(storage)
        )
    else:
        seen = np.full((*axes, *storage.rows.dtype["observation"].shape), k, np.float32)
        following = seen + 1
    return seen, number, number / 2, following, number % 4 == 3, number % 7 == 6


def stacks(storage):
    """The next two stacks of an environment; each frame tells its step.

    Two environments take turns, so their numbers are even. Those of step 3 and of every seventh one
    after it end an episode.
    """
    step = int(storage.added[0]) // storage.environments
    begin = max(0, step - (step - 4) % 7)
    shown = np.arange(step - storage.store.stack + 1, step + 2)  # of both; black before the episode
    colours = np.where(shown >= begin, shown % 200 + 1, 0).astype(np.uint8)
    frames = np.stack([np.full(storage.store.frames.shape[1:], colour) for colour in colours])
    return frames[:-1], frames[1:]


def go_on(buffer, steps):
    """Add, sample and learn."""
    for _ in range(steps):
        buffer.add(*a_step(buffer))
        batch = buffer.sample(1)
        buffer.update_priorities(batch.indices, np.sin(batch.indices + 1.0))
    return buffer
