"""Worlds with knobs: a blind cliff walk in which each knob changes nearly one thing.

The exception is n, which sets the rarity of reward, the number of values and γ.

The walk has n states and two actions. The right action, which alternates from state to state, leads
to the next state; the other one ends the episode. The right action in the last state pays 1, all
else pays 0, so a random policy is rewarded once in 2^(n+1) − 2 steps.
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

    Example:
        >>> from per_tutorial.worlds.knobs import Knobs
        >>> Knobs(n=3).rarity  # rewarded steps of a random policy: one in fourteen
        14
    """

    n: int = 5
    noise: float = 0.0
    outliers: float = 0.0
    slip: float = 0.0

    def __post_init__(self) -> None:
        whole_number("n", self.n, minimum=2, maximum=20)
        real_number("noise", self.noise, low=0)
        real_number("outliers", self.outliers, 0, 1)
        real_number("slip", self.slip, 0, 0.49)

    @property
    def gamma(self) -> float:
        """γ of the walk."""
        return 1 - 1 / self.n

    @property
    def rarity(self) -> int:
        """A random policy is rewarded once in this many steps."""
        return 2 ** (self.n + 1) - 2


class Draws(NamedTuple):
    """The random numbers of one step of many walks: (walks,) each."""

    slip: NDArray  # uniform
    noise: NDArray  # normal
    outlier: NDArray  # uniform


def draw(rng: np.random.Generator, size: int | tuple[int, ...]) -> Draws:
    """The `Draws` of one step, or of many."""
    return Draws(rng.random(size), rng.standard_normal(size), rng.random(size))


def walk_on(
    knobs: Knobs, states: NDArray, actions: NDArray, draws: Draws
) -> tuple[NDArray, NDArray, NDArray]:
    """One step of many walks: (reward, next state, whether it ended), (walks,) each.

    Where a walk ended, the next state is the state itself.
    """
    right = (actions == states % 2) ^ (draws.slip < knobs.slip)
    last = states == knobs.n - 1
    ended = ~right | last
    rewards = (right & last) + knobs.noise * draws.noise
    rewards = rewards + OUTLIER * (draws.outlier < knobs.outliers / 2)
    rewards = rewards - OUTLIER * (
        (draws.outlier >= knobs.outliers / 2) & (draws.outlier < knobs.outliers)
    )
    return rewards, np.where(ended, states, states + 1), ended


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
    for t in range(steps):
        now = Draws(*(column[:, t] for column in every))
        rewards, following, ended = walk_on(knobs, states, found.actions[:, t], now)
        found.states[:, t], found.rewards[:, t] = states, rewards
        found.next_states[:, t], found.ended[:, t] = following, ended
        states = np.where(ended, 0, following)
    return found
