"""Worlds with knobs: a blind cliff walk in which each knob changes nearly one thing.

The exception is n, which sets the rarity of reward, the number of values and, by default, γ.

The walk has n states and two actions. The right action, which alternates from state to state, leads
to the next state; the other one ends the episode. The right action in the last state pays 1, all
else pays 0, so a random policy is rewarded once in 2^(n+1) − 2 steps. A copy of the walk pays
nothing.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import real_number, whole_number

OUTLIER = 10.0  # size of a reward outlier


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
        >>> from per_tutorial.worlds.knobs import Knobs
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
