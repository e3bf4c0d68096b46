"""tianshou."""

from importlib import import_module

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Minibatch


class Tianshou(Adapter):
    """`PrioritizedReplayBuffer`. n-step returns are made by its algorithms."""

    name = "tianshou"
    packages = ("tianshou",)
    epsilon = float(np.finfo(np.float32).eps)

    def make(self, settings):
        """An empty buffer; NumPy's global generator draws."""
        data = import_module("tianshou.data")
        np.random.seed(settings.seed)
        return data.PrioritizedReplayBuffer(settings.capacity, settings.alpha, settings.beta)

    def add(self, buffer, transition):
        names = ("obs", "act", "rew", "obs_next", "terminated", "truncated")
        batch = import_module("tianshou.data").Batch
        buffer.add(batch(**dict(zip(names, transition, strict=True))))

    def sample(self, buffer, batch_size, beta):
        """The minibatch includes the weights."""
        batch, indices = buffer.sample(batch_size)
        return Minibatch(
            observations=batch.obs,
            weights=batch.weight,
            keys=indices,
            actions=batch.act,
            rewards=batch.rew,
            next_observations=batch.obs_next,
            terminated=batch.terminated,
        )

    def update(self, buffer, keys, td_errors):
        buffer.update_weight(keys, td_errors)

    def save(self, buffer, path):
        """One HDF5 file."""
        buffer.save_hdf5(f"{path}.hdf5")

    def load(self, buffer, path):
        return type(buffer).load_hdf5(f"{path}.hdf5")
