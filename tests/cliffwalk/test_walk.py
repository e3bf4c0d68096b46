"""The Blind Cliffwalk: its memory, its values, and the environment."""

import itertools
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from per_tutorial.cliffwalk.environment import BlindCliffwalk, make_memory, true_values

ENV = "per_tutorial/BlindCliffwalk-v0"


# The walk and its memory ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_the_memory_holds_all_that_all_sequences_of_actions_meet(n):
    env = BlindCliffwalk(n)
    played = []
    for actions in itertools.product((0, 1), repeat=n):
        env.reset()
        for action in actions:
            state = env.state
            _, reward, terminated, _, _ = env.step(action)
            played.append((state, action, reward, -1 if terminated else env.state))
            if terminated:
                break
    memory = make_memory(n, np.random.default_rng(0))
    stored = list(zip(*(field.tolist() for field in memory), strict=True))
    assert sorted(stored) == sorted(played)
    assert len(stored) == 2 ** (n + 1) - 2
    assert sum(memory.rewards) == 1
    assert stored != sorted(stored)


def test_noise_changes_the_rewards_alone():
    quiet = make_memory(6, np.random.default_rng(1))
    noisy = make_memory(6, np.random.default_rng(1), noise=0.5)
    difference = noisy.rewards - quiet.rewards
    assert difference.std() == pytest.approx(0.5, rel=0.2)
    for name in ("states", "actions", "next_states"):
        np.testing.assert_array_equal(getattr(noisy, name), getattr(quiet, name))


@pytest.mark.parametrize("n", [2, 4, 10])
def test_true_values_solve_the_bellman_equation(n):
    values = true_values(n)
    env = BlindCliffwalk(n)
    for state, action in itertools.product(range(n), range(2)):
        env.reset()
        env.state = state
        _, reward, terminated, _, _ = env.step(action)
        following = 0.0 if terminated else values[env.state].max()
        assert values[state, action] == pytest.approx(reward + (1 - 1 / n) * following)


# The environment --------------------------------------------------------------------------------


def test_gymnasium_accepts_the_environment():
    check_env(gym.make(ENV, n=5).unwrapped, skip_render_check=True)


@pytest.mark.slow
def test_the_name_alone_is_enough_where_nothing_is_imported():
    code = f"import gymnasium; print(gymnasium.make('per_tutorial.cliffwalk:{ENV}', n=3).spec.id)"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == ENV


def test_an_episode():
    env = gym.make(ENV, n=3, render_mode="ansi")
    assert env.reset()[0].tolist() == [1, 0, 0]
    assert env.step(0)[1:4] == (0.0, False, False)
    assert env.render() == "○●○"
    env.step(1)
    assert env.step(0)[1:4] == (1.0, True, False)
