"""tianshou's own buffer."""

from importlib import import_module
from typing import Any

import numpy as np

from per_tutorial.conformance import Settings
from per_tutorial.conformance.adapters.integrations import OurTianshou


class Tianshou(OurTianshou):
    """`PrioritizedReplayBuffer`. n-step returns are made by its algorithms."""

    name = "tianshou"
    epsilon = float(np.finfo(np.float32).eps)

    def make(self, settings: Settings) -> Any:
        """An empty buffer; NumPy's global generator draws."""
        data = import_module("tianshou.data")
        np.random.seed(settings.seed)
        return data.PrioritizedReplayBuffer(settings.capacity, settings.alpha, settings.beta)
