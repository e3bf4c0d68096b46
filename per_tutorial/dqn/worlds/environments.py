"""Environments for a stack of runs, and the one place that knows about autoreset.

After an episode's end a vector environment resets by itself, in one of two ways (Gymnasium's
`AutoresetMode`). SAME_STEP: the step that ends the episode already returns the first observation of
the next one, and the true last observation is in `info["final_obs"]`. NEXT_STEP: the following step
ignores its action and returns the reset observation, a step that no transition must be made of.
"""

import difflib
import json
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, MountainCarEnv
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import OrderEnforcing, TimeLimit

# What changes, beside generators, while these run. One with a part of any other type cannot be saved:
# nothing tells which of its attributes matter, or whether attributes are all there is.
CHANGING = {
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

    next_observation: np.ndarray  # the true one, also where the episode ended
    reward: np.ndarray
    terminated: np.ndarray  # the value of what follows is zero
    truncated: np.ndarray  # stopped by a time limit: what follows still has its value
    valid: np.ndarray  # False where the step only reset the environment


class Environments:
    """A Gymnasium vector environment whose steps are transitions.

    Args:
        vector_env: any vector environment with NEXT_STEP or SAME_STEP autoreset.
        seeds: one int per environment, or one int for an environment that shares its generator.

    Attributes:
        observation: what the agents see now, (environments, *shape).
        finished: the episodes that ended with the last step, a list of (environment, return, length
            in steps).
    """

    def __init__(self, vector_env, seeds):
        self.vector_env = vector_env
        self.autoreset = vector_env.metadata["autoreset_mode"]
        if self.autoreset not in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
            raise ValueError(f"vector_env: must reset by itself, got {self.autoreset}")
        self.observation_shape = vector_env.single_observation_space.shape
        self.actions = int(vector_env.single_action_space.n)
        self._seeds = seeds
        self._steps_done = 0
        self._begin(seeds)

    def _begin(self, seeds):
        """Begin an episode in every environment."""
        count = self.vector_env.num_envs
        self.observation, _ = self.vector_env.reset(seed=seeds)
        self.finished = []
        self._returns, self._lengths = np.zeros(count), np.zeros(count, dtype=np.int64)
        self._resets_now = np.zeros(count, dtype=bool)

    def step(self, actions):
        """Act in every environment; returns a `Step` and moves on to `observation`."""
        return self._transitions(*self.vector_env.step(actions))

    def _transitions(self, observation, reward, terminated, truncated, info):
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

    def _count(self, reward, valid, done):
        """Add a step to the running episodes; note those that it ended."""
        self._returns += reward
        self._lengths += valid
        rows = np.flatnonzero(done)
        self.finished = [(int(i), float(self._returns[i]), int(self._lengths[i])) for i in rows]
        self._returns[rows] = self._lengths[rows] = 0

    @property
    def state(self):
        """What a checkpoint holds, a dict of arrays."""
        state = {"steps_done": np.array(self._steps_done)}
        parts = list(_parts(self.vector_env))
        if all(type(part) in CHANGING for part in parts):
            values = [getattr(part, name) for part in parts for name in CHANGING[type(part)]]
            facts = {
                "values": [np.asarray(value).tolist() for value in values],
                "generators": [each.bit_generator.state for each in self._generators],
            }
            state["simulation"] = np.array(json.dumps(facts))
            state |= {"observation": self.observation, "resets_now": self._resets_now}
            state |= {"returns": self._returns, "lengths": self._lengths}
        return state

    def restore(self, state):
        """Go on from what `state` gave; returns whether the episodes that ran then go on as well.

        Where they cannot be saved (all but CartPole, Acrobot and MountainCar, see `CHANGING`), new
        ones begin, and other ones than those that this object began with.
        """
        self._steps_done = int(state["steps_done"])
        if "simulation" not in state:
            self._begin(_renewed(self._seeds, self._steps_done))
            return False
        self.observation = state["observation"]
        self._resets_now = state["resets_now"]
        self._returns, self._lengths = state["returns"], state["lengths"]
        facts = json.loads(str(state["simulation"]))
        values = iter(facts["values"])
        for part in _parts(self.vector_env):
            for name in CHANGING[type(part)]:
                setattr(part, name, np.array(next(values))[()])
        for generator, saved in zip(self._generators, facts["generators"], strict=True):
            generator.bit_generator.state = saved
        return True

    @property
    def _generators(self):
        """One for each environment, or a single one that they share."""
        generators = self.vector_env.np_random
        return generators if isinstance(generators, tuple) else (generators,)

    def close(self):
        self.vector_env.close()


def _parts(vector_env):
    """The vector environment, its environments, and what these wrap."""
    yield vector_env
    for env in getattr(vector_env, "envs", ()):
        yield env
        while isinstance(env, gym.Wrapper):
            env = env.env
            yield env


def _renewed(seeds, step):
    """Other seeds, made from these and a step; of 31 bits, since some emulators take no more."""
    if np.ndim(seeds):
        return [_renewed(seed, step) for seed in seeds]
    return int(np.random.SeedSequence((seeds, step)).generate_state(1)[0] >> 1)


def make_environments(env_id, seeds, *, max_episode_steps=None, vectorization="sync"):
    """One environment per seed.

    Raises:
        ValueError: there is no such environment, it cannot be made here, its actions are not
            discrete, or its observations are no arrays.
    """
    options = {} if max_episode_steps is None else {"max_episode_steps": max_episode_steps}
    reset_seeds = list(seeds)
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
