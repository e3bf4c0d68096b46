"""Uniform replay: everything is drawn alike, and the seed decides."""

from functools import partial

import numpy as np
import pytest
from replay_helpers import add, with_sampler
from scipy import stats

from per_tutorial.replay import UniformSampler

make = partial(with_sampler, UniformSampler)


@pytest.mark.parametrize("filled", [3, 11, 16, 40])
def test_all_are_drawn_alike(filled):
    buffer = add(make(16, 2, seed=0), filled)
    size = len(buffer)
    drawn = np.concatenate([buffer.sample(size).indices for _ in range(8000 // size)])
    observed = np.bincount(drawn - (filled - size), minlength=size)
    assert len(observed) == size and stats.chisquare(observed).pvalue > 1e-3


@pytest.mark.parametrize("capacity", [1, 3, 8, 13])
def test_only_stored_transitions_are_drawn_and_weigh_one(capacity):
    buffer = make(capacity, 2, seed=0)
    for added in range(1, 2 * capacity + 3):
        add(buffer)
        for _ in range(20):
            batch = buffer.sample(len(buffer), beta=1.0)
            assert batch.indices.min() >= added - len(buffer) and batch.indices.max() < added
            assert (batch.weights == 1).all()
            buffer.update_priorities(batch.indices, np.full(len(buffer), 1e12))


def test_the_seed_decides_what_is_drawn():
    def drawn(seed):
        buffer = add(make(20, 2, seed=seed), 20)
        return np.concatenate([buffer.sample(10).indices for _ in range(5)]).tolist()

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)
