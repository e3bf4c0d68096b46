"""Uniform replay: every stored transition is equally likely (notebook 02)."""

import numpy as np

from per_tutorial.replay.random_streams import RandomStreams


class UniformSampler:
    """Every stored transition is equally likely, drawn with replacement (notebook 02).

    Args:
        capacity: slots per run.
        seeds: one int per run.
    """

    def __init__(self, capacity, seeds):
        self.streams = RandomStreams(seeds, "replay")
        self.settings = {"sampler": "uniform"}
        self.state = {"streams": self.streams.states}

    def add(self, slots):
        """Nothing to note: all slots are alike."""

    def sample(self, batch_size, sizes, beta):
        """Slots and weights, both (runs, batch); the weights are all 1."""
        uniform = self.streams.uniform(batch_size)
        return (uniform * sizes[:, None]).astype(np.int64), np.ones(uniform.shape)

    def update(self, slots, td_errors):
        """Nothing to note: TD errors do not matter here."""

    def statistics(self, sizes):
        """Measurements per run for `History`: none."""
        return {}
