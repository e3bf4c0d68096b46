"""Naive twins: what the replay side promises, in the shortest code that is surely right."""

import math
from fractions import Fraction
from itertools import accumulate

MASK = 2**64 - 1


class NaiveTree:
    """A list of leaves. Everything else is computed from scratch, and exactly."""

    def __init__(self, capacity, empty=0.0):
        self.leaves = [empty] * capacity

    def set(self, indices, values):
        for index, value in zip(indices, values, strict=True):
            self.leaves[index] = value

    @property
    def total(self):
        return math.fsum(self.leaves)

    @property
    def min(self):
        return min(self.leaves)

    @property
    def boundaries(self):
        """Leaf i holds the prefix sums in [boundaries[i], boundaries[i + 1])."""
        return [Fraction(0), *accumulate(map(Fraction, self.leaves))]

    def find(self, prefix):
        return next(i for i, end in enumerate(self.boundaries[1:]) if prefix < end)


class NaiveStream:
    """SplitMix64 in Python's integers: numbers in [0, 1) from 64 bits of state."""

    def __init__(self, state):
        self.state = int(state)

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def uniform(self):
        return (self.bits() >> 11) * 2.0**-53


def naive_window(log, first, n_step, discount):
    """The n-step transition that begins with step ``first`` of a run.

    ``log`` is all that has happened in the run so far, a list of (observation, action, reward,
    next observation, terminated, truncated). Returns (observation, action, discounted rewards,
    next observation, terminated, discount).
    """
    window = []
    for step in log[first : first + n_step]:
        window.append(step)
        if step[4] or step[5]:
            break
    rewards = sum(discount**k * step[2] for k, step in enumerate(window))
    goes_on = not window[-1][4]
    return (*window[0][:2], rewards, *window[-1][3:5], discount ** len(window) * goes_on)
