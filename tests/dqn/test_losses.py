"""Targets, losses and gradients by hand."""

import pytest
import torch
from small import ACTIONS, INPUTS, LEARNER_CONFIG

from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.losses import clip_by_run, td_targets


def tensor(*values):
    return torch.tensor([values])  # one run


NEXT_Q = torch.tensor([[[1.0, 5.0, 3.0], [2.0, 4.0, 8.0]]])  # (1 run, 2 transitions, 3 actions)


def test_targets_by_hand():
    """r + γ^k · max Q(s'), and r alone where the episode terminated, even beside infinity."""
    rewards, alive = tensor(1.0, -1.0), tensor(False, False)
    assert td_targets(rewards, alive, NEXT_Q, 0.5).tolist() == [[1 + 0.5 * 5, -1 + 0.5 * 8]]
    several = td_targets(rewards, alive, NEXT_Q, tensor(0.5, 0.125))
    assert several.tolist() == [[1 + 0.5 * 5, -1 + 0.125 * 8]]
    over = td_targets(rewards, tensor(False, True), NEXT_Q * tensor(1, torch.inf)[..., None], 0.5)
    assert over.tolist() == [[3.5, -1.0]]
    chosen_by = torch.tensor([[[9.0, 0.0, 0.0], [0.0, 9.0, 0.0]]])
    double = td_targets(rewards, alive, NEXT_Q, 0.5, chosen_by)
    assert double.tolist() == [[1 + 0.5 * 1, -1 + 0.5 * 4]]


@pytest.mark.parametrize("rewards, terminated", [((1, 2, 1), (1, 2)), ((1, 2), (1, 2, 1))])
def test_targets_of_another_shape_are_refused(rewards, terminated):
    with pytest.raises(AssertionError):
        td_targets(torch.zeros(rewards), torch.zeros(terminated, dtype=torch.bool), NEXT_Q, 0.9)


@pytest.mark.parametrize("clip", [None, 0.3, 1.7])
@pytest.mark.parametrize("loss, kappa", [("huber", 1.0), ("huber", 0.4), ("squared", 1.0)])
def test_each_loss_and_its_gradient_have_their_own_weight(loss, kappa, clip):
    """½δ² up to the bend and straight beyond, also if δ is clipped; the sign is that of Q(s, a)."""
    config = LEARNER_CONFIG.replace(loss=loss, kappa=kappa, td_error_clip=clip)
    q_values = torch.linspace(-3, 3, 62).view(2, 31).requires_grad_()
    weights = torch.linspace(0.1, 1, 62).view(2, 31)
    losses = DQNLearner(config, (INPUTS,), ACTIONS, [5, 6]).losses(0.5 - q_values, weights)
    td_errors = 0.5 - q_values.detach()
    bend = min(kappa if loss == "huber" else 9.0, clip or 9.0)
    slopes = td_errors.clamp(-bend, bend)
    torch.testing.assert_close(losses.detach(), weights * slopes * (td_errors - slopes / 2))
    (gradient,) = torch.autograd.grad(losses.sum(), q_values)
    torch.testing.assert_close(gradient, -weights * slopes)


# Gradients of runs side by side


def test_only_the_run_whose_gradient_is_too_long_is_clipped():
    gradients = [torch.ones(2, 3, 8), torch.ones(2, 1, 8), torch.ones(2, 8, 4)]
    for gradient in gradients:
        gradient[1] *= 0.001
    before = [gradient[1].clone() for gradient in gradients]
    clip_by_run(gradients, 0.5)
    norm = torch.cat([gradient[0].flatten() for gradient in gradients]).norm()
    assert norm == pytest.approx(0.5, rel=1e-5)
    assert all(torch.equal(one[1], old) for one, old in zip(gradients, before, strict=True))
