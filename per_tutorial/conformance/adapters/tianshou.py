"""tianshou's own buffer."""

from importlib import import_module
from typing import Any

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Drawn, Settings
from per_tutorial.replay.contracts import Floats, Transition


class Tianshou(Adapter):
    """`PrioritizedReplayBuffer`. n-step returns are made by its algorithms."""

    name = "tianshou"
    packages = ("tianshou",)
    epsilon = float(np.finfo(np.float32).eps)
    time_limit = 30.0

    def make(self, settings: Settings) -> Any:
        """An empty buffer; NumPy's global generator draws."""
        data = import_module("tianshou.data")
        np.random.seed(settings.seed)
        return data.PrioritizedReplayBuffer(settings.capacity, settings.alpha, settings.beta)

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one step."""
        observation, action, reward, after, terminated, truncated = transition
        buffer.add(
            import_module("tianshou.data").Batch(
                obs=observation,
                act=action,
                rew=reward,
                obs_next=after,
                terminated=terminated,
                truncated=truncated,
            )
        )

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """A batch has its weights with it."""
        batch, indices = buffer.sample(batch_size)
        return Drawn(
            batch.obs, batch.weight, indices, batch.act, batch.rew, batch.obs_next, batch.terminated
        )

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """It takes |δ| by itself."""
        buffer.update_weight(keys, td_errors)

    def save(self, buffer: Any, path: str) -> None:
        """One HDF5 file."""
        buffer.save_hdf5(f"{path}.hdf5")

    def load(self, buffer: Any, path: str) -> Any:
        """Into a new buffer."""
        return type(buffer).load_hdf5(f"{path}.hdf5")
