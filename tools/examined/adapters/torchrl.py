"""torchrl: trees in C++."""

import logging
from importlib import import_module

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Minibatch

FIELDS = ("observation", "action", "reward", "next_observation", "terminated")  # the keys


class TorchRL(Adapter):
    """`TensorDictPrioritizedReplayBuffer`."""

    name = "torchrl"
    packages = ("torchrl-nightly", "torchrl", "torch")
    epsilon = 1e-8

    def make(self, settings):
        """An empty buffer; NumPy's global generator draws."""
        logging.getLogger("torchrl").setLevel(logging.ERROR)
        data = import_module("torchrl.data")
        np.random.seed(settings.seed)
        return data.TensorDictPrioritizedReplayBuffer(
            alpha=settings.alpha,
            beta=settings.beta,
            eps=self.epsilon,
            storage=data.LazyTensorStorage(settings.capacity),
            batch_size=settings.batch_size,
        )

    def add(self, buffer, transition):
        fields = dict(zip(FIELDS, transition[:5], strict=True))
        buffer.add(import_module("tensordict").TensorDict(fields, []))

    def sample(self, buffer, batch_size, beta):
        """The TensorDict includes weights and indices."""
        batch = buffer.sample()
        return Minibatch(
            observations=batch["observation"],
            weights=batch["priority_weight"],
            keys=batch["index"],
            actions=batch["action"],
            rewards=batch["reward"],
            next_observations=batch["next_observation"],
            terminated=batch["terminated"],
        )

    def update(self, buffer, keys, td_errors):
        """It asks for |δ|, in single precision."""
        errors = np.abs(td_errors).astype(np.float32)
        buffer.update_priority(keys, import_module("torch").as_tensor(errors))

    def save(self, buffer, path):
        buffer.dumps(path)

    def load(self, buffer, path):
        buffer.loads(path)
