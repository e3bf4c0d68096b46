"""Stable-Baselines3's SAC and TD3 with prioritised replay.

They have one or more critics (`n_critics`, 2 by default), each with its own TD error. A
transition's priority is the mean of their |δ| (`critic_errors`), and every critic's loss is
multiplied by the same weights. The losses of the actor and the entropy coefficient have no weights:
they are not TD errors, and the paper does not mention them. tianshou and others do the same.
"""

from collections.abc import Sequence

import numpy as np
import torch as th
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.utils import polyak_update
from torch.nn import functional as F

from per_tutorial.integrations.sb3.algorithms import (
    PrioritizedAlgorithm,
    n_step_targets,
    weighted_mean,
)


def critic_errors(
    values: Sequence[th.Tensor], targets: th.Tensor, weights: th.Tensor
) -> tuple[th.Tensor, th.Tensor]:
    """The sum of the critics' weighted mean squared errors, and the mean |δ|, (batch, 1)."""
    losses = [weighted_mean(F.mse_loss(one, targets, reduction="none"), weights) for one in values]
    errors = [(targets - one.detach()).abs() for one in values]
    return th.stack(losses).sum(), th.stack(errors).mean(dim=0)


class PrioritizedSAC(PrioritizedAlgorithm, SAC):
    """SB3's `SAC` with prioritised replay: its arguments, and `alpha` and `beta` as in
    `PrioritizedDQN`.
    """

    # As long as SB3's method, so that the two can be compared line by line.
    def train(self, gradient_steps: int, batch_size: int = 64) -> None:  # noqa: PLR0915
        """SB3's `SAC.train` with weights and priorities for the critics."""
        self.policy.set_training_mode(True)
        optimizers = [self.actor.optimizer, self.critic.optimizer]
        if self.ent_coef_optimizer is not None:
            optimizers.append(self.ent_coef_optimizer)
        self._update_learning_rate(optimizers)
        buffer = self._begin_training()

        coefficients, coefficient_losses, actor_losses, critic_losses = [], [], [], []
        for gradient_step in range(gradient_steps):
            batch = buffer.sample(batch_size, env=self._vec_normalize_env)
            if self.use_sde:
                self.actor.reset_noise()
            actions, log_probability = self.actor.action_log_prob(batch.observations)
            log_probability = log_probability.reshape(-1, 1)

            if self.ent_coef_optimizer is not None and self.log_ent_coef is not None:
                coefficient = th.exp(self.log_ent_coef.detach())
                missing_entropy = (log_probability + float(self.target_entropy)).detach()
                coefficient_loss = -(self.log_ent_coef * missing_entropy).mean()
                coefficient_losses.append(coefficient_loss.item())
                self.ent_coef_optimizer.zero_grad()
                coefficient_loss.backward()
                self.ent_coef_optimizer.step()
            else:
                coefficient = self.ent_coef_tensor
            coefficients.append(coefficient.item())

            with th.no_grad():
                next_actions, next_log = self.actor.action_log_prob(batch.next_observations)
                next_values = th.cat(
                    self.critic_target(batch.next_observations, next_actions), dim=1
                )
                next_values = next_values.min(dim=1, keepdim=True)[0]
                next_values = next_values - coefficient * next_log.reshape(-1, 1)
                targets = n_step_targets(batch, next_values)

            values = self.critic(batch.observations, batch.actions)
            critic_loss, errors = critic_errors(values, targets, batch.weights)
            critic_loss = 0.5 * critic_loss
            buffer.update_priorities(batch.indices, errors)
            critic_losses.append(critic_loss.item())
            self.critic.optimizer.zero_grad()
            critic_loss.backward()
            self.critic.optimizer.step()

            values_of_actor = th.cat(self.critic(batch.observations, actions), dim=1)
            least = values_of_actor.min(dim=1, keepdim=True)[0]
            actor_loss = (coefficient * log_probability - least).mean()
            actor_losses.append(actor_loss.item())
            self.actor.optimizer.zero_grad()
            actor_loss.backward()
            self.actor.optimizer.step()

            if gradient_step % self.target_update_interval == 0:
                polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
                polyak_update(self.batch_norm_stats, self.batch_norm_stats_target, 1.0)
        self._n_updates += gradient_steps

        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/ent_coef", np.mean(coefficients))
        self.logger.record("train/actor_loss", np.mean(actor_losses))
        self.logger.record("train/critic_loss", np.mean(critic_losses))
        if coefficient_losses:
            self.logger.record("train/ent_coef_loss", np.mean(coefficient_losses))


class PrioritizedTD3(PrioritizedAlgorithm, TD3):
    """SB3's `TD3` with prioritised replay: its arguments, and `alpha` and `beta` as in
    `PrioritizedDQN`.
    """

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """SB3's `TD3.train` with weights and priorities for the critics."""
        self.policy.set_training_mode(True)
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer])
        buffer = self._begin_training()

        actor_losses, critic_losses = [], []
        for _ in range(gradient_steps):
            self._n_updates += 1
            batch = buffer.sample(batch_size, env=self._vec_normalize_env)
            with th.no_grad():
                noise = th.randn_like(batch.actions) * self.target_policy_noise
                noise = noise.clamp(-self.target_noise_clip, self.target_noise_clip)
                next_actions = (self.actor_target(batch.next_observations) + noise).clamp(-1, 1)
                next_values = th.cat(
                    self.critic_target(batch.next_observations, next_actions), dim=1
                )
                next_values = next_values.min(dim=1, keepdim=True)[0]
                targets = n_step_targets(batch, next_values)

            values = self.critic(batch.observations, batch.actions)
            critic_loss, errors = critic_errors(values, targets, batch.weights)
            buffer.update_priorities(batch.indices, errors)
            critic_losses.append(critic_loss.item())
            self.critic.optimizer.zero_grad()
            critic_loss.backward()
            self.critic.optimizer.step()

            if self._n_updates % self.policy_delay == 0:
                actions = self.actor(batch.observations)
                actor_loss = -self.critic.q1_forward(batch.observations, actions).mean()
                actor_losses.append(actor_loss.item())
                self.actor.optimizer.zero_grad()
                actor_loss.backward()
                self.actor.optimizer.step()

                polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
                polyak_update(self.actor.parameters(), self.actor_target.parameters(), self.tau)
                polyak_update(
                    self.critic_batch_norm_stats, self.critic_batch_norm_stats_target, 1.0
                )
                polyak_update(self.actor_batch_norm_stats, self.actor_batch_norm_stats_target, 1.0)

        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if actor_losses:
            self.logger.record("train/actor_loss", np.mean(actor_losses))
        self.logger.record("train/critic_loss", np.mean(critic_losses))
