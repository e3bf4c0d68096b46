"""Bugs of a training loop: what is stored, which priorities, which seeds; each is noticed."""

import numpy as np
import pytest
from counting import (
    COUNTING,
    ENDLESS,
    CountingEnv,
    EveryStepCounts,
    TruncatedIsTerminated,
    assert_true_transitions,
    ends_in_termination,
    episode_length,
    episode_return,
    reward_of,
)
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from plain_dqn import PlainLearner, PlainQNetwork
from recorded_trainings import RECORDED, SHORT, RecordedPrioritized

from per_tutorial.dqn import training
from per_tutorial.dqn.environments import gymnasium_envs as environments_module
from per_tutorial.dqn.environments.gymnasium_envs import make_environments
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import train
from per_tutorial.replay import ReplayBuffer
from per_tutorial.replay.random_streams import RandomStreams
from per_tutorial.replay.samplers import proportional, uniform

# What is stored: no step into another episode, and a time limit ends no value


def make_next_step_environments(env_id, seeds, **_):
    assert env_id == COUNTING
    vector_env = SyncVectorEnv([CountingEnv] * len(seeds), autoreset_mode=AutoresetMode.NEXT_STEP)
    return environments_module.Environments(vector_env, seeds)


MAKERS = {"same step": make_environments, "next step": make_next_step_environments}


def assert_true_transitions_are_stored():
    """Train among counting environments; the memory holds what happened there."""
    config = SHORT.replace(env=COUNTING, steps=100, epsilon_end=1.0)
    seeds = [0, 1, 2]
    replay = ReplayBuffer(100, (3,), runs=3, seed=seeds)
    train(config, seeds, replay=replay)
    for run, seed in enumerate(seeds):
        rows = replay.storage.rows[run, : replay.storage.sizes[run]]
        assert_true_transitions(rows.tolist(), seed)


@pytest.mark.parametrize("mode", MAKERS)
def test_true_transitions_are_stored_and_all_of_them(mode, monkeypatch):
    monkeypatch.setattr(environments_module, "make_environments", MAKERS[mode])
    assert_true_transitions_are_stored()


@pytest.mark.parametrize(
    "bugged, mode",
    [
        (EveryStepCounts, "next step"),
        (TruncatedIsTerminated, "next step"),
        (TruncatedIsTerminated, "same step"),
    ],
)
def test_false_transitions_in_the_memory_are_noticed(bugged, mode, monkeypatch):
    monkeypatch.setattr(environments_module, "Environments", bugged)
    monkeypatch.setattr(environments_module, "make_environments", MAKERS[mode])
    with pytest.raises(AssertionError):
        assert_true_transitions_are_stored()


def assert_a_terminal_reward_is_learned_from_where_episodes_terminate():
    """Stored there and nowhere else; the returns stay those of the environment."""
    config = SHORT.replace(env=COUNTING, steps=100, epsilon_end=1.0, terminal_reward=-7)
    replay = ReplayBuffer(100, (3,), runs=2, seed=[0, 1])
    history = train(config, [0, 1], replay=replay)
    for seed in (0, 1):
        expected = []
        for episode, steps, _ in replay.storage.rows["next_observation"][seed].astype(int):
            over = steps == episode_length(seed, episode)
            terminated = over and ends_in_termination(episode)
            expected.append(-7 if terminated else reward_of(episode, steps))
        assert replay.storage.rows["reward"][seed].tolist() == expected
        assert expected.count(-7) > 10
        returns = history.returns(seed)[1].tolist()
        assert returns == [episode_return(seed, number) for number in range(len(returns))]


def test_a_terminal_reward_is_learned_from_where_episodes_terminate():
    assert_a_terminal_reward_is_learned_from_where_episodes_terminate()


class PaysAtTheEnd(environments_module.Environments):
    """The reward is changed in the environment, and with it the returns."""

    def _transitions(self, observation, reward, terminated, *others):
        reward = np.where(terminated, -7, reward)
        return super()._transitions(observation, reward, terminated, *others)


@pytest.mark.parametrize("bugged", [TruncatedIsTerminated, PaysAtTheEnd])
def test_a_terminal_reward_elsewhere_is_noticed(bugged, monkeypatch):
    monkeypatch.setattr(environments_module, "Environments", bugged)
    with pytest.raises(AssertionError):
        assert_a_terminal_reward_is_learned_from_where_episodes_terminate()


def assert_a_time_limit_does_not_end_the_value(n_step):
    """Reward 1 for ever, γ = ½: the value is 1 + ½ + ¼ + … = 2, though episodes stop after 3."""
    config = SHORT.replace(
        env=ENDLESS,
        max_episode_steps=3,
        steps=300,
        hidden=(),
        discount=0.5,
        n_step=n_step,
        learning_rate=0.1,
        target_update_every=1,
        epsilon_end=1.0,
    )
    q_values = train(config, [0, 1]).agent.q_values(np.ones((2, 1, 1), dtype=np.float32))
    np.testing.assert_allclose(q_values, 2.0, atol=0.02)


@pytest.mark.parametrize("n_step", [1, 2, 5])
def test_a_time_limit_does_not_end_the_value(n_step):
    assert_a_time_limit_does_not_end_the_value(n_step)


@pytest.mark.parametrize("n_step", [1, 2, 5])
def test_a_value_that_ends_with_the_time_limit_is_noticed(n_step, monkeypatch):
    monkeypatch.setattr(environments_module, "Environments", TruncatedIsTerminated)
    with pytest.raises(AssertionError):
        assert_a_time_limit_does_not_end_the_value(n_step)


# The priority is |δ|, not a loss


def assert_priorities_come_from_the_td_errors():
    """After the only update, replayed transitions have p = |δ| + ε, all others the initial 1."""
    config = SHORT.replace(steps=40, sampler="proportional")
    replay = RecordedPrioritized(100, (4,), alpha=0.6, runs=1, seed=5)
    train(config, 5, replay=replay)

    plain = PlainLearner(config, PlainQNetwork(DQNLearner(config, (4,), 2, [5]).online, run=0))
    priorities = np.ones(40)
    (replayed,) = replay.replayed
    for number in replayed:
        row = replay.storage.rows[0, number]
        observation, action, reward, next_observation, terminated, _ = row
        target = plain.target_of(reward, next_observation, terminated).item()
        td_error = target - plain.online(observation)[action].item()
        priorities[number] = abs(td_error) + config.priority_epsilon
    stored = replay.sampler.sums.get(np.arange(40)[None])[0]
    np.testing.assert_allclose(stored, priorities**0.6, rtol=1e-4)


class LossAsPriority(DQNLearner):
    """The weighted squared loss takes the place of δ."""

    def update(self, batch, *step_size):
        update = super().update(batch, *step_size)
        return update._replace(td_errors=batch.weights * update.td_errors**2)


class HuberAsPriority(DQNLearner):
    """The Huber loss takes its place; below 1 it is ½δ², so that α doubles."""

    def update(self, batch, *step_size):
        update = super().update(batch, *step_size)
        size = np.abs(update.td_errors)
        return update._replace(td_errors=np.where(size < 1, size**2 / 2, size - 0.5))


def test_priorities_come_from_the_td_errors():
    assert_priorities_come_from_the_td_errors()


@pytest.mark.parametrize("bugged", [LossAsPriority, HuberAsPriority])
def test_priorities_from_a_loss_are_noticed(bugged, monkeypatch):
    monkeypatch.setattr(training, "DQNLearner", bugged)
    with pytest.raises(AssertionError):
        assert_priorities_come_from_the_td_errors()


# The memory follows its seed


def assert_replay_follows_its_seed(sampler):
    """The same seed of the memory replays the same transitions, another seed others."""

    def replayed(seed):
        replay = RECORDED[sampler](240, (4,), runs=1, seed=seed)
        train(SHORT.replace(sampler=sampler, steps=80), 0, replay=replay)
        return replay.replayed

    first = replayed(1)
    assert replayed(1) == first
    assert replayed(2)[0] != first[0]


def constant(seeds, purpose):
    return RandomStreams([0 for _ in seeds], purpose)


def from_the_system(seeds, purpose):
    return RandomStreams(np.random.default_rng().integers(2**40, size=len(seeds)).tolist(), purpose)


@pytest.mark.parametrize("sampler", RECORDED)
def test_replay_follows_its_seed(sampler):
    assert_replay_follows_its_seed(sampler)


@pytest.mark.parametrize("bugged", [constant, from_the_system])
@pytest.mark.parametrize(
    ("sampler", "module"), [("uniform", uniform), ("proportional", proportional)]
)
def test_an_ignored_seed_is_noticed(sampler, module, bugged, monkeypatch):
    monkeypatch.setattr(module, "RandomStreams", bugged)
    with pytest.raises(AssertionError):
        assert_replay_follows_its_seed(sampler)
