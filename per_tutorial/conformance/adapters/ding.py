"""DI-engine."""

from importlib import import_module
from typing import Any

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Drawn, Settings
from per_tutorial.replay.contracts import Floats, Transition

FIELDS = ("obs", "action", "reward", "next_obs", "done")


class DIEngine(Adapter):
    """`DequeBuffer` with the `PriorityExperienceReplay` middleware. It adds 1e-5 to priorities."""

    name = "DI-engine"
    packages = ("DI-engine",)
    epsilon = 1e-5
    time_limit = 60.0

    def make(self, settings: Settings) -> Any:
        """An empty buffer; NumPy's global generator draws. β is not to be annealed here."""
        np.random.seed(settings.seed)
        data = import_module("ding.data.buffer.deque_buffer")
        per = import_module("ding.data.buffer.middleware.priority").PriorityExperienceReplay
        buffer = data.DequeBuffer(settings.capacity)
        buffer.use(
            per(
                buffer,
                priority_power_factor=settings.alpha,
                IS_weight_power_factor=settings.beta,
                IS_weight_anneal_train_iter=10**12,
            )
        )
        return buffer

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one step."""
        buffer.push(dict(zip(FIELDS, transition[:5], strict=True)))

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """A list of entries with their metadata."""
        entries = buffer.sample(batch_size)
        columns = [np.array([entry.data[name] for entry in entries]) for name in FIELDS]
        weights = np.array([entry.meta["priority_IS"] for entry in entries])
        return Drawn(columns[0], weights, entries, *columns[1:])

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """It asks for priorities, entry by entry."""
        for entry, error in zip(keys, np.abs(td_errors).tolist(), strict=True):
            meta = {**entry.meta, "priority": error}
            buffer.update(entry.index, entry.data, meta)
