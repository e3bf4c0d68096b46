"""Runs that Stable-Baselines3 trains: its own agents as everybody makes them, or ours."""

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch as th
from small_sb3 import CONFIG
from stable_baselines3 import DQN
from stable_baselines3.common.monitor import Monitor

from per_tutorial.integrations.sb3 import PrioritizedDQN
from per_tutorial.studies.sb3 import _train_one, train


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": {"steps": 3}}, r"options: must not hold .*, got \['steps'\]"),
        ({"steps": 0}, "steps: must be at least 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate: must be greater than 0, got 0"),
    ],
)
def test_settings_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        CONFIG.replace(**changes)


def test_sb3s_own_arm_is_sb3s_agent_as_everybody_makes_it():
    environment = Monitor(gym.make("CartPole-v1", max_episode_steps=12))
    agent = DQN(
        "MlpPolicy",
        environment,
        learning_rate=1e-3,
        learning_starts=30,
        buffer_size=100,
        batch_size=8,
        train_freq=2,
        target_update_interval=20,
        policy_kwargs={"net_arch": [8]},
        seed=5,
        device="cpu",
    )
    agent.learn(120)
    model, played = _train_one(CONFIG, 5)
    assert type(model) is DQN
    assert played.get_episode_rewards() == environment.get_episode_rewards()
    for mine, theirs in zip(model.policy.parameters(), agent.policy.parameters(), strict=True):
        assert th.equal(mine, theirs)


def test_an_arm_of_ours_has_its_sampler_and_the_same_settings():
    model, _ = _train_one(CONFIG.replace(replay="proportional", steps=40), 1)
    assert type(model) is PrioritizedDQN
    assert (model.learning_rate, model.learning_starts, model.seed) == (1e-3, 30, 1)
    assert (model.buffer_size, model.batch_size, model._n_updates) == (100, 8, 5)
    assert model.policy.net_arch == [8]
    assert model.replay_buffer.settings["sampler"] == "proportional"


def test_a_history_has_the_episodes_of_every_run_which_depends_on_its_own_seed_alone():
    history, greedy = train(CONFIG, [3, 4], episodes=2)
    alone, greedy_alone = train(CONFIG, [4], episodes=2)
    for mine, others in zip(history.returns(1), alone.returns(0), strict=True):
        assert mine.tolist() == others.tolist()
    assert greedy[1] == greedy_alone[0]
    assert history.returns(0)[1].tolist() != history.returns(1)[1].tolist()
    for run in (0, 1):
        steps, returns = history.returns(run)
        assert np.diff(steps, prepend=0).tolist() == returns.tolist()  # CartPole: 1 for each step
        assert 108 < steps[-1] <= 120 and returns.max() <= 12
    assert history.step == 120
