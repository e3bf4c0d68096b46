"""The learner: against a plain twin, and what it hands out."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from plain_twins import assert_same_as_plain
from small import ACTIONS, BATCH, INPUTS, LEARNER_CONFIG, RUNS, random_batch

from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.replay import Batch

SOFT = {"tau": 0.1, "target_update_every": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"double": True, "loss": "squared", "hidden": ()},
        {"dueling": True, "td_error_clip": 0.7, **SOFT},
        {"double": True, "dueling": True, "max_grad_norm": 0.5, "discount": 0.5},
        {"loss": "squared", "td_error_clip": 0.7, "max_grad_norm": 0.5, "hidden": (4, 4, 4)},
        {"kappa": 0.4, "double": True, **SOFT},
    ],
    ids=str,
)
@pytest.mark.slow
def test_the_learner_is_the_plain_algorithm(changes):
    assert_same_as_plain(LEARNER_CONFIG.replace(**changes))


def test_in_single_precision_as_it_is_used():
    assert_same_as_plain(LEARNER_CONFIG, learner_class=DQNLearner, updates=15, rtol=1e-3)


# A batch of one run, without the axis of runs


def test_one_run_needs_no_axis_of_runs_and_no_dummy_indices():
    numbers = np.random.default_rng(0)
    usual, alone, plain, torchs = (
        DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, [5]) for _ in range(4)
    )
    for _ in range(5):
        batch = random_batch(numbers, runs=1)._replace(discounts=None)
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
    batch = random_batch(np.random.default_rng(0), runs=1)._replace(discounts=None)
    ones = batch._replace(weights=np.ones((1, BATCH), np.float32))
    one, other = (DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, [5]) for _ in range(2))
    one.update(ones), other.update(tuple(field[0] for field in batch[:5]))
    assert_same_state(one.state, other.state)
    with pytest.raises(TypeError, match="batch: must have .*, got none of terminated"):
        one.update(batch[:4])


# Runs that train side by side


def test_the_data_of_one_run_does_not_move_a_bit_of_another():
    config = LEARNER_CONFIG.replace(max_grad_norm=0.5)

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


def test_observations_of_any_shape_are_flattened():
    stack = DQNLearner(LEARNER_CONFIG, (2, 3), ACTIONS, seeds=[0])
    images = np.random.default_rng(0).integers(255, size=(1, 5, 2, 3), dtype=np.uint8)
    flat = torch.from_numpy(images.reshape(1, 5, 6)).float()
    np.testing.assert_array_equal(stack.q_values(images), stack.online(flat).detach())


@pytest.mark.parametrize("device", ["abacus", "meta", "hpu", "cuda:99", "1"])
def test_a_device_that_cannot_be_used_is_named_in_one_line(device):
    with pytest.raises(ValueError) as caught:
        DQNLearner(LEARNER_CONFIG.replace(device=device), (INPUTS,), ACTIONS, seeds=[0])
    assert str(caught.value).startswith(f"device: {device!r} cannot be used (")
    assert "\n" not in str(caught.value)


# TD errors without an update


def test_td_errors_are_those_that_an_update_would_see_and_nothing_changes():
    config = LEARNER_CONFIG.replace(double=True, td_error_clip=0.7)
    stack = DQNLearner(config, (INPUTS,), ACTIONS, [5, 6])
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


@pytest.mark.parametrize(("updates", "changes"), [(0, {}), (9, {})])
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
        ("online.layers.0.weight", np.zeros((2, INPUTS, 9), dtype=np.float32)),
        ("online.layers.0.weight", np.zeros((2, INPUTS, 8))),
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
