"""Environments side by side, and the only place that knows about autoreset.

The vector environments reset themselves in the step that ends an episode (Gymnasium's
`AutoresetMode.SAME_STEP`). It already returns the first observation of the next episode; the true
last observation is in `info["final_obs"]`. So each step is a transition.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.random import SeedSequence
from numpy.typing import NDArray

from per_tutorial.common.files import AnyArray, require_like
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.env_specs import SMALLEST_FRAME


class Step(NamedTuple):
    """What happened in one step, a row per environment."""

    next_observation: NDArray  # the true one, even where the episode ended
    reward: NDArray
    terminated: NDArray[np.bool_]  # the next state has value 0
    truncated: NDArray[np.bool_]  # stopped by a time limit: the next state keeps its value


class Checked(gym.Wrapper):
    """An environment whose `reset` and `step` return what Gymnasium wants, or a ValueError.

    The last observation of an episode is copied, since the next reset may overwrite it: some
    environments return the same array every time, and Gymnasium keeps it in `info["final_obs"]`
    while it resets them (Gymnasium #1132). Their own infos are left out, since one of that name
    would take its place.
    """

    def reset(self, **options: Any) -> Any:
        begun: Any = self.env.reset(**options)
        if not (isinstance(begun, tuple) and len(begun) == 2 and isinstance(begun[1], dict)):
            raise ValueError(f"env: reset must return (observation, info), got {begun!r}")
        space, found = self.observation_space, np.shape(begun[0])
        if isinstance(space, gym.spaces.Box) and found != space.shape:
            raise ValueError(
                f"env: reset must return an observation of its space's shape {space.shape}, "
                f"got {found}"
            )
        return begun[0], {}

    def step(self, action: Any) -> Any:
        happened: Any = self.env.step(action)
        if len(happened) != 5:
            raise ValueError(
                "env: step must return (observation, reward, terminated, truncated, info), "
                f"got {len(happened)} things"
            )
        observation, reward, terminated, truncated, _ = happened
        if type(reward) is not float and (reward is None or np.ndim(reward) > 0):
            raise ValueError(f"env: step must return a number as its reward, got {reward!r}")
        if terminated or truncated:
            observation = np.array(observation)
        return observation, reward, terminated, truncated, {}


class Environments:
    """A Gymnasium vector environment whose steps are transitions.

    Args:
        vector_env: any vector environment with SAME_STEP autoreset.
        seeds: one int per environment.

    Attributes:
        observation: what the agents see now, (environments, *shape).
        finished: the episodes that ended with the last step, (environment, return, steps) each.
        observation_shape, actions: of one environment.
        first_action: the environment's number of the first action (`Discrete.start`). Agents count
            from 0; `step` adds it.
    """

    def __init__(self, vector_env: gym.vector.VectorEnv, seeds: Any) -> None:
        self.vector_env: Any = vector_env
        autoreset = vector_env.metadata["autoreset_mode"]
        if autoreset != AutoresetMode.SAME_STEP:
            raise ValueError(f"vector_env: must reset in the same step, got {autoreset}")
        actions: Any = vector_env.single_action_space
        self.actions, self.first_action = int(actions.n), int(actions.start)
        self._seeds = seeds
        self._steps_done = 0
        self._begin(seeds)
        self.observation_shape: tuple[int, ...] = self.observation.shape[1:]

    def _begin(self, seeds: Any) -> None:
        """Begin an episode in every environment."""
        count = self.vector_env.num_envs
        observation, _ = self.vector_env.reset(seed=seeds)
        self.observation = self._shown(observation)
        self.finished: list[tuple[int, float, int]] = []
        self._returns, self._lengths = np.zeros(count), np.zeros(count, dtype=np.int64)

    def _shown(self, observation: NDArray) -> NDArray:
        """Observations of the environments, as the agents see them."""
        return observation

    def step(self, actions: NDArray) -> Step:
        """Act in every environment; returns a `Step` and updates `observation`.

        Args:
            actions: (environments,), counted from 0.
        """
        return self._transitions(*self.vector_env.step(actions + self.first_action))

    def _transitions(
        self,
        observation: NDArray,
        reward: NDArray,
        terminated: NDArray,
        truncated: NDArray,
        info: dict[str, Any],
    ) -> Step:
        """What `vector_env` returned for a step, as a `Step`."""
        self._steps_done += 1
        observation = self._shown(observation)
        ended = np.flatnonzero(terminated | truncated)
        next_observation = observation
        if ended.size:
            next_observation = observation.copy()
            for row in ended:
                next_observation[row] = self._shown(info["final_obs"][row][None])[0]
        self.observation = observation
        self._returns += reward
        self._lengths += 1
        self.finished = [(int(i), float(self._returns[i]), int(self._lengths[i])) for i in ended]
        self._returns[ended] = self._lengths[ended] = 0
        return Step(next_observation, reward, terminated, truncated)

    @property
    def state(self) -> dict[str, NDArray]:
        """What a checkpoint holds: the number of steps, from which new episodes get new seeds."""
        return {"steps_done": np.array(self._steps_done)}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Begin new episodes, with other seeds than those before the checkpoint."""
        require_like(self.state, state)
        self._steps_done = int(np.asarray(state["steps_done"]))
        self._begin([_renewed(seed, self._steps_done) for seed in self._seeds])

    def close(self) -> None:
        self.vector_env.close()


def _renewed(seed: int | list[int], step: int) -> int:
    """Another seed, made from this one and a step; 31 bits, since some emulators take no more."""
    return int(SeedSequence((*map(int, np.ravel(seed)), step)).generate_state(1)[0] >> 1)


def training_environments(config: DQNConfig, seeds: Sequence[int]) -> Environments:
    """One environment per seed.

    Raises:
        ValueError: there is no such environment, it cannot be made here, its actions are not
            discrete, or its observations are not arrays of numbers, such as pictures.
    """
    vector_env = make_vector_env(config.env, len(seeds), config.max_episode_steps)
    try:
        _check_spaces(config.env, vector_env)
        return Environments(vector_env, list(seeds))
    except BaseException:
        vector_env.close()
        raise


evaluation_environments = training_environments


def film_environment(config: DQNConfig) -> gym.Env:
    """An environment that renders pictures; ValueError if it cannot be made, or draws none."""
    with closing(make_vector_env(config.env, 1, config.max_episode_steps)) as made:
        if "rgb_array" not in made.metadata.get("render_modes", []):
            raise ValueError(f"env: {config.env!r} draws no pictures, it cannot be filmed")
    return gym.make(config.env, render_mode="rgb_array", max_episode_steps=config.max_episode_steps)


def _check_spaces(env_id: str, vector_env: gym.vector.VectorEnv) -> None:
    """Raise ValueError unless actions are discrete, and observations are arrays of numbers."""
    actions, observations = vector_env.single_action_space, vector_env.single_observation_space
    if not isinstance(actions, gym.spaces.Discrete):
        raise ValueError(f"env: the actions must be discrete, those of {env_id!r} are {actions}")
    if not isinstance(observations, gym.spaces.Box) or not observations.shape:
        raise ValueError(
            "env: the observations must be arrays (a Box with at least one axis), "
            f"those of {env_id!r} are {observations}"
        )
    if sum(length >= SMALLEST_FRAME for length in observations.shape) > 1:
        raise ValueError(
            f"env: {env_id!r} shows pictures of the shape {observations.shape}; only ids such as "
            "ALE/Pong-v5 and MinAtar/Breakout-v1 are learned from pictures (to flatten others, "
            "register a version with gymnasium.wrappers.FlattenObservation)"
        )


def make_vector_env(env_id: str, count: int, max_episode_steps: int | None) -> gym.vector.VectorEnv:
    """`gymnasium.make_vec` with SAME_STEP autoreset. ValueError if it cannot be made."""
    try:
        return gym.make_vec(
            env_id,
            count,
            vectorization_mode="sync",  # each with a generator of its own
            vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
            wrappers=[Checked],
            disable_env_checker=True,  # it takes time at every step
            max_episode_steps=max_episode_steps,
        )
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise ValueError(f"env: {env_id!r} cannot be made: {error}") from error
