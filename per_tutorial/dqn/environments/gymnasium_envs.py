"""Environments for a stack of runs, and the only place that knows about autoreset.

A vector environment resets itself after an episode, in one of two ways (Gymnasium's
`AutoresetMode`). SAME_STEP: the step that ends the episode already returns the first observation of
the next one, and the true last observation is in `info["final_obs"]`. NEXT_STEP: the following step
ignores its action and returns the reset observation; it is not a transition.
"""

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, MountainCarEnv
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import OrderEnforcing, TimeLimit
from numpy.typing import ArrayLike, NDArray

from per_tutorial.dqn.environments.settings import EnvSettings
from per_tutorial.dqn.states import ArraySpec, Schema, State, checked_state

MAX_STEPS = 2**62  # in a checkpoint: more than can be made, less than would overflow
MAX_BYTES = 2**28  # in a checkpoint, of the inner state of all environments

# Attributes that change while these run, besides generators. Environments with parts of any other
# type cannot be saved: it is unknown which attributes matter, and whether attributes are enough.
CHANGING: dict[type, tuple[str, ...]] = {
    SyncVectorEnv: ("_autoreset_envs",),
    OrderEnforcing: (),
    TimeLimit: ("_elapsed_steps",),
    CartPoleEnv: ("state",),
    AcrobotEnv: ("state",),
    MountainCarEnv: ("state",),
    CartPoleVectorEnv: ("state", "steps", "prev_done"),
}


class Step(NamedTuple):
    """What happened in one step, a row per environment."""

    next_observation: NDArray  # the true one, even where the episode ended
    reward: NDArray
    terminated: NDArray[np.bool_]  # the next state has value 0
    truncated: NDArray[np.bool_]  # stopped by a time limit: the next state keeps its value
    valid: NDArray[np.bool_]  # False where the step only reset the environment

    def learned_reward(self, terminal_reward: float | None) -> NDArray:
        """The reward to learn from; where an episode terminates, ``terminal_reward`` if given."""
        if terminal_reward is None:
            return self.reward
        return np.where(self.terminated, terminal_reward, self.reward)


class Environments:
    """A Gymnasium vector environment whose steps are transitions.

    Args:
        vector_env: any vector environment with NEXT_STEP or SAME_STEP autoreset.
        seeds: one int per environment, or one int for an environment that shares its generator.

    Attributes:
        observation: what the agents see now, (environments, *shape).
        finished: the episodes that ended with the last step, (environment, return, steps) each.
        observation_shape, actions: of one environment.
    """

    def __init__(self, vector_env: gym.vector.VectorEnv, seeds: ArrayLike) -> None:
        self.vector_env: Any = vector_env
        self.autoreset = vector_env.metadata["autoreset_mode"]
        if self.autoreset not in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
            raise ValueError(f"vector_env: must reset by itself, got {self.autoreset}")
        observations: Any = vector_env.single_observation_space
        actions: Any = vector_env.single_action_space
        self.observation_shape: tuple[int, ...] = observations.shape
        self.actions = int(actions.n)
        self._seeds = seeds
        self._steps_done = 0
        self._begin(seeds)

    def _begin(self, seeds: Any) -> None:
        """Begin an episode in every environment."""
        count = self.vector_env.num_envs
        self.observation, _ = self.vector_env.reset(seed=seeds)
        self.finished: list[tuple[int, float, int]] = []
        self._returns, self._lengths = np.zeros(count), np.zeros(count, dtype=np.int64)
        self._resets_now = np.zeros(count, dtype=bool)

    def step(self, actions: NDArray) -> Step:
        """Act in every environment; returns a `Step` and updates `observation`."""
        return self._transitions(*self.vector_env.step(actions))

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
        done = terminated | truncated
        valid = ~self._resets_now
        next_observation = observation
        if self.autoreset == AutoresetMode.NEXT_STEP:
            self._resets_now = done
        elif done.any():
            next_observation = observation.copy()
            for row in np.flatnonzero(done):
                next_observation[row] = info["final_obs"][row]
        self.observation = observation
        self._count(reward, valid, done)
        return Step(next_observation, reward, terminated, truncated, valid)

    def _count(self, reward: NDArray, valid: NDArray, done: NDArray) -> None:
        """Add a step to the running episodes; record those that it ended."""
        self._returns += reward
        self._lengths += valid
        rows = np.flatnonzero(done)
        self.finished = [(int(i), float(self._returns[i]), int(self._lengths[i])) for i in rows]
        self._returns[rows] = self._lengths[rows] = 0

    @property
    def can_be_saved(self) -> bool:
        """Whether running episodes can continue in another process (see `CHANGING`)."""
        return all(type(part) in CHANGING for part in _parts(self.vector_env))

    @property
    def state(self) -> State:
        """What a checkpoint holds, a dict of arrays."""
        state = {"steps_done": np.array(self._steps_done)}
        if self.can_be_saved:
            state["simulation"] = np.frombuffer(json.dumps(self._facts).encode(), np.uint8)
            state |= {"observation": self.observation, "resets_now": self._resets_now}
            state |= {"returns": self._returns, "lengths": self._lengths}
        return state

    @property
    def schema(self) -> Schema:
        """What each array of a state must be."""
        schema = {"steps_done": ArraySpec(np.int64, (), 0, MAX_STEPS)}
        if self.can_be_saved:
            count = self.vector_env.num_envs
            schema |= {
                "simulation": ArraySpec(np.uint8, (range(MAX_BYTES),)),
                "observation": ArraySpec(self.observation.dtype, self.observation.shape),
                "resets_now": ArraySpec(np.bool_, (count,)),
                "returns": ArraySpec(np.float64, (count,)),
                "lengths": ArraySpec(np.int64, (count,), 0, MAX_STEPS),
            }
        return schema

    def check(self, state: State) -> None:
        """Raise ValueError if arrays that fit the `schema` contradict these environments."""
        if "simulation" in state:
            self._simulation(state)

    def restore(self, state: State) -> bool:
        """Continue from a saved `state`; returns whether its running episodes continue as well.

        If they cannot be saved (`can_be_saved`), new ones begin, with other seeds than before.

        Raises:
            ValueError: it is not a state of such environments, which are then unchanged.
        """
        state = checked_state(state, self.schema)
        self.check(state)
        self._steps_done = int(state["steps_done"])
        if not self.can_be_saved:
            self._begin(_renewed(self._seeds, self._steps_done))
            return False
        simulation = self._simulation(state)
        self.observation = state["observation"].copy()
        self._resets_now = state["resets_now"].copy()
        self._returns, self._lengths = state["returns"].copy(), state["lengths"].copy()
        self._go_on(simulation)
        return True

    def _simulation(self, state: State) -> Any:
        """The argument of `_go_on`; ValueError unless it fits these environments."""
        try:
            facts = json.loads(state["simulation"].tobytes())
            return self._made_from(facts, state["observation"])
        # Errors that malformed text may raise
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"state: simulation is not of these environments ({error})") from error

    @property
    def _facts(self) -> dict[str, Any]:
        """The inner state of the environments, as JSON types."""
        return {
            "values": [np.asarray(value).tolist() for value in self._values],
            "generators": [each.bit_generator.state for each in self._generators],
        }

    def _made_from(self, facts: dict[str, Any], observation: NDArray) -> Any:
        """The saved values and generators, made from `_facts` but not applied yet.

        Raises one of several errors if they do not fit these environments.
        """
        values = [np.array(value) for value in facts["values"]]
        for own, saved in zip(map(np.asarray, self._values), values, strict=True):
            if (own.shape, own.dtype.kind) != (saved.shape, saved.dtype.kind):
                raise ValueError(f"{saved.dtype} of the shape {saved.shape}")
            if not np.isfinite(saved).all():
                raise ValueError("a number is not finite")
        for generator, saved in zip(self._generators, facts["generators"], strict=True):
            type(generator.bit_generator)().state = saved  # tried on a new one
        return values, facts["generators"]

    def _go_on(self, simulation: Any) -> None:
        """Apply what `_made_from` returned."""
        saved_values, saved_generators = simulation
        values = iter(saved_values)
        for part in _parts(self.vector_env):
            for name in CHANGING[type(part)]:
                setattr(part, name, next(values)[()])
        for generator, saved in zip(self._generators, saved_generators, strict=True):
            generator.bit_generator.state = saved

    @property
    def _values(self) -> list[Any]:
        """What changes in the environments, besides generators."""
        parts = _parts(self.vector_env)
        return [getattr(part, name) for part in parts for name in CHANGING[type(part)]]

    @property
    def _generators(self) -> tuple[np.random.Generator, ...]:
        """One for each environment, or a single one that they share."""
        generators = self.vector_env.np_random
        return generators if isinstance(generators, tuple) else (generators,)

    def close(self) -> None:
        self.vector_env.close()


def _parts(vector_env: Any) -> Iterator[Any]:
    """The vector environment, its environments, and what these wrap."""
    yield vector_env
    for env in getattr(vector_env, "envs", ()):
        yield env
        while isinstance(env, gym.Wrapper):
            env = env.env
            yield env


def _renewed(seeds: Any, step: int) -> Any:
    """Other seeds, made from these and a step; 31 bits, since some emulators take no more."""
    if np.ndim(seeds):
        return [_renewed(seed, step) for seed in seeds]
    return int(np.random.SeedSequence((seeds, step)).generate_state(1)[0] >> 1)


def training_environments(config: EnvSettings, seeds: Sequence[int]) -> Environments:
    """One environment per seed, made by the settings."""
    return make_environments(
        config.env,
        seeds,
        max_episode_steps=config.max_episode_steps,
        vectorization=config.vectorization,
    )


def evaluation_environments(config: EnvSettings, seeds: Sequence[int]) -> Environments:
    """One environment per seed, each with a generator of its own."""
    return make_environments(config.env, seeds, max_episode_steps=config.max_episode_steps)


def check_id(env: str) -> None:
    """Raise ValueError unless ``env`` is registered in Gymnasium, or is from this package.

    For "module:Name-v0" Gymnasium would import the module, and thus run whatever is in it.
    """
    module, colon, _ = env.partition(":")
    ours = colon and module.partition(".")[0] == __name__.partition(".")[0]
    if not ours and env not in gym.registry:
        raise ValueError(
            f"env: must be registered in Gymnasium, unless the file is trusted, got {env!r}"
        )


def make_environments(
    env_id: str,
    seeds: Sequence[int],
    *,
    max_episode_steps: int | None = None,
    vectorization: str = "sync",
) -> Environments:
    """One environment per seed.

    Raises:
        ValueError: there is no such environment, it cannot be made here, its actions are not
            discrete, or its observations are not arrays.
    """
    options: dict[str, Any] = {}
    if max_episode_steps is not None:
        options["max_episode_steps"] = max_episode_steps
    reset_seeds: list[int] | int = list(seeds)
    if vectorization == "sync":
        # Every environment has its own generator, so a run depends only on its own seed.
        options["vector_kwargs"] = {"autoreset_mode": AutoresetMode.SAME_STEP}
        options["disable_env_checker"] = True
    else:
        reset_seeds = int(np.random.SeedSequence(reset_seeds).generate_state(1)[0])
    try:
        vector_env = gym.make_vec(env_id, len(seeds), vectorization_mode=vectorization, **options)
    except gym.error.UnregisteredEnv:
        close = difflib.get_close_matches(env_id, gym.registry, n=3)
        hint = f", did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(f"env: no environment {env_id!r}{hint}") from None
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise ValueError(f"env: {env_id!r} cannot be made: {error}") from error
    if not isinstance(vector_env.single_action_space, gym.spaces.Discrete):
        raise ValueError(
            f"env: the actions must be discrete, those of {env_id!r} are "
            f"{vector_env.single_action_space}"
        )
    if not isinstance(vector_env.single_observation_space, gym.spaces.Box):
        raise ValueError(
            f"env: the observations must be arrays (a Box), those of {env_id!r} are "
            f"{vector_env.single_observation_space}"
        )
    return Environments(vector_env, reset_seeds)
