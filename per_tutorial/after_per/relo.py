"""ReLo: replay by reducible loss (Sujit, Nath, Braga and Kahou, NeurIPS 2023, arXiv 2208.10483)."""

import numpy as np
import torch
from numpy.typing import NDArray

from per_tutorial.dqn.learner import DQNLearner, Update
from per_tutorial.dqn.losses import select_actions
from per_tutorial.replay.contracts import Batch


class ReloLearner(DQNLearner):
    """Priorities from the loss that can still be reduced, for proportional replay.

    ReLo is the loss of the online network minus that of the target network, at least 0. Noise
    raises both losses alike, but not their difference. `update` returns ReLo in place of δ.
    """

    def update(self, batch: Batch, step_size: float | None = None) -> Update:
        """One gradient step of every run; its ``td_errors`` are the ReLo before it."""
        reducible = self.reducible_losses(batch)
        return super().update(batch, step_size)._replace(td_errors=np.maximum(reducible, 0.0))

    @torch.no_grad()
    def reducible_losses(self, batch: Batch) -> NDArray:
        """δ² of the online network minus δ² of the target network, with the same targets."""
        tensors = self.tensors(batch)
        targets = self._targets(tensors)
        online, target = (
            (targets - select_actions(network(tensors.observations), tensors.actions)) ** 2
            for network in (self.online, self.target)
        )
        return (online - target).cpu().numpy()
