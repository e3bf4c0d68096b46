"""A sampler as somebody might add it, in few lines: the measure of the contract."""

import numpy as np

from per_tutorial.replay.random_streams import RandomStreams


class LowSlots:
    """⌊u² · N⌋: slots with small numbers more often. Built on nothing."""

    def __init__(self, capacity, seeds):
        self.capacity, self.runs = capacity, len(seeds)
        self._streams = RandomStreams(seeds, "replay")
        self.settings = {"sampler": "low slots"}

    def add(self, slots):
        pass

    def sample(self, batch_size, sizes, beta):
        slots = (self._streams.uniform(batch_size) ** 2 * sizes[:, None]).astype(np.int64)
        chances = self.probabilities(slots, sizes)
        weights = (sizes[:, None] * chances) ** -beta
        return slots, chances, weights / weights.max(axis=1, keepdims=True)

    def update(self, slots, td_errors):
        pass

    def probabilities(self, slots, sizes):
        starts, ends = np.sqrt([slots, slots + 1] / sizes[:, None])
        return ends - starts

    state = property(lambda self: self._streams.state)
