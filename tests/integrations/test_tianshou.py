"""The buffer for tianshou: drawn and weighted as in the paper, and its algorithms learn with it."""

import copy

import numpy as np
import pytest

pytest.importorskip("tianshou")

import gymnasium as gym
import torch
from slot_checks import assert_paper
from tianshou.algorithm import DQN
from tianshou.algorithm.algorithm_base import policy_within_training_step
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net

from per_tutorial.integrations.tianshou import PrioritizedVectorReplayBuffer

pytestmark = pytest.mark.slow  # tianshou compiles its trees for seven seconds
ROWS = 8  # of each environment


def make(environments=1, **settings):
    settings = {"seed": 3} | settings
    return PrioritizedVectorReplayBuffer(ROWS * environments, environments, **settings)


def step_of(numbers, over=False):
    """One step of each environment; the observation is the number of the transition."""
    numbers = np.asarray(numbers)
    return Batch(
        obs=numbers[:, None].astype(np.float32),
        act=numbers % 2,
        rew=numbers.astype(float),
        terminated=np.full(len(numbers), over),
        truncated=np.zeros(len(numbers), dtype=bool),
        obs_next=numbers[:, None].astype(np.float32) + 0.5,
    )


def add(buffer, numbers, ids=None, over=False):
    buffer.add(step_of(numbers, over), ids)


def fill(buffer, steps, environments):
    for step in range(steps):
        add(buffer, step * environments + np.arange(environments))
    return buffer


def assert_same_draws(some, others):
    for _ in range(3):
        (first, slots), (second, same) = some.sample(20), others.sample(20)
        np.testing.assert_array_equal(slots, same)
        np.testing.assert_array_equal(first.weight, second.weight)
        np.testing.assert_array_equal(first.obs, second.obs)
        np.testing.assert_array_equal(first.obs_next, second.obs_next)
        some.update_weight(slots, np.arange(20.0))
        others.update_weight(slots, np.arange(20.0))


@pytest.mark.parametrize("environments, steps", [(1, 3 * ROWS + 2), (3, 5)])
def test_frequencies_and_weights_are_the_papers(environments, steps):
    buffer = fill(make(environments, alpha=0.7, beta=0.6), steps, environments)
    stored = np.sort(buffer.sample_indices(0))
    assert len(stored) == len(buffer) == min(steps, ROWS) * environments
    errors = np.random.default_rng(1).normal(size=len(stored)) * 3
    buffer.update_weight(stored, torch.as_tensor(errors))
    batch, slots = buffer.sample(3000)
    assert_paper(slots, batch.weight, stored, errors, 0.7, 0.6)
    np.testing.assert_array_equal(batch.obs[:, 0], batch.rew)  # the transitions of these slots
    np.testing.assert_array_equal(batch.obs, buffer.obs[slots])
    assert batch.weight.dtype == np.float32


def test_what_came_without_add_is_drawn_as_well():
    """As after an interrupt between tianshou's `add` and ours."""
    buffer = make()
    for number in range(5):
        VectorReplayBuffer.add(buffer, step_of([number]))
    assert set(buffer.sample(100)[1]) == set(range(5)) and len(buffer.sample(None)[1]) == 5
    buffer.update_weight(np.arange(5), [0.0, 9.0, 0.0, 0.0, 0.0])
    VectorReplayBuffer.add(buffer, step_of([5]))
    np.testing.assert_allclose(buffer.probabilities()[[1, 5]], 0.5, rtol=0.01)
    buffer.update_weight([0], [100.0])
    buffer.reset()
    fill(buffer, ROWS, 1).update_weight([0], [1.0])  # the largest so far is 1 again
    np.testing.assert_allclose(buffer.probabilities(), 1 / ROWS, rtol=1e-4)
    buffer.reset()
    with pytest.raises(ValueError, match="sample: the replay buffer is empty"):
        buffer.sample(1)
    add(buffer, [3])
    assert set(buffer.sample(9)[0].rew) == {3.0}


def hdf5(buffer, folder):
    buffer.save_hdf5(str(folder / "buffer.hdf5"))
    return type(buffer).load_hdf5(str(folder / "buffer.hdf5"))


@pytest.mark.parametrize(
    "copied, environments",
    [(hdf5, 1), (hdf5, 3), (lambda buffer, _: copy.deepcopy(buffer), 3)],
    ids=["hdf5", "hdf5 of a vector", "deepcopy"],
)
def test_copies_and_files_go_on_exactly(copied, environments, tmp_path):
    buffer = fill(make(environments, alpha=0.8, beta=0.7), ROWS + 3, environments)
    _, slots = buffer.sample(9)
    buffer.update_weight(slots, np.arange(9.0))
    twin = copied(buffer, tmp_path)
    assert twin.beta == 0.7
    assert_same_draws(buffer, twin)
    for number in range(3):
        for one in (buffer, twin):
            add(one, number + np.arange(environments), over=number == 2)
    assert_same_draws(buffer, twin)
    np.testing.assert_array_equal(twin.unfinished_index(), buffer.unfinished_index())
    everywhere = np.arange(ROWS * environments)
    np.testing.assert_array_equal(twin.next(everywhere), buffer.next(everywhere))
    add(buffer, np.arange(environments))
    assert len(buffer.unfinished_index()) == environments
    assert len(twin.unfinished_index()) == 0  # they share nothing


def test_files_of_buffers_without_our_priorities_are_refused(tmp_path):
    ordinary = VectorReplayBuffer(ROWS, 1)
    add(ordinary, [1])
    ordinary.save_hdf5(str(tmp_path / "buffer.hdf5"))
    with pytest.raises(ValueError, match="state: must be that of a PrioritizedVector"):
        PrioritizedVectorReplayBuffer.load_hdf5(str(tmp_path / "buffer.hdf5"))


def agent(n_step=3):
    torch.manual_seed(0)
    policy = DiscreteQLearningPolicy(
        model=Net(state_shape=4, action_shape=2, hidden_sizes=(16,)),
        action_space=gym.spaces.Discrete(2),
        eps_training=0.3,
    )
    return DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=1e-3),
        n_step_return_horizon=n_step,
        target_update_freq=20,
    )


def test_the_errors_that_come_back_are_those_of_the_minibatch():
    """Weights reach the loss, and the TD errors the slots that they were computed from."""
    algorithm = agent(n_step=1)
    buffer = PrioritizedVectorReplayBuffer(50, 1, alpha=1.0, beta=1.0, seed=0)
    world = DummyVectorEnv([lambda: gym.make("CartPole-v1")])
    world.seed(0)
    collector = Collector[CollectStats](algorithm, world, buffer, exploration_noise=True)
    collector.reset()
    collector.collect(n_step=50, random=True)
    errors = np.linspace(0.1, 3, 50)
    buffer.update_weight(np.arange(50), errors)
    batch, slots = copy.deepcopy(buffer).sample(32)
    with torch.no_grad():
        values = algorithm.policy(batch).logits[np.arange(32), batch.act].numpy()
        following = algorithm.policy(Batch(obs=batch.obs_next, info=[None] * 32)).logits
    best = following.max(dim=1).values.numpy()
    expected = batch.rew + 0.99 * best * ~batch.terminated - values
    with policy_within_training_step(algorithm.policy):
        loss = algorithm.update(buffer, 32).loss
    assert loss == pytest.approx((batch.weight * expected**2).mean(), rel=1e-4)
    errors[slots] = np.abs(expected)
    np.testing.assert_allclose(buffer.probabilities(), errors / errors.sum(), rtol=1e-3)


def test_rings_are_rounded_up_as_tianshous_are():
    assert PrioritizedVectorReplayBuffer(10, 3).probabilities().shape == (12,)
