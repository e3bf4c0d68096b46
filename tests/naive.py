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


class NaivePrioritizedReplay:
    """One run of proportional replay (Schaul et al., section 3.3) as a list of [number, priority].

    It draws from a `NaiveStream`; the weights are the raw (N · P(i))^−β.
    """

    def __init__(self, capacity, alpha, priority_epsilon, stream):
        self.slots = [None] * capacity
        self.alpha, self.priority_epsilon, self.stream = alpha, priority_epsilon, stream
        self.added = 0
        self.largest = 1.0

    def add(self):
        self.slots[self.added % len(self.slots)] = [self.added, self.largest]
        self.added += 1

    def update(self, numbers, td_errors):
        stored = {entry[0]: entry for entry in self.slots if entry}
        for number, td_error in zip(numbers, td_errors, strict=True):
            if number in stored:  # it may have been overwritten since it was sampled
                stored[number][1] = abs(td_error) + self.priority_epsilon
                self.largest = max(self.largest, stored[number][1])

    def probabilities(self):
        leaves = [entry[1] ** self.alpha if entry else 0.0 for entry in self.slots]
        return [leaf / math.fsum(leaves) for leaf in leaves]

    def sample(self, batch_size, beta):
        tree = NaiveTree(len(self.slots))
        tree.leaves = [entry[1] ** self.alpha if entry else 0.0 for entry in self.slots]
        size = min(self.added, len(self.slots))
        numbers, weights = [], []
        for k in range(batch_size):
            slot = tree.find((k + self.stream.uniform()) / batch_size * tree.total)
            numbers.append(self.slots[slot][0])
            weights.append((size * tree.leaves[slot] / tree.total) ** -beta)
        return numbers, weights
