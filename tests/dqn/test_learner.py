"""What is learned from a minibatch: against hand-computed cases and against plain PyTorch."""

import itertools

import numpy as np
import pytest
import torch
from plain_dqn import DoublePrecisionLearner, PlainLearner, PlainQNetwork, needs_compiler
from small import ACTIONS, BATCH, INPUTS, LEARNER_CONFIG, RUNS, random_batch

from per_tutorial.dqn import learner as learner_module
from per_tutorial.dqn.learner import (
    DQNLearner,
    clip_by_run,
    loss_gradients,
    td_targets,
    weighted_losses,
)
from per_tutorial.replay.buffers import Batch


def assert_same_as_plain(
    config, plain_config=None, *, learner_class=DoublePrecisionLearner, updates=40, rtol=1e-9
):
    """Train a stack, and a plain learner for each of its runs, on the same minibatches."""
    numbers = np.random.default_rng(0)
    stack = learner_class(config, (INPUTS,), ACTIONS, seeds=[5, 6])
    twins = [
        PlainLearner(plain_config or config, PlainQNetwork(stack.online, run))
        for run in range(RUNS)
    ]
    tolerance = {"rtol": rtol, "atol": rtol}
    for step in range(updates):
        batch = random_batch(numbers)
        step_size = config.learning_rate / (1 + step)
        update = stack.update(batch, step_size)
        for run, twin in enumerate(twins):
            fields = (*batch[:5], batch.steps)
            transitions = list(zip(*(field[run] for field in fields), strict=True))
            td_errors, loss = twin.update(transitions, batch.weights[run], step_size)
            np.testing.assert_allclose(update.td_errors[run], td_errors, **tolerance)
            np.testing.assert_allclose(update.losses[run], loss, **tolerance)
    probes = numbers.normal(size=(RUNS, 20, INPUTS)).astype(np.float32)
    for name in ("online", "target"):
        q_values = getattr(stack, name)(stack._observations(probes)).detach()
        for run, twin in enumerate(twins):
            expected = getattr(twin, name)(probes[run]).detach()
            np.testing.assert_allclose(q_values[run], expected, **tolerance)


SWITCHES = {
    "double": (False, True),
    "dueling": (False, True),
    "loss": ("huber", "squared"),
    "td_error_clip": (None, 0.7),
    "max_grad_norm": (None, 0.5),
    "target": ({"tau": 1.0, "target_update_every": 7}, {"tau": 0.1, "target_update_every": 1}),
}


@pytest.mark.slow
@pytest.mark.parametrize("values", list(itertools.product(*SWITCHES.values())), ids=str)
def test_the_learner_is_the_plain_algorithm_under_every_combination_of_switches(values):
    changes = dict(zip(SWITCHES, values, strict=True))
    assert_same_as_plain(LEARNER_CONFIG.replace(**changes.pop("target"), **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"double": True},
        {"loss": "squared"},
        {"td_error_clip": 0.7},
        {"td_error_clip": 2.0},  # the Huber loss does not change, the priorities do
        {"max_grad_norm": 0.5},
        {"target_update_every": 8},
        {"tau": 0.9},
        {"discount": 0.8},
    ],
    ids=str,
)
def test_each_switch_matters_and_the_comparison_sees_it(changes):
    with pytest.raises(AssertionError):
        assert_same_as_plain(LEARNER_CONFIG, LEARNER_CONFIG.replace(**changes))


@pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
def test_the_discount_is_that_of_the_settings(discount):
    assert_same_as_plain(LEARNER_CONFIG.replace(discount=discount))


@pytest.mark.parametrize("hidden", [(), (5,), (4, 4, 4)])
def test_any_number_of_layers(hidden):
    assert_same_as_plain(LEARNER_CONFIG.replace(hidden=hidden))


def test_in_single_precision_as_it_is_used():
    assert_same_as_plain(LEARNER_CONFIG, learner_class=DQNLearner, updates=15, rtol=1e-3)


# Compiled updates


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    "changes",
    [{}, {"double": True, "dueling": True, "td_error_clip": 0.7, "max_grad_norm": 0.5}],
    ids=str,
)
def test_compiled_the_learner_is_the_plain_algorithm_as_well(changes):
    config = LEARNER_CONFIG.replace(**changes)
    assert_same_as_plain(config.replace(compiled=True), config)
    with pytest.raises(AssertionError):
        assert_same_as_plain(config.replace(compiled=True), config.replace(discount=0.8))


@pytest.mark.slow
@needs_compiler
def test_a_compiled_learner_goes_on_from_its_state_to_the_bit_and_others_from_it_too():
    numbers = np.random.default_rng(0)
    batches = [random_batch(numbers) for _ in range(12)]
    first, second, uncompiled = (
        DQNLearner(LEARNER_CONFIG.replace(compiled=compiled), (INPUTS,), ACTIONS, seeds=[1, 2])
        for compiled in (True, True, False)
    )
    for batch in batches[:6]:
        first.update(batch)
    for other in (second, uncompiled):
        other.restore({name: array.copy() for name, array in first.state.items()})
    for batch in batches[6:]:
        updates = [learner.update(batch) for learner in (first, second, uncompiled)]
        for ours, same, close in zip(*updates, strict=True):
            np.testing.assert_array_equal(ours, same)
            np.testing.assert_allclose(ours, close, rtol=1e-4, atol=1e-5)
    for name, array in first.state.items():
        np.testing.assert_allclose(array, uncompiled.state[name], rtol=1e-3, atol=1e-5)


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


def gradients_of(losses):
    """What autograd makes of losses in the place of `loss_gradients`, where δ = target − Q(s, a)."""

    def gradients(td_errors, weights, *_):
        td_errors = td_errors.detach().requires_grad_()
        with torch.enable_grad():
            losses(td_errors, weights).sum().backward()
        return -td_errors.grad

    return gradients


def test_the_clipped_td_errors_are_handed_out_for_the_priorities():
    numbers = np.random.default_rng(0)
    for _ in range(10):
        batch = random_batch(numbers)
        usual, clipped = (
            DQNLearner(
                LEARNER_CONFIG.replace(td_error_clip=clip), (INPUTS,), ACTIONS, [5, 6]
            ).update(batch)
            for clip in (None, 0.7)
        )
        assert (np.abs(usual.td_errors) > 0.7).any() and (np.abs(usual.td_errors) < 0.7).any()
        np.testing.assert_array_equal(clipped.td_errors, np.clip(usual.td_errors, -0.7, 0.7))


def test_a_batch_without_steps_is_of_single_steps():
    batch = random_batch(np.random.default_rng(0))
    ones = np.ones((RUNS, BATCH), dtype=np.int64)
    without = Batch(*batch[:7])
    one, other, another = (
        DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, [5, 6]).update(each).td_errors
        for each in (without, batch._replace(steps=ones), batch)
    )
    np.testing.assert_array_equal(one, other)
    assert (one != another).any()


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


def test_each_error_keeps_its_own_weight():
    assert_each_error_keeps_its_own_weight(weighted_losses)


@pytest.mark.parametrize("bugged", [broadcast_to_a_square, weigh_the_mean])
def test_weights_that_cancel_out_are_noticed(bugged, monkeypatch):
    with pytest.raises(AssertionError):
        assert_each_error_keeps_its_own_weight(bugged)
    monkeypatch.setattr(learner_module, "loss_gradients", gradients_of(weighted_losses))
    assert_same_as_plain(LEARNER_CONFIG)
    monkeypatch.setattr(learner_module, "loss_gradients", gradients_of(bugged))
    with pytest.raises(AssertionError):
        assert_same_as_plain(LEARNER_CONFIG)


@pytest.mark.parametrize("shape", [(1, 3, 1), (3, 1), (3,), (1, 1)])
def test_weights_of_another_shape_are_refused_rather_than_broadcast(shape):
    with pytest.raises(AssertionError, match=r"torch.Size\(\[1, 3\]\)"):
        weighted_losses(torch.zeros(1, 3), torch.ones(shape))
    with pytest.raises(AssertionError, match=r"torch.Size\(\[1, 3\]\)"):
        loss_gradients(torch.zeros(1, 3), torch.ones(shape))


# Runs that train side by side


@pytest.mark.parametrize("max_grad_norm", [None, 0.5])
def test_the_data_of_one_run_does_not_move_a_bit_of_another(max_grad_norm):
    config = LEARNER_CONFIG.replace(max_grad_norm=max_grad_norm)

    def trained(scale):
        stack = DQNLearner(config, (INPUTS,), ACTIONS, seeds=[1, 2, 3])
        numbers = np.random.default_rng(0)
        for _ in range(20):
            batch = random_batch(numbers, runs=3)
            batch.rewards[0] *= scale
            stack.update(batch)
        return [parameter.detach() for parameter in stack.online.parameters()]

    for usual, changed in zip(trained(scale=1), trained(scale=1000), strict=True):
        assert not torch.equal(usual[0], changed[0])
        assert torch.equal(usual[1:], changed[1:])


def test_only_the_run_whose_gradient_is_too_long_is_clipped():
    stack = DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, seeds=[1, 2])
    parameters = list(stack.online.parameters())
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
        parameter.grad[1] *= 0.001
    before = [parameter.grad[1].clone() for parameter in parameters]
    clip_by_run([parameter.grad for parameter in parameters], 0.5)
    norm = torch.cat([parameter.grad[0].flatten() for parameter in parameters]).norm()
    assert norm == pytest.approx(0.5, rel=1e-5)
    assert all(torch.equal(p.grad[1], old) for p, old in zip(parameters, before, strict=True))


def test_target_and_online_network_start_equal_and_only_the_online_one_is_trained():
    stack = DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, seeds=[1, 2])
    start = [parameter.detach().clone() for parameter in stack.online.parameters()]

    def equals_start(network):
        return [
            torch.equal(parameter, old)
            for parameter, old in zip(network.parameters(), start, strict=True)
        ]

    assert all(equals_start(stack.target))
    numbers = np.random.default_rng(0)
    for _ in range(LEARNER_CONFIG.target_update_every - 1):
        stack.update(random_batch(numbers))
    assert all(equals_start(stack.target)) and not any(equals_start(stack.online))
    stack.update(random_batch(numbers))
    for target, online in zip(stack.target.parameters(), stack.online.parameters(), strict=True):
        assert torch.equal(target, online)  # τ = 1 copies


def test_the_policy_of_a_run_takes_the_action_of_the_largest_q():
    stack = DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, seeds=[1, 2])
    observations = np.random.default_rng(0).normal(size=(20, INPUTS)).astype(np.float32)
    q_values = stack.q_values(np.stack([observations, observations]))
    assert q_values.shape == (2, 20, ACTIONS)
    for run in range(2):
        policy = stack.policy(run)
        actions = [policy(observation) for observation in observations]
        assert actions == q_values[run].argmax(axis=1).tolist()
    assert (q_values[0].argmax(axis=1) != q_values[1].argmax(axis=1)).any()


def test_observations_of_any_shape_are_flattened():
    stack = DQNLearner(LEARNER_CONFIG, (2, 3), ACTIONS, seeds=[0])
    images = np.random.default_rng(0).integers(255, size=(1, 5, 2, 3), dtype=np.uint8)
    flat = torch.from_numpy(images.reshape(1, 5, 6)).float()
    np.testing.assert_array_equal(stack.q_values(images), stack.online(flat).detach())


def test_an_unknown_device_is_named():
    with pytest.raises(ValueError, match="device: 'abacus' cannot be used"):
        DQNLearner(LEARNER_CONFIG.replace(device="abacus"), (INPUTS,), ACTIONS, seeds=[0])
