"""Naive twins: what the replay side promises, in the shortest code that is surely right."""

import math
from collections import deque
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


def naive_window(log, first, n_step, discount):
    """The n-step transition that begins with step ``first`` of a run.

    ``log`` is all that has happened in the run so far, a list of (observation, action, reward,
    next observation, terminated, truncated). Returns (observation, action, discounted rewards,
    next observation, terminated, number of steps).
    """
    window = []
    for step in log[first : first + n_step]:
        window.append(step)
        if step[4] or step[5]:
            break
    rewards = sum(discount**k * step[2] for k, step in enumerate(window))
    return (*window[0][:2], rewards, *window[-1][3:5], len(window))


class NStepQueue:
    """The textbook's way: a transition waits until n steps have happened or its episode is over."""

    def __init__(self, n_step, discount):
        self.n_step, self.discount = n_step, discount
        self.waiting = deque()

    def add(self, observation, action, reward, next_observation, terminated, truncated):
        """Take one step; returns the n-step transitions that are complete now, oldest first."""
        self.waiting.append((observation, action, reward))
        over = terminated or truncated
        complete = []
        while self.waiting and (over or len(self.waiting) == self.n_step):
            rewards = sum(self.discount**k * r for k, (_, _, r) in enumerate(self.waiting))
            steps = len(self.waiting)
            first = self.waiting.popleft()
            complete.append((*first[:2], rewards, next_observation, terminated, steps))
        return complete
