"""Steps for buffers of Stable-Baselines3, and whether two of these draw the same."""

import numpy as np
from gymnasium import spaces

ACTIONS = spaces.Discrete(5)
VECTORS = spaces.Box(-1e6, 1e6, (3,), np.float32)


def filled(buffer, steps, seed=0):
    """The buffer, after so many more random steps of every environment."""
    rng, n = np.random.default_rng(seed), buffer.n_envs
    for _ in range(steps):
        before, after = rng.normal(size=(2, n, 3))
        ended = rng.random(n) < 0.3
        infos = [{"TimeLimit.truncated": bool(each)} for each in ended & (rng.random(n) < 0.5)]
        buffer.add(before, after, rng.integers(0, 5, n), rng.normal(size=n), ended, infos)
    return buffer


def assert_same_batches(one, other, batch_size=300):
    """Two buffers draw the same minibatch; both get the same TD errors for it."""
    first, second = one.sample(batch_size), other.sample(batch_size)
    for name, ours, twins in zip(first._fields, first, second, strict=True):
        if ours is not None:
            np.testing.assert_array_equal(ours, twins, err_msg=name)
    for name in ("indices", "weights", "probabilities"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
    errors = np.random.default_rng(0).normal(size=batch_size)
    one.update_priorities(first.indices, errors)
    other.update_priorities(first.indices, errors)
