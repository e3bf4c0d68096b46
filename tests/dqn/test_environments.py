"""Environments side by side: their steps, their limits and seeds, and which cannot be used."""

import gymnasium as gym
import numpy as np
import pytest
from counting import CountingEnv, SameArray
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.environments.gymnasium_envs import Environments, training_environments
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import evaluate, train
from per_tutorial.replay import ReplayBuffer

SEEDS = [0, 1, 2]


def made(env, seeds=SEEDS, **settings):
    return training_environments(DQNConfig(env=env, **settings), seeds)


def test_the_time_limit_is_the_one_asked_for():
    environments = made("CartPole-v1", max_episode_steps=5)
    alternate = [np.full(3, t % 2) for t in range(5)]  # left, right, …: no pole falls in 5 steps
    steps = [environments.step(actions) for actions in alternate]
    assert [step.truncated.tolist() for step in steps] == [[False] * 3] * 4 + [[True] * 3]
    assert not any(step.terminated.any() for step in steps)


# Environments that cannot be used


@pytest.mark.parametrize(
    "env_id, message",
    [
        ("Cartpole-v1", r"env: 'Cartpole-v1' cannot be made: .* Did you mean: `CartPole`"),
        ("a name!", r"env: 'a name!' cannot be made: Malformed environment ID"),
        ("Pendulum-v1", r"env: the actions must be discrete, those of 'Pendulum-v1' are Box"),
        ("FrozenLake-v1", r"env: the observations must be arrays \(a Box .*\), .* are Discrete"),
    ],
)
def test_what_is_wrong_with_an_environment_is_said(env_id, message):
    with pytest.raises(ValueError, match=message):
        made(env_id)


@pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, AutoresetMode.NEXT_STEP])
def test_a_vector_environment_that_does_not_reset_in_the_same_step_is_refused(mode):
    vector_env = SyncVectorEnv([CountingEnv], autoreset_mode=mode)
    with pytest.raises(ValueError, match=f"must reset in the same step, got .*{mode.name}"):
        Environments(vector_env, [0])


ZEROS = np.zeros(2, np.float32)


class Odd(gym.Env):
    """What it returns is odd, or its step is an error; counts how many of its kind are open."""

    action_space = gym.spaces.Discrete(2)
    open = 0

    def __init__(self, shape=(2,), begun=None, happened=None):
        self.observation_space = gym.spaces.Box(-1, 1, shape, np.float32)
        self.begun, self.happened = begun, happened
        Odd.open += 1

    def reset(self, *, seed=None, options=None):
        return (ZEROS, {}) if self.begun is None else self.begun

    def step(self, action):
        return self.happened or {}["mine"]

    def close(self):
        Odd.open -= 1


@pytest.fixture
def odd():
    """Settings for environments that are odd in the ways given."""

    def settings(**ways):
        gym.register("tests/Odd-v0", lambda: Odd(**ways))
        return DQNConfig(env="tests/Odd-v0", steps=100, hidden=(4,))

    yield settings
    del gym.registry["tests/Odd-v0"]
    assert Odd.open == 0


@pytest.mark.parametrize(
    "ways, message",
    [
        ({"shape": ()}, "a Box with at least one axis"),
        (
            {"shape": (96, 96, 3)},
            r"shows pictures of the shape \(96, 96, 3\); only ids such as ALE/Pong",
        ),
        ({"shape": (84, 84)}, r"shows pictures of the shape \(84, 84\)"),
        ({"shape": (3,)}, r"reset must .* of its space's shape \(3,\), got \(2,\)$"),
        ({"begun": ZEROS}, r"reset must return \(observation, info\), got array\("),
        ({"happened": (ZEROS, 1.0, False, {})}, "step must return .*, got 4 things"),
        ({"happened": (ZEROS, None, False, False, {})}, "a number as its reward, got None"),
        ({"happened": (ZEROS, ZEROS[:1], False, False, {})}, r"its reward, got array\(\[0"),
    ],
)
def test_an_environment_that_cannot_be_learned_from_is_named_and_closed(ways, message, odd):
    with pytest.raises(ValueError, match=f"^env: .*{message}"):
        train(odd(**ways), 0)


def test_an_error_of_an_environment_stays_and_closes_it(odd):
    agent = DQNLearner(odd(), (2,), 2, [0])
    for use in (lambda: train(agent.config, [0, 1]), lambda: evaluate(agent, 2)):
        with pytest.raises(KeyError, match="mine"):
            use()
        assert Odd.open == 0


class InfoOfThatName(SameArray):
    info = {"final_obs": np.full(1, 7, np.float32)}


@pytest.mark.parametrize("kind", [SameArray, InfoOfThatName])
def test_the_last_observation_survives(kind):
    """Gymnasium #1132: the reset in the same step would overwrite it, or an info of that name."""
    replay = ReplayBuffer(100, (1,))
    gym.register("tests/SameArray-v0", kind)
    try:
        train(DQNConfig(env="tests/SameArray-v0", steps=100), 0, replay=replay)
    finally:
        del gym.registry["tests/SameArray-v0"]
    rows = replay.storage.rows[0, :10]
    assert rows["observation"].ravel().tolist() == [0, 1, 2, 3, 4] * 2
    assert rows["next_observation"].ravel().tolist() == [1, 2, 3, 4, 5] * 2
