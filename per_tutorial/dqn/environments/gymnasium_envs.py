"""Environments for a stack of runs, and the one place that knows about autoreset.

After an episode's end a vector environment resets by itself, in one of two ways (Gymnasium's
`AutoresetMode`). SAME_STEP: the step that ends the episode already returns the first observation of
the next one, and the true last observation is in `info["final_obs"]`. NEXT_STEP: the following step
ignores its action and returns the reset observation, a step that no transition must be made of.
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

from per_tutorial.common.states import ArraySpec, Schema, State, checked_state
from per_tutorial.dqn.environments.settings import EnvSettings

MAX_STEPS = 2**62  # of a checkpoint: more than can be made, less than would overflow
MAX_BYTES = 2**28  # of a checkpoint, about the inside of all environments

# What changes, beside generators, while these run. One with a part of any other type cannot be
# saved: nothing tells which of its attributes matter, or whether attributes are all there is.
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

    next_observation: NDArray  # the true one, also where the episode ended
    reward: NDArray
    terminated: NDArray[np.bool_]  # the value of what follows is zero
    truncated: NDArray[np.bool_]  # stopped by a time limit: what follows still has its value
    valid: NDArray[np.bool_]  # False where the step only reset the environment


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
        """Act in every environment; returns a `Step` and moves on to `observation`."""
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
        """Add a step to the running episodes; note those that it ended."""
        self._returns += reward
        self._lengths += valid
        rows = np.flatnonzero(done)
        self.finished = [(int(i), float(self._returns[i]), int(self._lengths[i])) for i in rows]
        self._returns[rows] = self._lengths[rows] = 0

    @property
    def can_be_saved(self) -> bool:
        """Whether the episodes that run can go on in another process (see `CHANGING`)."""
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
        """Raise ValueError if arrays that fit the `schema` are no state of these environments."""
        if "simulation" in state:
            self._simulation(state)

    def restore(self, state: State) -> bool:
        """Go on from what `state` gave; returns whether the episodes that ran then go on as well.

        Where they cannot be saved (`can_be_saved`), new ones begin, and other ones than those that
        this object began with.

        Raises:
            ValueError: it is no state of such environments. They are as they were then.
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
        """What `_go_on` takes; ValueError unless it could take the place of ours."""
        try:
            facts = json.loads(state["simulation"].tobytes())
            return self._made_from(facts, state["observation"])
        # Errors that malformed text may raise
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"state: simulation is not of these environments ({error})") from error

    @property
    def _facts(self) -> dict[str, Any]:
        """The inside of the environments, in what JSON knows."""
        return {
            "values": [np.asarray(value).tolist() for value in self._values],
            "generators": [each.bit_generator.state for each in self._generators],
        }

    def _made_from(self, facts: dict[str, Any], observation: NDArray) -> Any:
        """The saved values and generators, made from `_facts` but not in their place yet.

        Raises one of several errors if they are not of these environments.
        """
        values = [np.array(value) for value in facts["values"]]
        for own, saved in zip(map(np.asarray, self._values), values, strict=True):
            if (own.shape, own.dtype.kind) != (saved.shape, saved.dtype.kind):
                raise ValueError(f"{saved.dtype} of the shape {saved.shape}")
            if not np.isfinite(saved).all():
                raise ValueError("a number is not finite")
        for generator, saved in zip(self._generators, facts["generators"], strict=True):
            type(generator.bit_generator)().state = saved  # tried on another one
        return values, facts["generators"]

    def _go_on(self, simulation: Any) -> None:
        """Put what `_made_from` made in its place."""
        saved_values, saved_generators = simulation
        values = iter(saved_values)
        for part in _parts(self.vector_env):
            for name in CHANGING[type(part)]:
                setattr(part, name, next(values)[()])
        for generator, saved in zip(self._generators, saved_generators, strict=True):
            generator.bit_generator.state = saved

    @property
    def _values(self) -> list[Any]:
        """What changes in the environments, beside generators."""
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
    """Other seeds, made from these and a step; of 31 bits, since some emulators take no more."""
    if np.ndim(seeds):
        return [_renewed(seed, step) for seed in seeds]
    return int(np.random.SeedSequence((seeds, step)).generate_state(1)[0] >> 1)


def training_environments(config: EnvSettings, seeds: Sequence[int]) -> Environments:
    """One environment per seed, made as the settings say."""
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
    """ValueError unless Gymnasium knows ``env`` already, or it is one of this package.

    Of "module:Name-v0" Gymnasium would import the module, and so run whatever is in it.
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
            discrete, or its observations are no arrays.
    """
    options: dict[str, Any] = {}
    if max_episode_steps is not None:
        options["max_episode_steps"] = max_episode_steps
    reset_seeds: list[int] | int = list(seeds)
    if vectorization == "sync":
        # Every environment owns its generator, so a run depends on no seed but its own.
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
