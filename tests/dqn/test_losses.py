"""Targets, losses and gradients: by hand, and against PyTorch's own."""

import pytest
import torch
from torch.nn.functional import huber_loss

from per_tutorial.dqn.losses import clip_by_run, losses_and_gradients, td_targets


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


def test_the_loss_of_a_run_is_the_mean_of_its_weighted_losses():
    """Huber: ½δ² up to |δ| = 1, |δ| − ½ beyond; each times its weight, then the mean."""
    td_errors = torch.tensor([[0.5, -3.0], [1.0, 0.0]])
    weights = torch.tensor([[1.0, 0.5], [0.25, 1.0]])
    huber, _ = losses_and_gradients(td_errors, weights)
    assert huber.tolist() == [(1 * 0.125 + 0.5 * 2.5) / 2, (0.25 * 0.5 + 0) / 2]
    squared, _ = losses_and_gradients(td_errors, weights, "squared")
    assert squared.tolist() == [(1 * 0.125 + 0.5 * 4.5) / 2, (0.25 * 0.5 + 0) / 2]


@pytest.mark.parametrize("clip", [None, 0.3, 1.7])
@pytest.mark.parametrize("loss, kappa", [("huber", 1.0), ("huber", 0.4), ("squared", 1.0)])
def test_each_gradient_is_that_of_pytorchs_loss_times_its_own_weight(loss, kappa, clip):
    """A clipped δ is a straight line from there on; the sign is that of Q(s, a)."""
    td_errors = torch.linspace(-3, 3, 62).view(2, 31)
    weights = torch.linspace(0.1, 1, 62).view(2, 31)
    losses, gradients = losses_and_gradients(td_errors, weights, loss, clip, kappa)
    theirs = td_errors.clone().requires_grad_()
    bend = min(kappa if loss == "huber" else 9.0, clip or 9.0)
    each = huber_loss(theirs, torch.zeros_like(theirs), reduction="none", delta=bend)
    expected = (weights * each).mean(dim=1)
    expected.sum().backward()
    torch.testing.assert_close(losses, expected.detach())
    torch.testing.assert_close(gradients, -theirs.grad)


@pytest.mark.parametrize("shape", [(1, 3, 1), (3, 1), (3,), (1, 1)])
def test_weights_of_another_shape_are_refused_rather_than_broadcast(shape):
    with pytest.raises(AssertionError, match=r"torch.Size\(\[1, 3\]\)"):
        losses_and_gradients(torch.zeros(1, 3), torch.ones(shape))


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
