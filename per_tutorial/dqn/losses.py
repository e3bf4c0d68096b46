"""Targets and losses of a minibatch, as pure functions.

Shapes: (runs, batch) unless a comment says otherwise.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

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


def check_losses(method: str, losses: Any, td_errors: Tensor) -> None:
    """Raise ValueError unless a ``method`` returned one loss for each TD error, with a gradient."""
    found = type(losses).__name__
    if isinstance(losses, Tensor):
        if losses.shape == td_errors.shape and losses.requires_grad:
            return
        found = f"{tuple(losses.shape)} with{'' if losses.requires_grad else 'out'} one"
    raise ValueError(
        f"{method}: must return a tensor {tuple(td_errors.shape)}, a loss for each TD error, with "
        f"a gradient, got {found}"
    )


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
