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


class Experience(NamedTuple):
    """The transitions of a random policy, (runs, steps) each."""

    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    next_states: NDArray[np.int64]  # the state itself where the episode ended
    ended: NDArray[np.bool_]


def experience(knobs: Knobs, seeds: Any, steps: int) -> Experience:
    """The experience of a random policy; each run depends on its own seed alone."""
    shape = len(seeds), steps
    actions = np.empty(shape, np.int64)
    slips, noise, outliers = (np.empty(shape) for _ in range(3))
    for run, seed in enumerate(seeds):
        rng = np.random.default_rng((seed, 10))
        actions[run] = rng.integers(2, size=steps)
        slips[run] = rng.random(steps)
        noise[run] = rng.standard_normal(steps)
        outliers[run] = rng.random(steps)
    carried_out = actions ^ (slips < knobs.slip)
    states, ended = np.zeros(shape, np.int64), np.empty(shape, np.bool_)
    for t in range(steps):
        now = states[:, t]
        ended[:, t] = (carried_out[:, t] != now % 2) | (now == knobs.n - 1)
        if t + 1 < steps:
            states[:, t + 1] = np.where(ended[:, t], 0, now + 1)
    paid = (carried_out == states % 2) & (states == knobs.n - 1)
    half = knobs.outliers / 2  # of the probability, for each sign
    rewards = paid + knobs.noise * noise
    rewards = rewards + OUTLIER * (outliers < half)
    rewards = rewards - OUTLIER * ((outliers >= half) & (outliers < knobs.outliers))
    return Experience(states, actions, rewards, np.where(ended, states, states + 1), ended)
