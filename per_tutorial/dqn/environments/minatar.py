"""MinAtar: five Atari games on a board of 10×10 cells (Young & Tian 2019).

The ids are those of Gymnasium: "MinAtar/Breakout-v1" has only the actions that do something in this
game, "MinAtar/Breakout-v0" all six. The games are those of the package `minatar` with its defaults:
actions are sticky (one step in ten repeats the previous action), and asterix, seaquest and space
invaders get harder during an episode. Only freeway has a time limit (2,500 steps); for the others,
set `DQNConfig.max_episode_steps`.

An observation is (channels, 10, 10), a channel for each kind of object, True where one is.
"""

import warnings
from collections.abc import Sequence

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.lazy import missing_extra
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.environments.gymnasium_envs import Environments, make_vector_env


class MinAtarEnvironments(Environments):
    """Games of MinAtar, with the channels of an observation first."""

    def _shown(self, observation: NDArray) -> NDArray:
        return np.ascontiguousarray(observation.transpose(0, 3, 1, 2))


def training_environments(config: DQNConfig, seeds: Sequence[int]) -> MinAtarEnvironments:
    """One game for each seed.

    Raises:
        ImportError: the package `minatar` is missing.
        ValueError: there is no such game.
    """
    try:
        from minatar.gym import register_envs  # which loads seaborn: a second
    except ImportError as error:
        raise missing_extra(error, "MinAtar", "minatar") from error
    if "MinAtar/Breakout-v1" not in gym.registry:
        register_envs()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        # v0 is not out of date: it is the version with all six actions.
        games = make_vector_env(config.env, len(seeds), config.max_episode_steps)
    return MinAtarEnvironments(games, [_seed(seed) for seed in seeds])


evaluation_environments = training_environments  # rewards are points, and episodes are games


def film_environment(config: DQNConfig) -> gym.Env:
    """ValueError: nothing here draws these boards."""
    raise ValueError(f"env: {config.env!r} draws no pictures, it cannot be filmed")


def _seed(seed: int) -> int | list[int]:
    """A seed for `np.random.RandomState`, which takes 32 bits, or a list of such numbers."""
    return int(seed) if seed < 2**32 else [int(seed) % 2**32, int(seed) >> 32]
