"""Targets, losses and gradients: by hand, and against PyTorch's own."""

import numpy as np
import pytest
import torch
from plain_twins import assert_same_as_plain, gradients_of
from small import LEARNER_CONFIG

from per_tutorial.dqn import learner as learner_module
from per_tutorial.dqn.losses import clip_by_run, losses_and_gradients, td_targets, weighted_losses


def loss_gradients(*arguments):
    return losses_and_gradients(*arguments)[1]


# Targets and losses by hand


def tensor(*values):
    return torch.tensor([values])  # one run


NEXT_Q = torch.tensor([[[1.0, 5.0, 3.0], [2.0, 4.0, 8.0]]])  # (1 run, 2 transitions, 3 actions)


def test_the_target_is_the_reward_plus_the_discounted_best_next_value():
    targets = td_targets(tensor(1.0, -1.0), tensor(False, False), NEXT_Q, 0.5)
    assert targets.tolist() == [[1 + 0.5 * 5, -1 + 0.5 * 8]]


def test_after_several_steps_the_next_value_is_discounted_as_often():
    targets = td_targets(tensor(1.0, -1.0), tensor(False, False), NEXT_Q, tensor(0.5, 0.125))
    assert targets.tolist() == [[1 + 0.5 * 5, -1 + 0.125 * 8]]


def test_nothing_follows_a_terminated_transition():
    targets = td_targets(tensor(1.0, -1.0), tensor(False, True), NEXT_Q, 0.5)
    assert targets.tolist() == [[3.5, -1.0]]


def test_double_q_learning_rates_the_action_that_the_online_network_chooses():
    online = torch.tensor([[[9.0, 0.0, 0.0], [0.0, 9.0, 0.0]]])
    targets = td_targets(tensor(1.0, -1.0), tensor(False, False), NEXT_Q, 0.5, online)
    assert targets.tolist() == [[1 + 0.5 * 1, -1 + 0.5 * 4]]


def test_a_terminated_transition_hides_even_an_infinite_value():
    targets = td_targets(tensor(2.0), tensor(True), torch.full((1, 1, 3), torch.inf), 0.9)
    assert targets.tolist() == [[2.0]]


@pytest.mark.parametrize("rewards, terminated", [((1, 2, 1), (1, 2)), ((1, 2), (1, 2, 1))])
def test_targets_of_another_shape_are_refused(rewards, terminated):
    with pytest.raises(AssertionError):
        td_targets(torch.zeros(rewards), torch.zeros(terminated, dtype=torch.bool), NEXT_Q, 0.9)


def test_the_loss_of_a_run_is_the_mean_of_its_weighted_losses():
    """Huber: ½δ² up to |δ| = 1, |δ| − ½ beyond; each times its weight, then the mean."""
    td_errors = torch.tensor([[0.5, -3.0], [1.0, 0.0]])
    weights = torch.tensor([[1.0, 0.5], [0.25, 1.0]])
    huber = weighted_losses(td_errors, weights)
    assert huber.tolist() == [(1 * 0.125 + 0.5 * 2.5) / 2, (0.25 * 0.5 + 0) / 2]
    squared = weighted_losses(td_errors, weights, "squared")
    assert squared.tolist() == [(1 * 0.125 + 0.5 * 4.5) / 2, (0.25 * 0.5 + 0) / 2]


def test_the_huber_loss_and_its_gradient_are_pytorchs():
    mine = torch.linspace(-3, 3, 61)[None].requires_grad_()
    theirs = mine.detach().clone().requires_grad_()
    loss = weighted_losses(mine, torch.ones_like(mine)).sum()
    reference = torch.nn.functional.smooth_l1_loss(theirs, torch.zeros_like(theirs))
    loss.backward()
    reference.backward()
    torch.testing.assert_close(loss, reference)
    torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("clip", [0.3, 1.0, 1.7])
@pytest.mark.parametrize(("loss", "steepest"), [("huber", 1.0), ("squared", np.inf)])
def test_a_clipped_td_error_is_what_scales_the_gradient(loss, steepest, clip):
    """∂loss/∂δ = w · clip(δ) / batch, and the loss is continuous: the sum of its small slopes."""
    td_errors = torch.linspace(0, 3, 3001, dtype=torch.float64)[None].requires_grad_()
    weights = torch.linspace(0.1, 1, 3001, dtype=torch.float64)[None]
    weighted_losses(td_errors, weights, loss, clip).sum().backward()
    slopes = np.clip(td_errors.detach().numpy(), 0, min(clip, steepest))
    np.testing.assert_allclose(td_errors.grad, weights.numpy() * slopes / 3001, rtol=1e-12)

    values = [
        weighted_losses(torch.tensor([[sign * error]]), torch.ones(1, 1), loss, clip).item()
        for error in (0.0, 0.2, 3.0)
        for sign in (1, -1)
    ]
    integral = 0.001 * (slopes[0].cumsum() - slopes[0] / 2)
    assert values[:4] == pytest.approx([0, 0, 0.02, 0.02])
    assert values[4:] == pytest.approx([integral[-1]] * 2, rel=1e-4)


@pytest.mark.parametrize("clip", [None, 0.3, 1.7])
@pytest.mark.parametrize("loss", ["huber", "squared"])
def test_the_gradients_are_those_of_the_losses(loss, clip):
    td_errors, weights = (
        torch.linspace(-3, 3, 62).view(2, 31),
        torch.linspace(0.1, 1, 62).view(2, 31),
    )
    gradients = loss_gradients(td_errors, weights, loss, clip)
    derived = gradients_of(lambda td, w: weighted_losses(td, w, loss, clip))(td_errors, weights)
    torch.testing.assert_close(gradients, derived)


ERRORS = torch.tensor(
    [[0.0, 0.05, -0.2, 0.3, -1.0, 4.0], [2.0, -2.0, 9.0, 0.01, 0.3, -0.5]]
).double()


@pytest.mark.parametrize("kappa", [0.01, 0.3, 2.5])
def test_the_huber_loss_with_another_bend_is_pytorchs(kappa):
    mine, theirs = (ERRORS.clone().requires_grad_() for _ in range(2))
    weighted_losses(mine, torch.ones_like(mine), "huber", None, kappa).sum().backward()
    reference = torch.nn.functional.huber_loss(
        theirs, torch.zeros_like(theirs), reduction="none", delta=kappa
    )
    reference.mean(dim=1).sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad)
    found = weighted_losses(ERRORS, torch.ones_like(ERRORS), "huber", None, kappa)
    torch.testing.assert_close(found, reference.mean(dim=1).detach())


# Weights that are there, but cancel out


def assert_each_error_keeps_its_own_weight(losses):
    """∂loss/∂δ_i = w_i · L'(δ_i) / batch: the weight of a transition scales its own gradient."""
    weights = torch.tensor([[1.0, 0.5, 0.1]])
    td_errors = torch.tensor([[0.5, -0.5, 2.0]], requires_grad=True)
    losses(td_errors, weights).sum().backward()
    slopes = torch.tensor([[0.5, -0.5, 1.0]])  # of the Huber loss
    torch.testing.assert_close(td_errors.grad, weights * slopes / 3)


def _huber(td_errors):
    return torch.nn.functional.smooth_l1_loss(
        td_errors, torch.zeros_like(td_errors), reduction="none"
    )


def broadcast_to_a_square(td_errors, weights):
    """(batch, 1) times (1, batch) is (batch, batch), whose mean is mean(w) · mean(L)."""
    return (weights[:, :, None] * _huber(td_errors)[:, None, :]).mean(dim=(1, 2))


def weigh_the_mean(td_errors, weights):
    """The loss is averaged first, so that all get the mean weight."""
    return (weights * _huber(td_errors).mean(dim=1, keepdim=True)).mean(dim=1)


def with_gradients_of(losses):
    """The right losses, with what autograd makes of others."""

    def losses_and_gradients(*arguments):
        return weighted_losses(*arguments), gradients_of(losses)(*arguments)

    return losses_and_gradients


def test_each_error_keeps_its_own_weight():
    assert_each_error_keeps_its_own_weight(weighted_losses)


@pytest.mark.parametrize("bugged", [broadcast_to_a_square, weigh_the_mean])
def test_weights_that_cancel_out_are_noticed(bugged, monkeypatch):
    with pytest.raises(AssertionError):
        assert_each_error_keeps_its_own_weight(bugged)
    monkeypatch.setattr(learner_module, "losses_and_gradients", with_gradients_of(weighted_losses))
    assert_same_as_plain(LEARNER_CONFIG)
    monkeypatch.setattr(learner_module, "losses_and_gradients", with_gradients_of(bugged))
    with pytest.raises(AssertionError):
        assert_same_as_plain(LEARNER_CONFIG)


@pytest.mark.parametrize("shape", [(1, 3, 1), (3, 1), (3,), (1, 1)])
def test_weights_of_another_shape_are_refused_rather_than_broadcast(shape):
    with pytest.raises(AssertionError, match=r"torch.Size\(\[1, 3\]\)"):
        weighted_losses(torch.zeros(1, 3), torch.ones(shape))
    with pytest.raises(AssertionError, match=r"torch.Size\(\[1, 3\]\)"):
        loss_gradients(torch.zeros(1, 3), torch.ones(shape))


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
