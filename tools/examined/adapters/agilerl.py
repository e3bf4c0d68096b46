"""AgileRL."""

from importlib import import_module
from typing import Any

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Drawn, Settings
from per_tutorial.replay.contracts import Floats, Transition

FIELDS = ("obs", "action", "reward", "next_obs", "done")


class AgileRL(Adapter):
    """`PrioritizedReplayBuffer`."""

    name = "AgileRL"
    packages = ("agilerl", "torch")
    time_limit = 60.0

    def make(self, settings: Settings) -> Any:
        """An empty buffer; PyTorch's global generator draws."""
        import_module("torch").manual_seed(settings.seed)
        module = import_module("agilerl.components.replay_buffer")
        return module.PrioritizedReplayBuffer(settings.capacity, settings.alpha)

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store a batch of one step."""
        torch, tensordict = import_module("torch"), import_module("tensordict")
        fields = {
            name: torch.as_tensor(np.asarray(value, np.float32))[None]
            for name, value in zip(FIELDS, transition[:5], strict=True)
        }
        buffer.add(tensordict.TensorDict(fields, [1]))

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """Scalars, weights and indices come as columns."""
        batch = buffer.sample(batch_size, beta=beta)
        values = [batch[name].numpy() for name in FIELDS]
        return Drawn(
            values[0],
            batch["weights"].numpy().reshape(-1),
            batch["idxs"],
            values[1].reshape(-1),
            values[2].reshape(-1),
            values[3],
            values[4].reshape(-1),
        )

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """It asks for priorities."""
        torch = import_module("torch")
        buffer.update_priorities(keys.reshape(-1), torch.as_tensor(np.abs(td_errors)))
