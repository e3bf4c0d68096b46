"""Samplers as somebody might add them, in few lines each: the measure of the contract."""

import numpy as np

from per_tutorial.replay import ProportionalSampler, UniformSampler
from per_tutorial.replay.random_streams import RandomStreams


class LowSlots:
    """⌊u² · N⌋: slots with small numbers more often. Built on nothing."""

    def __init__(self, capacity, seeds):
        self.capacity, self.runs = capacity, len(seeds)
        self.streams = RandomStreams(seeds, "replay")
        self.settings = {"sampler": "low slots"}

    def add(self, slots, added):
        pass

    def sample(self, batch_size, sizes, beta):
        slots = (self.streams.uniform(batch_size) ** 2 * sizes[:, None]).astype(np.int64)
        weights = (sizes[:, None] * self.probabilities(slots, sizes)) ** -beta
        return slots, weights / weights.max(axis=1, keepdims=True)

    def update(self, slots, td_errors):
        pass

    def probabilities(self, slots, sizes):
        size = np.maximum(sizes, 1)[:, None]
        ends = np.sqrt(np.minimum([slots, slots + 1], size) / size)
        return np.where(slots < sizes[:, None], ends[1] - ends[0], 0.0)

    def metrics(self, sizes):
        return {}

    state = property(lambda self: {"streams": self.streams.states})
    schema = property(lambda self: {"streams": self.streams.spec})

    def check(self, state, sizes):
        pass

    def restore(self, state):
        self.streams.states[:] = state["streams"]


class NearTheEnd(ProportionalSampler):
    """p = 1 / (1 + steps to the end of the episode), 1 while it runs: wants to know of episodes."""

    def __init__(self, capacity, seeds):
        super().__init__(capacity, seeds, alpha=1.0)
        self.settings = {"sampler": "near the end"}

    def end_episodes(self, slots, lengths, stride):
        for steps in range(lengths.max()):
            earlier = np.where(steps < lengths, (slots - steps * stride) % self.capacity, -1)
            self._write(earlier, np.full(slots.shape, 1 / (1 + steps)))

    def update(self, slots, td_errors):
        pass


class FreshErrors(UniformSampler):
    """|δ| of now, not of back then: draws four times as many, and chooses by their TD errors."""

    candidates = 4

    def __init__(self, capacity, seeds):
        super().__init__(capacity, seeds)
        self.settings = {"sampler": "fresh errors"}

    def choose(self, td_errors, batch_size, beta):
        sizes = np.abs(td_errors) / np.abs(td_errors).max(axis=1, keepdims=True).clip(1e-9) + 1e-6
        sums = sizes.cumsum(axis=1)
        prefixes = self.streams.uniform(batch_size) * sums[:, -1:]
        chosen = (prefixes[:, :, None] >= sums[:, None, :-1]).sum(axis=2)
        relative = sizes / sizes.mean(axis=1, keepdims=True)
        return chosen, np.take_along_axis(relative, chosen, axis=1) ** -beta
