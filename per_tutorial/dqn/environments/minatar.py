"""MinAtar: five Atari games on a board of 10×10 cells (Young & Tian 2019).

The ids are those of Gymnasium: "MinAtar/Breakout-v1" has only the actions that do something in this
game, "MinAtar/Breakout-v0" all six. The games are those of the package `minatar` with its defaults:
actions are sticky (one step in ten repeats the previous action), and asterix, seaquest and space
invaders get harder during an episode. Only freeway has a time limit (2,500 steps); for the others,
set `DQNConfig.max_episode_steps`.

An observation is (channels, 10, 10), a channel for each kind of object, True where one is.
"""

import difflib
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from per_tutorial.common.arguments import whole_number
from per_tutorial.dqn.environments.gymnasium_envs import Environments
from per_tutorial.dqn.environments.settings import EnvSettings

SIZE = 10  # cells in a row or column
GAMES = {
    "Asterix": "asterix",
    "Breakout": "breakout",
    "Freeway": "freeway",
    "Seaquest": "seaquest",
    "SpaceInvaders": "space_invaders",
}

# Id → the game, and whether it has only the actions that do something
IDS = {
    f"MinAtar/{name}-v{version}": (game, version == 1)
    for name, game in GAMES.items()
    for version in (0, 1)
}

# What never changes in a game, and its generator, which is saved separately
CONSTANT = {"channels", "action_map", "ramping", "random"}
MT19937_NUMBERS = 624  # in the state of a generator


class MinAtarVectorEnv(gym.vector.VectorEnv):
    """Games side by side in this process: a step takes less time than a message to another process.

    Args:
        env_id: one of `IDS`.
        count: number of games.
        max_episode_steps: steps after which an episode is truncated; None: never.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, env_id: str, count: int, max_episode_steps: int | None = None) -> None:
        name, minimal = IDS[env_id]
        self.env_id = env_id
        self.games = [_game_class()(name) for _ in range(count)]
        self.num_envs = count
        self.max_episode_steps = max_episode_steps
        self.elapsed = np.zeros(count, dtype=np.int64)  # steps of the running episodes
        game = self.games[0]
        self.action_set = game.minimal_action_set() if minimal else range(game.num_actions())
        self.shape = (game.n_channels, SIZE, SIZE)
        self.single_observation_space = gym.spaces.Box(0, 1, self.shape, np.bool_)
        self.single_action_space = gym.spaces.Discrete(len(self.action_set))

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Begin an episode in every game; with a ``seed`` for each, episodes are reproducible."""
        if seed is not None:
            for game, own in zip(self.games, seed, strict=True):
                game.seed(_seed(own))
                game.last_action = 0  # as in a game that was just made
        for game in self.games:
            game.reset()
        self.elapsed[:] = 0
        return self.shown(), {}

    def step(
        self, actions: Any
    ) -> tuple[NDArray, NDArray, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Act in every game; where an episode ends, the observation is the first of the next one.

        In that case the dict has the last observations of all games, as "final_obs".
        """
        rewards, terminated = np.zeros(self.num_envs), np.zeros(self.num_envs, dtype=bool)
        for k, (game, action) in enumerate(zip(self.games, actions, strict=True)):
            rewards[k], terminated[k] = game.act(self.action_set[action])
        self.elapsed += 1
        truncated = np.zeros_like(terminated)
        if self.max_episode_steps is not None:
            truncated = (self.elapsed >= self.max_episode_steps) & ~terminated
        observations = self.shown()
        facts: dict[str, Any] = {}
        over = terminated | truncated
        if over.any():
            facts["final_obs"] = observations.copy()
            for k in np.flatnonzero(over).tolist():
                self.games[k].reset()
                observations[k] = self.games[k].state().transpose(2, 0, 1)
            self.elapsed[over] = 0
        return observations, rewards, terminated, truncated, facts

    def shown(self) -> NDArray[np.bool_]:
        """What all games show, (games, channels, 10, 10)."""
        observations = np.empty((self.num_envs, *self.shape), dtype=np.bool_)
        for row, game in zip(observations, self.games, strict=True):
            row[:] = game.state().transpose(2, 0, 1)
        return observations

    @property
    def facts(self) -> dict[str, Any]:
        """All that changes, as JSON types."""
        return {
            "elapsed": self.elapsed.tolist(),
            "last_actions": [int(game.last_action) for game in self.games],
            "games": [
                {name: _plain(value) for name, value in _changing(game)} for game in self.games
            ],
            "generators": [_plain(game.random.get_state(legacy=False)) for game in self.games],
        }

    def copy_with(self, facts: dict[str, Any]) -> "MinAtarVectorEnv":
        """New games in the state that `facts` describes.

        Raises one of several errors if it does not fit these games.
        """
        copy = MinAtarVectorEnv(self.env_id, self.num_envs, self.max_episode_steps)
        for k, length in _rows(facts["elapsed"], self.num_envs):
            copy.elapsed[k] = whole_number("elapsed", length, 0)
        for k, action in _rows(facts["last_actions"], self.num_envs):
            copy.games[k].last_action = whole_number("last_actions", action, 0, 5)
        for k, values in _rows(facts["games"], self.num_envs):
            own = dict(_changing(copy.games[k]))
            if own.keys() != values.keys():
                raise ValueError(f"attributes {sorted(own.keys() ^ values.keys())}")
            for name, value in own.items():
                setattr(copy.games[k].env, name, _like(value, values[name]))
        for k, saved in _rows(facts["generators"], self.num_envs):
            whole_number("pos", saved["state"]["pos"], 0, MT19937_NUMBERS)
            game = copy.games[k]
            game.seed(0)  # gives it a generator of its own
            game.random.set_state(saved)
        return copy


class MinAtarEnvironments(Environments):
    """Games of MinAtar; a training can continue in the middle of an episode."""

    can_be_saved = True

    @property
    def _facts(self) -> dict[str, Any]:
        return self.vector_env.facts

    def _made_from(self, facts: dict[str, Any], observation: NDArray) -> MinAtarVectorEnv:
        saved = self.vector_env.copy_with(facts)
        if not np.array_equal(saved.shown(), observation):
            raise ValueError("it shows another observation")
        return saved

    def _go_on(self, simulation: MinAtarVectorEnv) -> None:
        self.vector_env = simulation


def training_environments(config: EnvSettings, seeds: Sequence[int]) -> MinAtarEnvironments:
    """One game for each seed.

    Raises:
        ImportError: the package `minatar` is missing.
        ValueError: there is no such game.
    """
    if config.env not in IDS:
        close = difflib.get_close_matches(config.env, IDS, n=3)
        hint = f", did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(f"env: no environment {config.env!r}{hint}")
    games = MinAtarVectorEnv(config.env, len(seeds), config.max_episode_steps)
    return MinAtarEnvironments(games, list(seeds))


def evaluation_environments(config: EnvSettings, seeds: Sequence[int]) -> MinAtarEnvironments:
    """The same as for training: rewards are points, and episodes are games."""
    return training_environments(config, seeds)


def check_id(env: str) -> None:
    """Nothing to reject: whatever the id is, only games of MinAtar are looked up."""


def _game_class() -> Any:
    """`minatar.Environment`; importing it loads matplotlib and seaborn, which takes a second."""
    try:
        from minatar import Environment
    except ImportError as error:
        raise ImportError('MinAtar needs: pip install "per_tutorial[minatar]"') from error
    return Environment


def _seed(seed: int) -> int | list[int]:
    """A seed for `np.random.RandomState`; below 2³² the seed itself, as in Gymnasium."""
    return int(seed) if seed < 2**32 else [int(seed) % 2**32, int(seed) >> 32]


def _changing(game: Any) -> list[tuple[str, Any]]:
    """Name and value of what changes in a game, besides its generator and its last action."""
    return [(name, value) for name, value in vars(game.env).items() if name not in CONSTANT]


def _plain(value: Any) -> Any:
    """The value as JSON types."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _rows(values: list, count: int) -> zip:
    return zip(range(count), values, strict=True)


def _like(own: Any, saved: Any) -> Any:
    """A value from JSON as the same kind as ours; ValueError or TypeError if it is another."""
    if isinstance(own, np.ndarray):
        array = np.array(saved, dtype=own.dtype)
        if array.shape != own.shape or not np.isfinite(array).all():
            raise ValueError(f"an array of the shape {array.shape}")
        return array
    if isinstance(own, list):  # objects on the board: a list of numbers for each, or None
        for each in saved:
            if each is not None and not all(isinstance(one, (int, bool)) for one in each):
                raise TypeError(f"an object {each!r}")
        return [None if each is None else list(each) for each in saved]
    if isinstance(own, (bool, np.bool_)):
        if not isinstance(saved, bool):
            raise TypeError(f"{saved!r} in place of True or False")
        return saved
    return whole_number("a number", saved, -(2**31), 2**31)
