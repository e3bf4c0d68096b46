"""Replay buffers in use: what several tests of the replay room do with them."""

import numpy as np
import pytest

from per_tutorial.replay import (
    PrioritizedReplayBuffer,
    RankBasedReplayBuffer,
    ReplayBuffer,
)

KINDS = [ReplayBuffer, PrioritizedReplayBuffer, RankBasedReplayBuffer]
every_kind = pytest.mark.parametrize("kind", KINDS)


def add(buffer, count=1):
    """Add transitions whose fields all tell their number, k: (k, −k), k, k/2, (k+1, −k), k even."""
    for _ in range(count):
        k = int(buffer.storage.added[0])
        buffer.add([k, -k], k, k / 2, [k + 1, -k], k % 2 == 0)
    return buffer


def learn(buffer, rounds=1, batch_size=3):
    """Sample and update, as training does; returns all that was drawn."""
    batches = []
    for _ in range(rounds):
        batches.append(buffer.sample(batch_size))
        buffer.update_priorities(batches[-1].indices, np.sin(batches[-1].indices + 1.0))
    return batches


def used(kind, capacity=5, **options):
    """A buffer that has wrapped around and learned."""
    buffer = add(kind(capacity, 2, **{"seed": 0, **options}), capacity + 2)
    learn(buffer, rounds=4)
    return buffer


def bits(part):
    """The state of a buffer, a storage or a sampler, to the bit."""
    return {name: (array.dtype, array.shape, _content(array)) for name, array in part.state.items()}


def _content(array):
    """The bytes of an array; of rows, those of their fields."""
    return (
        [array[name].tobytes() for name in array.dtype.names]
        if array.dtype.names
        else array.tobytes()
    )


def assert_same_batches(batches, expected):
    for batch, other in zip(batches, expected, strict=True):
        for mine, theirs in zip(batch, other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
