"""The buffers for Stable-Baselines3: drawn and weighted as in the paper, and what SB3 expects."""

import copy
import warnings

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch as th
from gymnasium import spaces
from sb3_steps import ACTIONS, VECTORS, assert_same_batches, filled
from slot_checks import assert_paper, paper_probabilities
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from per_tutorial.common import memory
from per_tutorial.integrations.sb3 import PrioritizedReplayBuffer

ROWS = 8
DICTS = spaces.Dict({"all": VECTORS, "first": spaces.Box(-1e6, 1e6, (1,), np.float32)})


def make(n_envs=1, space=VECTORS, **kwargs):
    settings = {"seed": 3} | kwargs
    return PrioritizedReplayBuffer(ROWS * n_envs, space, ACTIONS, "cpu", n_envs, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("n_envs", [1, 3])
def test_frequencies_and_weights_are_the_papers(n_envs):
    buffer, steps = make(n_envs, alpha=0.7), 3 * ROWS + 2
    filled(buffer, steps)
    numbers = np.arange((steps - ROWS) * n_envs, steps * n_envs)
    errors = np.random.default_rng(1).normal(size=len(numbers)) * 3
    buffer.update_priorities(numbers, errors)
    buffer.beta = 0.6
    batch = buffer.sample(3000)
    assert_paper(batch.indices, batch.weights[:, 0], numbers, errors, 0.7, 0.6)
    expected = paper_probabilities(errors, 0.7)
    np.testing.assert_allclose(buffer.probabilities(), expected, rtol=1e-9)
    of_some = buffer.probabilities([0, *numbers[::-1]])  # the first one was overwritten
    np.testing.assert_allclose(of_some, [0, *expected[::-1]], rtol=1e-9)
    drawn = expected[batch.indices - numbers[0]]
    np.testing.assert_allclose(batch.probabilities[:, 0], drawn, rtol=1e-6)


def test_rewards_are_normalized_one_by_one_before_they_are_summed():
    env = VecNormalize(make_vec_env("CartPole-v1", 2), clip_reward=0.5)
    env.ret_rms.var = np.array(0.5)
    env.obs_rms.mean, env.obs_rms.var = np.full(4, 2.0), np.full(4, 9.0)
    space = env.observation_space
    buffer = PrioritizedReplayBuffer(2 * ROWS, space, ACTIONS, "cpu", 2, n_steps=3, seed=0)
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=(5, 2)).astype(np.float32)
    observations = rng.normal(size=(6, 2, 4)).astype(np.float32)
    for t in range(5):
        before, after = observations[t : t + 2]
        buffer.add(before, after, np.zeros(2, int), rewards[t], np.zeros(2), [{}, {}])
    batch = buffer.sample(64, env)
    clipped = np.clip(rewards / np.sqrt(0.5 + env.epsilon), -0.5, 0.5)
    assert (np.abs(clipped) == 0.5).any()
    for k, number in enumerate(batch.indices):
        t, e = divmod(number, 2)
        ahead = min(3, 5 - t)
        total = (clipped[t : t + ahead, e] * 0.99 ** np.arange(ahead)).sum()
        np.testing.assert_allclose(batch.rewards[k, 0], total, rtol=1e-5)
        np.testing.assert_allclose(batch.observations[k], (observations[t, e] - 2) / 3, rtol=1e-4)
        np.testing.assert_allclose(
            batch.next_observations[k], (observations[t + ahead, e] - 2) / 3, rtol=1e-4
        )
    assert batch.rewards.dtype == th.float32


def test_minibatches_are_those_of_sb3():
    buffer = make()
    assert isinstance(buffer, ReplayBuffer)
    batch = filled(buffer, 3).sample(5)
    assert isinstance(batch, ReplayBufferSamples) and len(batch) == 6
    assert batch.weights.shape == batch.rewards.shape == batch.discounts.shape == (5, 1)
    assert batch.weights.dtype == th.float32 and batch.indices.shape == (5,)
    assert copy.deepcopy(batch).weights is not batch.weights


def test_the_same_seed_draws_the_same():
    buffers = one, same, other = make(seed=1), make(seed=1), make(seed=2)
    draws = [filled(each, 6).sample(20).indices.tolist() for each in buffers]
    assert draws[0] == draws[1] != draws[2]
    one.reset()
    assert one.size() == 0
    assert filled(one, 6).sample(20).indices.tolist() == draws[0]
    other.seed_draws(1)  # keeps the priorities
    assert other.sample(20).indices.tolist() == draws[0]


def test_bad_steps_are_refused_and_change_nothing():
    buffer = filled(make(2), 3)
    twin = copy.deepcopy(buffer)
    before, after = np.zeros((2, 3)), np.ones((2, 3))
    right = before, after, np.zeros(2, int), np.zeros(2), np.zeros(2), [{}, {}]
    wrong = [
        (0, np.zeros((2, 4)), ValueError, "observation: must have the shape"),
        (1, np.zeros((2, 3, 1)), ValueError, "next observation: must have the shape"),
        (0, np.zeros((2, 3), dtype=complex), TypeError, "observation: must be float32"),
        # No word of action_shape and action_dtype, which SB3's buffers have not.
        (2, np.zeros(3, int), ValueError, r"action: must have the shape .*, got \(3,\)$"),
        (2, np.zeros(2), TypeError, "action: must be int64, got float64$"),
        (3, np.array([0.0, np.nan]), ValueError, "reward: must be finite"),
        (3, np.zeros(3), ValueError, "reward: must have the shape"),
        (4, np.array([0.0, 0.5]), ValueError, "done: must be True or False"),
        (5, [{}], ValueError, "infos: must be one for each of 2"),
    ]
    with pytest.raises(ValueError, match="empty"):
        make().sample(1)
    for place, value, error, message in wrong:
        fields = list(right)
        fields[place] = value
        with pytest.raises(error, match=message):
            buffer.add(*fields)
        assert buffer.pos == 3
    assert_same_batches(buffer, twin)
    with pytest.raises(ValueError, match="lacks"):
        make(space=DICTS).add({"all": np.zeros((1, 3))}, *right[1:])


def test_buffers_are_judged_together_for_memory(monkeypatch):
    arrays = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
    size = sum(getattr(make(), name).nbytes for name in arrays)
    monkeypatch.setattr(memory, "available_memory", lambda: taken + int(2.5 * size))
    taken = sum(memory._promised.values())
    kept = [make(), make()]
    with pytest.warns(UserWarning, match="^buffer_size: all replay buffers together"):
        kept.append(make())
    assert len(kept) == 3


def test_who_never_writes_td_errors_back_is_warned(monkeypatch):
    monkeypatch.setattr("per_tutorial.replay.ledger.DRAWS_WITHOUT_UPDATE", 3)
    updated, uniform, buffer = make(), make(sampler="uniform"), make()
    for each in (updated, uniform, buffer):
        filled(each, 2)
    with warnings.catch_warnings(action="error"):
        for _ in range(4):
            updated.update_priorities(updated.sample(2).indices, np.ones(2))
            uniform.sample(2)
    buffer.sample(2)
    buffer.sample(2)
    with pytest.warns(UserWarning, match="without any TD error.*use .*PrioritizedQRDQN"):
        buffer.sample(2)
