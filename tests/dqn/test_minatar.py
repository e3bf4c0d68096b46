"""MinAtar's games are the games of `minatar`, step by step.

The twin is a loop over one game, `minatar.Environment`, or Gymnasium's own environment made from
it.
"""

import sys

import gymnasium as gym
import numpy as np
import pytest

minatar = pytest.importorskip("minatar")

from minatar.gym import register_envs  # noqa: E402

from per_tutorial.dqn.config import DQNConfig  # noqa: E402
from per_tutorial.dqn.environments.minatar import training_environments  # noqa: E402
from per_tutorial.dqn.training import make_replay, train  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*is out of date")
CHANNELS = {"Asterix": 4, "Breakout": 4, "Freeway": 7, "Seaquest": 10, "SpaceInvaders": 6}
SEEDS = [3, 4, 2**32]
games = pytest.mark.parametrize("name", CHANNELS)
CONFIG = DQNConfig(
    env="MinAtar/Breakout-v1",
    steps=240,
    hidden=(8,),
    batch_size=4,
    learning_starts=40,
    capacity=150,
    max_episode_steps=30,
    precision="float32",
)


@pytest.fixture(scope="module", autouse=True)
def ids():
    register_envs()


def make(name, seeds=tuple(SEEDS), version=1, limit=None):
    config = CONFIG.replace(env=f"MinAtar/{name}-v{version}", max_episode_steps=limit)
    return training_environments(config, list(seeds))


def play(environments, steps, seed=0):
    """What happens under random actions: a list of (observation, actions, `Step`)."""
    numbers = np.random.default_rng(seed)
    happened = []
    for _ in range(steps):
        observation = environments.observation.copy()
        actions = numbers.integers(environments.actions, size=len(observation))
        step = environments.step(actions)
        happened.append((observation, actions, step))
    return happened


def assert_as_gymnasium_plays(environments, env_id, seed, row, steps, limit=None):
    """The row of one game, beside Gymnasium's environment with the same seed."""
    options = {} if limit is None else {"max_episode_steps": limit}
    twin = gym.make(env_id, **options)
    shown, _ = twin.reset(seed=seed)
    ends = 0
    for observation, actions, step in play(environments, steps):
        np.testing.assert_array_equal(observation[row], np.moveaxis(shown, 2, 0))
        shown, reward, terminated, truncated, _ = twin.step(actions[row])
        np.testing.assert_array_equal(step.next_observation[row], np.moveaxis(shown, 2, 0))
        assert step.reward[row] == reward
        assert (step.terminated[row], step.truncated[row]) == (terminated, truncated)
        if terminated or truncated:
            shown, _ = twin.reset()
            ends += 1
    return ends


@games
@pytest.mark.slow
def test_each_game_is_played_as_gymnasium_plays_it(name):
    version = len(name) % 2  # in v0, all six actions
    env_id = f"MinAtar/{name}-v{version}"
    environments = make(name, version=version)
    assert environments.observation_shape == (CHANNELS[name], 10, 10)
    assert environments.observation.dtype == np.bool_
    assert environments.actions == gym.make(env_id).action_space.n
    steps = 2600 if name == "Freeway" else 500
    ends = assert_as_gymnasium_plays(environments, env_id, SEEDS[1], 1, steps)
    assert ends >= (1 if name == "Freeway" else 5)


def test_a_time_limit_truncates():
    env_id = "MinAtar/SpaceInvaders-v1"
    environments = make("SpaceInvaders", limit=20)
    assert assert_as_gymnasium_plays(environments, env_id, SEEDS[0], 0, 300, limit=20) > 14


def test_the_memory_keeps_a_cell_as_a_byte_and_gives_it_back():
    environments = make("SpaceInvaders", seeds=[0, 1])
    replay = make_replay(CONFIG.replace(env="MinAtar/SpaceInvaders-v1"), (6, 10, 10), [0, 1])
    row = replay.storage.rows.dtype
    assert row["observation"].base == np.bool_
    assert row.itemsize <= 2 * 600 + 16  # the action, the reward, and how it ended
    happened = play(environments, 40)
    for observation, actions, step in happened:
        ends = step.terminated, step.truncated
        replay.add(observation, actions, step.reward, step.next_observation, *ends)
    batch = replay.sample(30)
    assert batch.observations.dtype == np.bool_
    for run, k in np.ndindex(batch.indices.shape):
        observation, _, step = happened[batch.indices[run, k]]
        np.testing.assert_array_equal(batch.observations[run, k], observation[run])
        np.testing.assert_array_equal(batch.next_observations[run, k], step.next_observation[run])


# Names


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "minatar.gym", None)
    with pytest.raises(ImportError, match=r'needs minatar.*pip install "per_tutorial\[minatar\] @'):
        train(CONFIG, [0])
