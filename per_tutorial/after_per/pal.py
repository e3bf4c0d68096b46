"""PAL: the loss that moves like LAP (Fujimoto, Meger and Precup 2020, arXiv 2007.06049)."""

import torch
from torch import Tensor

from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.losses import Tensors


def pal_losses(td_errors: Tensor, kappa: float = 1.0, alpha: float = 0.6) -> tuple[Tensor, Tensor]:
    """PAL's loss of each error and its slope, both (runs, batch) (section 4.3).

    The loss is κ^α · ½δ² up to |δ| = κ and κ|δ|^(1 + α) / (1 + α) beyond, divided by the batch's
    mean of max(|δ|, κ)^α, which counts as a constant. Its slope is thus Huber's times LAP's
    priority: with uniform draws, the mean gradient is that of LAP.
    """
    size = td_errors.abs()
    priorities = size.clamp(min=kappa) ** alpha
    mean = priorities.mean(dim=1, keepdim=True)
    slopes = td_errors.clamp(-kappa, kappa) * priorities / mean
    return slopes * td_errors * torch.where(size < kappa, 0.5, 1 / (1 + alpha)), slopes


class PalLearner(DQNLearner):
    """`DQNLearner` with PAL's loss, for uniform replay; κ and α are those of its settings."""

    def errors_and_losses(
        self, q_values: Tensor, tensors: Tensors
    ) -> tuple[Tensor, Tensor, Tensor]:
        """δ of Q(s, a), the losses, and their gradients with respect to Q(s, a)."""
        td_errors = self._targets(tensors) - q_values
        alpha = 0.6 if self.config.alpha is None else self.config.alpha
        losses, slopes = pal_losses(td_errors, self.config.kappa, alpha)
        return td_errors, losses.mean(dim=1), slopes / -td_errors.shape[1]
