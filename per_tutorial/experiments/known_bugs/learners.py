"""Bugs of the agent (losses, priorities, schedules), which no examination of a buffer can find."""

import math

import numpy as np
import torch
from torch import Tensor

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.learner import DQNLearner, Update
from per_tutorial.dqn.losses import Tensors, losses_and_slopes
from per_tutorial.experiments.known_bugs.bug import Bug
from per_tutorial.replay.contracts import Batch

WEIGHTED = "return (weights * losses).mean(dim=1)"
IN_THE_LOSS = "Compare the gradient of a minibatch of two with w · δ, worked out by hand."


class WrongLosses(DQNLearner):
    """A learner whose subclasses combine losses and weights in their own way, with autograd."""

    @torch.enable_grad()
    def errors_and_losses(
        self, q_values: Tensor, tensors: Tensors
    ) -> tuple[Tensor, Tensor, Tensor]:
        q_values = q_values.detach().requires_grad_()
        td_errors = self._targets(tensors).detach() - q_values
        config = self.config
        each, _ = losses_and_slopes(td_errors, config.loss, config.td_error_clip, config.kappa)
        losses = self._weighted(each, tensors.weights)
        (gradients,) = torch.autograd.grad(losses.sum(), q_values)
        return td_errors.detach(), losses.detach(), gradients

    def _weighted(self, losses: Tensor, weights: Tensor) -> Tensor:
        """The loss of each run, (runs,), from L(δ) and w (runs, batch)."""
        raise NotImplementedError


class LossBroadcast(WrongLosses):
    """Weights (B, 1) times losses (B,): a table (B, B), whose mean is the product of two means."""

    def _weighted(self, losses: Tensor, weights: Tensor) -> Tensor:
        return (weights.unsqueeze(-1) * losses.unsqueeze(-2)).mean(dim=(1, 2))


class WeightsAfterMean(WrongLosses):
    """The losses are averaged before the weights multiply them."""

    def _weighted(self, losses: Tensor, weights: Tensor) -> Tensor:
        return (weights * losses.mean(dim=1, keepdim=True)).mean(dim=1)


class WeightedSquaredPriority(DQNLearner):
    """w · δ² is written back in place of δ."""

    def update(self, batch: Batch, step_size: float | None = None) -> Update:
        update = super().update(batch, step_size)
        weighted = np.asarray(batch.weights) * update.td_errors.astype(np.float64) ** 2
        return update._replace(td_errors=weighted)


class CompoundingBeta(DQNConfig):
    """The schedule that ``beta += step / steps * (end - beta)`` at every step makes.

    It takes a fraction of the remaining gap, not of the whole one. The gap is multiplied by
    (1 − 1/steps)(1 − 2/steps)… and almost vanishes after a few times √steps.
    """

    def beta(self, step: int) -> float:
        steps = self.beta_steps or self.steps
        if step >= steps:
            return self.beta_end
        # The product over k = 1 … step of (steps − k) / steps, by its logarithm.
        log_gap = math.lgamma(steps) - math.lgamma(steps - step) - step * math.log(steps)
        return self.beta_end + (self.beta_start - self.beta_end) * math.exp(log_gap)


KNOWN_BUGS = (
    Bug(
        name="loss-broadcast",
        mistake="Shapes (B, 1) and (B,) make a table, whose mean is mean(w) · mean(L): nothing is "
        "corrected.",
        wrong="return (weights.unsqueeze(-1) * losses.unsqueeze(-2)).mean(dim=(1, 2))",
        right=WEIGHTED,
        seen=(
            "Curt-Park/rainbow-is-all-you-need#79",
            "Howuhh/prioritized_experience_replay (prioritized DQN)",
        ),
        lived="reported in 2025 in the first; still in the second",
        found_by=IN_THE_LOSS,
        learner=LossBroadcast,
    ),
    Bug(
        name="weights-after-mean",
        mistake="The weights multiply a loss that is averaged already: the same collapse.",
        wrong="return (weights * losses.mean(dim=1, keepdim=True)).mean(dim=1)",
        right=WEIGHTED,
        found_by=IN_THE_LOSS,
        learner=WeightsAfterMean,
    ),
    Bug(
        name="weighted-squared-priority",
        mistake="What is written back as the TD error is the weighted squared loss.",
        wrong="weighted = np.asarray(batch.weights) * update.td_errors.astype(np.float64) ** 2",
        right="replay.update_priorities(batch.indices, update.td_errors)",
        seen=("higgsfield/RL-Adventure#13", "Shmuma/ptan#36", "Kaixhin/Rainbow#24"),
        lived="reported in 2018 and 2020, the first two never closed; in the third it is meant so",
        found_by="Ask a buffer for the priority of a transition whose δ is −2: p must be 2 + ε.",
        learner=WeightedSquaredPriority,
    ),
    Bug(
        name="compounding-beta",
        mistake="Each step adds the share of the way to a β that has already gone part of it: β is "
        "almost 1 after about 3·√steps steps: 3 % of 10,000.",
        wrong="log_gap = math.lgamma(steps) - math.lgamma(steps - step) - step * math.log(steps)",
        right="return end if step >= steps else start + (end - start) * step / steps",
        seen=("Curt-Park/rainbow-is-all-you-need#73",),
        lived="reported in 2024",
        found_by="Print β after half of the steps: it must be halfway between its ends.",
        config=CompoundingBeta,
    ),
)
