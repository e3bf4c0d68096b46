"""Worlds with knobs: a blind cliff walk in which each knob changes nearly one thing.

The exception is n, which sets the rarity of reward, the number of values and, by default, γ.

The walk has n states and two actions. The right action, which alternates from state to state, leads
to the next state; the other one ends the episode. The right action in the last state pays 1, all
else pays 0, so a random policy is rewarded once in 2^(n+1) − 2 steps. A copy of the walk pays
nothing.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from per_tutorial.common.arguments import real_number, whole_number

OUTLIER = 10.0  # size of a reward outlier
ID = "per_tutorial/KnobWalk-v0"


@dataclass(frozen=True)
class Knobs:
    """The settings of a world.

    Args:
        n: states of the walk; one more state halves the share of rewarded steps.
        noise: standard deviation of the normal noise that is added to every reward.
        outliers: probability that ±10 is added to a reward; both signs are equally likely.
        slip: probability that the other action is carried out, below 1/2.
        irrelevant: share of episodes, and so of steps, in the copy that pays nothing.
        discount: γ; None: 1 − 1/n.

    Example:
        >>> from per_tutorial.experiments.when.worlds import Knobs
        >>> Knobs(n=3).rarity  # rewarded steps of a random policy: one in fourteen
        14
        >>> Knobs(n=3).true_values.round(3).tolist()
        [[0.444, 0.0], [0.0, 0.667], [1.0, 0.0]]
    """

    n: int = 5
    noise: float = 0.0
    outliers: float = 0.0
    slip: float = 0.0
    irrelevant: float = 0.0
    discount: float | None = None

    def __post_init__(self) -> None:
        whole_number("n", self.n, minimum=2, maximum=20)
        real_number("noise", self.noise, low=0)
        real_number("outliers", self.outliers, 0, 1)
        real_number("slip", self.slip, 0, 0.49)
        real_number("irrelevant", self.irrelevant, 0, 0.99)
        if self.discount is not None:
            real_number("discount", self.discount, 0, 1)

    @property
    def gamma(self) -> float:
        return 1 - 1 / self.n if self.discount is None else self.discount

    @property
    def rarity(self) -> int:
        """A random policy is rewarded once in this many steps, outside of the copy."""
        return 2 ** (self.n + 1) - 2

    @property
    def right(self) -> NDArray[np.int64]:
        """(2n,) the right action of each state; the states of the copy come last."""
        return np.tile(np.arange(self.n) % 2, 2)

    @property
    def true_values(self) -> NDArray[np.float64]:
        """(n, 2) Q of the optimal policy in the walk; in the copy it is 0."""
        q, value = np.empty((self.n, 2)), 1.0
        for state in reversed(range(self.n)):  # value: of carrying out the right action here
            right = state % 2
            q[state, right], q[state, 1 - right] = (1 - self.slip) * value, self.slip * value
            value = self.gamma * q[state].max()
        return q

    @property
    def reward_variance(self) -> float:
        """The variance that noise and outliers add to every reward."""
        return self.noise**2 + self.outliers * OUTLIER**2

    def model(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probabilities of the next state (2n, 2, 2n), which lack that of an end; mean rewards
        (2n, 2).
        """
        states = 2 * self.n
        chances, rewards = np.zeros((states, 2, states)), np.zeros((states, 2))
        for state in range(states):
            for action in (0, 1):
                goes_on = 1 - self.slip if action == self.right[state] else self.slip
                if state % self.n < self.n - 1:
                    chances[state, action, state + 1] = goes_on
                elif state < self.n:
                    rewards[state, action] = goes_on
        return chances, rewards


class Truth:
    """What no agent knows of a world, for all state-action pairs, those of the copy too.

    Args:
        knobs: the world.

    Attributes:
        values: (2n, 2) Q of the optimal policy.
        rewards: (2n, 2) mean rewards.
    """

    def __init__(self, knobs: Knobs) -> None:
        self.values = np.zeros((2 * knobs.n, 2))
        self.values[: knobs.n] = knobs.true_values
        self._chances, self.rewards = knobs.model()
        self._gamma = knobs.gamma

    def mean_errors(self, q: NDArray) -> NDArray[np.float64]:
        """m, the mean of δ over the possible outcomes of a step, for tables q (runs, 2n, 2)."""
        following = np.einsum("sat,rt->rsa", self._chances, q.max(axis=2))
        return self.rewards + self._gamma * following - q


class Draws(NamedTuple):
    """The random numbers of one step of many walks: (walks,) each."""

    slip: NDArray  # uniform
    noise: NDArray  # normal
    outlier: NDArray  # uniform
    start: NDArray  # uniform


def draw(rng: np.random.Generator, size: int | tuple[int, ...]) -> Draws:
    """The `Draws` of one step, or of many."""
    return Draws(rng.random(size), rng.standard_normal(size), rng.random(size), rng.random(size))


def walk_on(
    knobs: Knobs, states: NDArray, actions: NDArray, draws: Draws
) -> tuple[NDArray, NDArray, NDArray]:
    """One step of many walks: (reward, next state, whether it ended), (walks,) each.

    Where a walk ended, the next state is the state itself.
    """
    slipped = draws.slip < knobs.slip
    right = (actions == knobs.right[states]) ^ slipped
    last = states % knobs.n == knobs.n - 1
    ended = ~right | last
    rewards = (right & last & (states < knobs.n)) + knobs.noise * draws.noise
    rewards = rewards + OUTLIER * (draws.outlier < knobs.outliers / 2)
    rewards = rewards - OUTLIER * (
        (draws.outlier >= knobs.outliers / 2) & (draws.outlier < knobs.outliers)
    )
    return rewards, np.where(ended, states, states + 1), ended


def starts(knobs: Knobs, draws: Draws) -> NDArray[np.int64]:
    """The first state of each episode: that of the walk or that of the copy."""
    return np.where(draws.start < knobs.irrelevant, knobs.n, 0)


class Experience(NamedTuple):
    """The transitions of a random policy, (runs, steps) each."""

    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    next_states: NDArray[np.int64]
    ended: NDArray[np.bool_]


def experience(knobs: Knobs, seeds: Any, steps: int) -> Experience:
    """The experience of a random policy; each run depends on its own seed alone."""
    runs = len(seeds)
    found = Experience(
        np.empty((runs, steps), np.int64),
        np.empty((runs, steps), np.int64),
        np.empty((runs, steps)),
        np.empty((runs, steps), np.int64),
        np.empty((runs, steps), np.bool_),
    )
    chances = []
    for run, seed in enumerate(seeds):
        rng = np.random.default_rng((seed, 10))
        found.actions[run] = rng.integers(2, size=steps)
        chances.append(draw(rng, steps))
    every = Draws(*(np.stack(column) for column in zip(*chances, strict=True)))
    states = np.zeros(runs, dtype=np.int64)
    fresh = np.ones(runs, dtype=bool)
    for t in range(steps):
        now = Draws(*(column[:, t] for column in every))
        states = np.where(fresh, starts(knobs, now), states)
        rewards, following, fresh = walk_on(knobs, states, found.actions[:, t], now)
        found.states[:, t], found.rewards[:, t] = states, rewards
        found.next_states[:, t], found.ended[:, t] = following, fresh
        states = following
    return found


class KnobWalk(gym.Env):
    """The world in Gymnasium, ``per_tutorial/KnobWalk-v0``; observations are one-hot states.

    Args:
        knobs: keywords of `Knobs`.

    Example:
        >>> import gymnasium as gym
        >>> import per_tutorial.experiments.when.worlds
        >>> world = gym.make("per_tutorial/KnobWalk-v0", n=3, noise=0.0)
        >>> world.reset(seed=0)[0].tolist()
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        >>> world.step(0)[0].tolist()  # the right one; the next right one is 1
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, render_mode: str | None = None, **knobs: Any) -> None:
        self.knobs = Knobs(**knobs)
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(0.0, 1.0, (2 * self.knobs.n,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self._walk = KnobWalks(1, **knobs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        super().reset(seed=seed)
        observations, _ = self._walk.reset(seed=seed)
        return observations[0], {}

    def step(self, action: Any) -> tuple[NDArray, float, bool, bool, dict[str, Any]]:
        _, reward, ended, _, facts = self._walk.step(np.array([action]))
        shown = facts["final_obs"] if ended[0] else self._walk.observations
        return shown[0], float(reward[0]), bool(ended[0]), False, {}


class KnobWalks(gym.vector.VectorEnv):
    """Many walks at once, in NumPy; they share a random generator."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **knobs: Any) -> None:
        self.knobs = Knobs(**knobs)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = gym.spaces.Box(0.0, 1.0, (2 * self.knobs.n,), np.float32)
        self.single_action_space = gym.spaces.Discrete(2)
        self.observation_space = gym.vector.utils.batch_space(
            self.single_observation_space, num_envs
        )
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, num_envs)
        self.states = np.zeros(num_envs, dtype=np.int64)

    @property
    def observations(self) -> NDArray[np.float32]:
        return np.eye(2 * self.knobs.n, dtype=np.float32)[self.states]

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        super().reset(seed=seed)
        self.states = starts(self.knobs, draw(self.np_random, self.num_envs))
        return self.observations, {}

    def step(self, actions: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray, dict[str, Any]]:
        draws = draw(self.np_random, self.num_envs)
        rewards, self.states, ended = walk_on(self.knobs, self.states, np.asarray(actions), draws)
        last = self.observations
        self.states = np.where(ended, starts(self.knobs, draws), self.states)
        facts = {"final_obs": last} if ended.any() else {}
        return self.observations, rewards, ended, np.zeros(self.num_envs, bool), facts


def register(env_id: str, **knobs: Any) -> None:
    """Register a world with these knobs in Gymnasium."""
    gym.register(
        env_id,
        entry_point=f"{__name__}:KnobWalk",
        vector_entry_point=f"{__name__}:KnobWalks",
        kwargs=knobs,
    )


register(ID)
