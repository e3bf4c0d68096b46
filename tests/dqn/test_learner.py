"""The learner: against a plain twin, and what it hands out."""

import copy
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from plain_twins import assert_same_as_plain
from small import ACTIONS, BATCH, INPUTS, LEARNER_CONFIG, RUNS, random_batch

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.learner import DQNLearner, check_device
from per_tutorial.dqn.losses import clip_by_run, select_actions
from per_tutorial.dqn.optimizers import descend, make_optimizer
from per_tutorial.replay import Batch

SWITCHES = {
    "double": (False, True),
    "dueling": (False, True),
    "loss": ("huber", "squared"),
    "td_error_clip": (None, 0.7),
    "max_grad_norm": (None, 0.5),
    "target": ({"tau": 1.0, "target_update_every": 7}, {"tau": 0.1, "target_update_every": 1}),
}


# By default every second combination, such that any five switches meet in all ways.
COMBINATIONS = [
    pytest.param(places, marks=[] if sum(places) % 2 == 0 else pytest.mark.exhaustive)
    for places in itertools.product(*(range(len(ways)) for ways in SWITCHES.values()))
]


@pytest.mark.slow
@pytest.mark.parametrize("places", COMBINATIONS, ids=str)
def test_the_learner_is_the_plain_algorithm_under_every_combination_of_switches(places):
    changes = {name: ways[k] for (name, ways), k in zip(SWITCHES.items(), places, strict=True)}
    assert_same_as_plain(LEARNER_CONFIG.replace(**changes.pop("target"), **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"double": True},
        {"loss": "squared"},
        {"kappa": 0.4},
        {"td_error_clip": 0.7},
        {"td_error_clip": 2.0},  # the Huber loss does not change, the priorities do
        {"max_grad_norm": 0.5},
        {"target_update_every": 8},
        {"tau": 0.9},
        {"discount": 0.8},
        {"optimizer": "rmsprop"},
    ],
    ids=str,
)
def test_each_switch_matters_and_the_comparison_sees_it(changes):
    with pytest.raises(AssertionError):
        assert_same_as_plain(LEARNER_CONFIG, LEARNER_CONFIG.replace(**changes))


@pytest.mark.parametrize("changes", [{}, {"momentum": 0.6, "max_grad_norm": 0.5}], ids=str)
def test_rmsprop_is_the_plain_one(changes):
    rmsprop = LEARNER_CONFIG.replace(optimizer="rmsprop", **changes)
    assert_same_as_plain(rmsprop)
    with pytest.raises(AssertionError):
        assert_same_as_plain(rmsprop, rmsprop.replace(momentum=0.3))


@pytest.mark.parametrize("momentum", [0.0, 0.95])
def test_rmsprop_over_a_stack_is_that_of_each_run_to_the_bit(momentum):
    config = DQNConfig(optimizer="rmsprop", momentum=momentum, learning_rate=2.5e-4)
    numbers = torch.Generator().manual_seed(0)
    stack = torch.nn.Parameter(torch.randn(3, 40, 7, generator=numbers))
    runs = [torch.nn.Parameter(run.clone()) for run in stack.detach()]
    ours = make_optimizer(config, [stack])
    theirs = torch.optim.RMSprop(
        runs, lr=2.5e-4, alpha=0.95, eps=0.01, centered=True, momentum=momentum
    )
    for _ in range(30):
        gradients = torch.randn(stack.shape, generator=numbers)
        descend(ours, [gradients])
        for run, gradient in zip(runs, gradients, strict=True):
            run.grad = gradient.clone()
        theirs.step()
    assert torch.equal(stack, torch.stack(runs))


@pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
def test_the_discount_is_that_of_the_settings(discount):
    assert_same_as_plain(LEARNER_CONFIG.replace(discount=discount))


@pytest.mark.parametrize("hidden", [(), (5,), (4, 4, 4)])
def test_any_number_of_layers(hidden):
    assert_same_as_plain(LEARNER_CONFIG.replace(hidden=hidden))


def test_in_single_precision_as_it_is_used():
    assert_same_as_plain(LEARNER_CONFIG, learner_class=DQNLearner, updates=15, rtol=1e-3)


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


class PyTorchsOptimiser(DQNLearner):
    """Gradients and steps as PyTorch's own classes make them."""

    def _gradient_step(self, tensors):
        q_values = select_actions(self.online(tensors.observations), tensors.actions)
        with torch.no_grad():
            td_errors, losses, gradients = self.errors_and_losses(q_values, tensors)
        self.optimizer.zero_grad()
        q_values.backward(gradients)
        if self.config.max_grad_norm is not None:
            clip_by_run([each.grad for each in self.online.parameters()], self.config.max_grad_norm)
        self.optimizer.step()
        return td_errors, q_values, losses


FROM_PIXELS = LEARNER_CONFIG.replace(env="ALE/Pong-v5", frame_size=20)  # three convolutions


@pytest.mark.parametrize(
    "config, shape",
    [
        (LEARNER_CONFIG, (INPUTS,)),
        (LEARNER_CONFIG.replace(max_grad_norm=0.5, dueling=True), (INPUTS,)),
        (FROM_PIXELS.replace(max_grad_norm=0.5), (4, 20, 20)),
    ],
)
def test_an_update_is_that_of_pytorchs_own_optimiser_to_the_bit(config, shape):
    ours, theirs = (
        kind(config, shape, ACTIONS, [5, 6]) for kind in (DQNLearner, PyTorchsOptimiser)
    )
    numbers = np.random.default_rng(0)
    for step in range(5):
        batch = random_batch(numbers)
        if len(shape) > 1:
            frames = numbers.integers(256, size=(2, RUNS, BATCH, *shape), dtype=np.uint8)
            batch = batch._replace(observations=frames[0], next_observations=frames[1])
        for one, same in zip(
            ours.update(batch, 0.1 / (1 + step)),
            theirs.update(batch, 0.1 / (1 + step)),
            strict=True,
        ):
            np.testing.assert_array_equal(one, same)
    assert_same_state(ours.state, theirs.state)


# A batch of one run, without the axis of runs


def test_one_run_needs_no_axis_of_runs_and_no_dummy_indices():
    numbers = np.random.default_rng(0)
    usual, alone, plain, torchs = (
        DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, [5]) for _ in range(4)
    )
    for _ in range(5):
        batch = random_batch(numbers, runs=1)._replace(steps=1)
        fields = [field[0] for field in batch[:6]]
        expected = usual.update(batch)
        for update in (
            alone.update(Batch(*fields, indices=np.zeros(BATCH, np.int64))),
            plain.update(tuple(fields)),
            torchs.update(
                SimpleNamespace(
                    **dict(zip(Batch._fields, map(torch.as_tensor, fields), strict=False))
                )
            ),
        ):
            assert update.td_errors.shape == (BATCH,) and update.losses.shape == ()
            for found, wanted in zip(update, expected, strict=True):
                np.testing.assert_array_equal(found, wanted[0])
    assert_same_state(alone.state, usual.state)


def test_without_weights_all_count_alike():
    batch = random_batch(np.random.default_rng(0), runs=1)._replace(steps=1)
    ones = batch._replace(weights=np.ones((1, BATCH), np.float32))
    one, other = (DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, [5]) for _ in range(2))
    one.update(ones), other.update(tuple(field[0] for field in batch[:5]))
    assert_same_state(one.state, other.state)
    with pytest.raises(TypeError, match="batch: must have .*, got none of terminated"):
        one.update(batch[:4])


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


@pytest.mark.parametrize(
    "device", ["abacus", "meta", "hpu", "mps", "xla", "cpu:7", "cpu:-1", "cuda:99", "1", ""]
)
def test_a_device_that_cannot_be_used_is_named_in_one_line(device):
    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("this machine has one")
    with pytest.raises(ValueError) as caught:
        check_device(device)
    assert str(caught.value).startswith(f"device: {device!r} cannot be used (")
    assert "\n" not in str(caught.value)


def test_the_device_is_looked_at_before_networks_are_made():
    with pytest.raises(ValueError, match="device: 'abacus' cannot be used"):
        DQNLearner(LEARNER_CONFIG.replace(device="abacus"), (INPUTS,), ACTIONS, seeds=[0])
    check_device("cpu")
    check_device("cpu:0")


# TD errors without an update


@pytest.mark.parametrize("changes", [{}, {"double": True, "dueling": True}, {"td_error_clip": 0.7}])
def test_td_errors_are_those_that_an_update_would_see_and_nothing_changes(changes):
    stack = DQNLearner(LEARNER_CONFIG.replace(**changes), (INPUTS,), ACTIONS, [5, 6])
    numbers = np.random.default_rng(0)
    for _ in range(10):  # so that both networks differ
        batch = random_batch(numbers)
        before = copy.deepcopy(stack.state)
        td_errors = stack.td_errors(batch)
        assert_same_state(stack.state, before)
        assert td_errors.shape == (RUNS, BATCH)
        np.testing.assert_array_equal(td_errors, stack.update(batch).td_errors)


# States


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def after_updates(count, seed=0, **changes):
    stack = DQNLearner(LEARNER_CONFIG.replace(**changes), (INPUTS,), ACTIONS, [5, 6])
    numbers = np.random.default_rng(seed)
    for _ in range(count):
        stack.update(random_batch(numbers))
    return stack


RMSPROP = {"optimizer": "rmsprop", "momentum": 0.6}


@pytest.mark.parametrize(("updates", "changes"), [(0, {}), (9, {}), (9, RMSPROP)])
def test_a_learner_goes_on_from_a_state_to_the_bit_and_keeps_none_of_its_arrays(updates, changes):
    first, second = after_updates(updates, **changes), after_updates(3, seed=1, **changes)
    state = copy.deepcopy(first.state)
    second.restore(state)
    for array in state.values():
        array[...] = 7
    numbers = np.random.default_rng(2)
    for _ in range(5):
        batch = random_batch(numbers)
        for one, same in zip(first.update(batch), second.update(batch), strict=True):
            np.testing.assert_array_equal(one, same)
    assert_same_state(first.state, second.state)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("updates", np.array(1.0)),
        ("updates", np.zeros(2, dtype=np.int64)),
        ("online.layers.0.weight", np.zeros((2, INPUTS, 9), dtype=np.float32)),
        ("online.layers.0.weight", np.zeros((2, INPUTS, 8))),
        ("target.layers.2.bias", np.zeros((), dtype=np.float32)),
        ("adam.0.exp_avg", np.zeros((2, 8), dtype=np.float32)),
        ("online.layers.1.bias", None),
        ("adam.3.step", None),
    ],
)
def test_a_state_of_something_else_is_refused_and_changes_nothing(name, value):
    stack = after_updates(9)
    before, state = copy.deepcopy(stack.state), copy.deepcopy(after_updates(3).state)
    if value is None:
        del state[name]
    else:
        state[name] = value
    with pytest.raises(ValueError, match=f"^state: .*{name}"):
        stack.restore(state)
    assert_same_state(stack.state, before)
