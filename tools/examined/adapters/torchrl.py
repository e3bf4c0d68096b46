"""torchrl's own buffer: trees in C++."""

import logging
from importlib import import_module
from typing import Any

import numpy as np

from per_tutorial.conformance import Settings
from per_tutorial.conformance.adapters.integrations import OurTorchRL
from per_tutorial.replay.contracts import Floats


class TorchRL(OurTorchRL):
    """`TensorDictPrioritizedReplayBuffer`."""

    name = "torchrl"
    epsilon = 1e-8

    def make(self, settings: Settings) -> Any:
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

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """It asks for |δ|, in single precision."""
        super().update(buffer, keys, np.abs(td_errors).astype(np.float32))
