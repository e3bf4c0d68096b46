"""Targets, losses and their gradients of a minibatch, as pure functions.

Shapes: (runs, batch) unless a comment says otherwise.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Tensors(NamedTuple):
    """A minibatch on the learner's device; all but the observations are (runs, batch)."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    next_observations: Tensor
    terminated: Tensor
    weights: Tensor
    discounts: Tensor  # γ^k


def td_targets(
    rewards: Tensor,
    terminated: Tensor,
    next_q: Tensor,
    discount: float | Tensor,
    next_q_online: Tensor | None = None,
) -> Tensor:
    """r + γ · max_a Q(s', a), and r alone where the episode terminated.

    Over k steps, r is the discounted sum of their rewards, s' the state after the last one, and γ^k
    replaces γ.

    Args:
        rewards, terminated: (runs, batch).
        next_q: (runs, batch, actions), the target network's values of the next observations.
        discount: γ, or γ^k of each transition (runs, batch).
        next_q_online: the online network's values of them; if given, the online network chooses
            the action, and the target network evaluates it (double Q-learning).
    """
    if next_q_online is None:
        next_values = next_q.amax(dim=-1)
    else:
        next_values = select_actions(next_q, next_q_online.argmax(dim=-1))
    assert next_values.shape == rewards.shape == terminated.shape
    return rewards + discount * next_values.masked_fill(terminated, 0.0)


def select_actions(q_values: Tensor, actions: Tensor) -> Tensor:
    """Q(s, a) of one action in each state: (..., actions), (...) → (...)."""
    return q_values.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def losses_and_gradients(
    td_errors: Tensor,
    weights: Tensor,
    loss: str = "huber",
    clip: float | None = None,
    kappa: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """The loss of each run, (runs,), the mean over the batch of w_i · L(δ_i), and its gradients.

    These are with respect to Q(s, a), where δ = target − Q(s, a): (runs, batch). Line 13 of
    Algorithm 1 has the opposite sign: it adds w_j · δ_j · ∇Q to the step, and an optimiser
    subtracts a gradient.

    L is ½δ² ("squared"), or the Huber loss ("huber"): ½δ² up to |δ| = κ and linear beyond. With
    ``clip`` = c, δ is clipped to [−c, c] in the gradient (section 4 of Schaul et al.: c = 1). The
    loss is then linear beyond |δ| = c.

    The weights must multiply each error before the mean. Shapes (batch,) and (batch, 1) would
    silently broadcast to (batch, batch) and cancel the correction, hence the assertion.
    """
    assert td_errors.shape == weights.shape, (td_errors.shape, weights.shape)
    slopes = clipped(td_errors.detach(), clip)  # ∂L/∂δ
    if loss == "huber":
        slopes = slopes.clamp(-kappa, kappa)
    # ½δ², or limit · (|δ| − ½ limit) beyond the limit
    losses = slopes * torch.sub(td_errors, slopes, alpha=0.5)
    return (weights * losses).mean(dim=1), weights * slopes / -td_errors.shape[1]


def clipped(td_errors: Tensor, clip: float | None) -> Tensor:
    """δ in [−clip, clip]; None: unchanged."""
    return td_errors if clip is None else td_errors.clamp(-clip, clip)


def clip_by_run(gradients: Sequence[Tensor], largest: float) -> None:
    """Scale the gradient of each run down to at most the norm ``largest``, in place."""
    squares = [gradient.square().flatten(1).sum(dim=1) for gradient in gradients]
    norms = sum(squares[1:], start=squares[0]).sqrt()
    scales = (largest / (norms + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(scales.view(-1, *[1] * (gradient.dim() - 1)))
