"""PAL: the loss that moves like LAP (Fujimoto, Meger and Precup 2020, arXiv 2007.06049)."""

from typing import ClassVar

import torch
from torch import Tensor

from per_tutorial.dqn.learner import DQNLearner


class PalLearner(DQNLearner):
    """`DQNLearner` with PAL's loss, for uniform replay; κ and α are those of its settings.

    It is κ^α · ½δ² up to |δ| = κ and κ|δ|^(1 + α) / (1 + α) beyond, divided by the batch's mean of
    max(|δ|, κ)^α, which counts as a constant (section 4.3). Its slope is thus Huber's times LAP's
    priority: with uniform draws, the mean gradient is that of LAP.
    """

    needs: ClassVar = {"sampler": "uniform"}

    def losses(self, td_errors: Tensor, weights: Tensor) -> Tensor:
        """PAL's loss of each transition, (runs, batch)."""
        kappa = self.config.kappa
        alpha = 0.6 if self.config.alpha is None else self.config.alpha
        size = td_errors.abs()
        priorities = size.detach().clamp(min=kappa) ** alpha
        bent = kappa / (1 + alpha) * size.clamp(min=kappa) ** (1 + alpha)
        losses = torch.where(size < kappa, kappa**alpha * 0.5 * td_errors**2, bent)
        return weights * losses / priorities.mean(dim=1, keepdim=True)
