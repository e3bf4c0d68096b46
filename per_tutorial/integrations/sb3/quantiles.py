"""The quantile DQN of sb3-contrib with prioritised replay."""

import torch as th
from sb3_contrib import QRDQN
from torch.nn import functional as F

from per_tutorial.integrations.sb3.algorithms import PrioritizedQLearner
from per_tutorial.integrations.sb3.buffers import Samples


def quantile_losses(quantiles: th.Tensor, targets: th.Tensor) -> th.Tensor:
    """The quantile Huber loss (Dabney et al. 2018, eq. 10) of each transition: (batch, 1).

    Args:
        quantiles, targets: (batch, n) each. Each quantile is compared with every target.
    """
    n = quantiles.shape[1]
    fractions = (th.arange(n, device=quantiles.device, dtype=quantiles.dtype) + 0.5) / n
    errors = targets[:, None, :] - quantiles[:, :, None]  # (batch, quantile, target)
    huber = F.huber_loss(errors, th.zeros_like(errors), reduction="none")
    tilt = (fractions[None, :, None] - (errors.detach() < 0).to(errors.dtype)).abs()
    return (tilt * huber).sum(dim=1).mean(dim=1, keepdim=True)


class PrioritizedQRDQN(PrioritizedQLearner, QRDQN):
    """`QRDQN` of sb3-contrib with prioritised replay: its arguments, and `alpha` and `beta` as in
    `PrioritizedDQN`.

    Priorities come from the |δ| of the Q-values, the means of the quantiles. The loss itself is not
    used: it has another unit, and stays positive even if the Q-value is right.
    """

    def _losses(self, batch: Samples) -> tuple[th.Tensor, th.Tensor]:
        with th.no_grad():
            of_all = self.quantile_net_target(batch.next_observations)  # (batch, n, actions)
            greedy = of_all.mean(dim=1, keepdim=True).argmax(dim=2, keepdim=True)
            targets = self._targets(batch, _of_actions(of_all, greedy))
        of_all = self.quantile_net(batch.observations)
        quantiles = _of_actions(of_all, batch.actions[..., None].long())
        td_errors = targets.mean(dim=1) - quantiles.mean(dim=1)
        return quantile_losses(quantiles, targets), td_errors


def _of_actions(quantiles: th.Tensor, actions: th.Tensor) -> th.Tensor:
    """(batch, n): the ``quantiles`` (batch, n, all actions) of ``actions`` (batch, 1, 1)."""
    return quantiles.gather(dim=2, index=actions.expand(-1, quantiles.shape[1], 1)).squeeze(dim=2)
