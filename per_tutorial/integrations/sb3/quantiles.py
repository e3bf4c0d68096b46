"""The quantile DQN of sb3-contrib with prioritised replay."""

import numpy as np
import torch as th
from torch.nn import functional as F

from per_tutorial.integrations.sb3.algorithms import PrioritizedAlgorithm, weighted_mean

try:
    from sb3_contrib import QRDQN
except ImportError as error:
    raise ImportError(
        'PrioritizedQRDQN needs sb3-contrib, which is not installed: pip install "per_tutorial[sb3]"'
    ) from error


def quantile_losses(quantiles: th.Tensor, targets: th.Tensor) -> th.Tensor:
    """The quantile Huber loss (Dabney et al. 2018, eq. 10) of each transition: (batch, 1).

    Args:
        quantiles, targets: (batch, n) each. Every one of the n quantiles is compared with every target.
    """
    n = quantiles.shape[1]
    fractions = (th.arange(n, device=quantiles.device, dtype=quantiles.dtype) + 0.5) / n
    errors = targets[:, None, :] - quantiles[:, :, None]  # (batch, quantile, target)
    huber = F.huber_loss(errors, th.zeros_like(errors), reduction="none")
    tilt = (fractions[None, :, None] - (errors.detach() < 0).to(errors.dtype)).abs()
    return (tilt * huber).sum(dim=1).mean(dim=1, keepdim=True)


class PrioritizedQRDQN(PrioritizedAlgorithm, QRDQN):
    """`QRDQN` of sb3-contrib with prioritised replay; the arguments are those of QRDQN and of
    `PrioritizedAlgorithm`.

    A priority is the |δ| of the Q-values, the means of the quantiles: the loss itself is of another
    unit, and stays positive when the Q-value is right.

    Example:
        >>> from per_tutorial.integrations.sb3 import PrioritizedQRDQN
        >>> model = PrioritizedQRDQN(
        ...     "MlpPolicy", "CartPole-v1", buffer_size=1000, learning_starts=50, seed=0
        ... )
        >>> model = model.learn(60)
        >>> model.replay_buffer.size(), model.replay_buffer.beta > 0.9  # β goes from 0.4 to 1
        (60, True)
    """

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """`QRDQN.train` of sb3-contrib with weights and priorities."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        buffer = self._begin_training()
        losses = []
        for _ in range(gradient_steps):
            batch = buffer.sample(batch_size, env=self._vec_normalize_env)
            discounts = self.gamma if batch.discounts is None else batch.discounts
            with th.no_grad():
                of_all = self.quantile_net_target(batch.next_observations)  # (batch, n, actions)
                greedy = of_all.mean(dim=1, keepdim=True).argmax(dim=2, keepdim=True)
                next_quantiles = _of_actions(of_all, greedy)
                targets = batch.rewards + (1 - batch.dones) * discounts * next_quantiles
            of_all = self.quantile_net(batch.observations)
            quantiles = _of_actions(of_all, batch.actions[..., None].long())

            loss = weighted_mean(quantile_losses(quantiles, targets), batch.weights)
            td_errors = (targets.mean(dim=1) - quantiles.mean(dim=1)).detach()
            buffer.update_priorities(batch.indices, td_errors)
            losses.append(loss.item())

            self.policy.optimizer.zero_grad()
            loss.backward()
            if self.max_grad_norm is not None:
                th.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps

        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))


def _of_actions(quantiles: th.Tensor, actions: th.Tensor) -> th.Tensor:
    """(batch, n): of quantiles (batch, n, all actions) those of one action each, (batch, 1, 1)."""
    return quantiles.gather(dim=2, index=actions.expand(-1, quantiles.shape[1], 1)).squeeze(dim=2)
