"""The learner: against a plain twin, and what it hands out."""

import copy
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from plain_twins import assert_same_as_plain
from small import ACTIONS, BATCH, INPUTS, LEARNER_CONFIG, RUNS, TINY_CONFIG, random_batch
from torch import nn

from per_tutorial.dqn.cuda_graphs import Recorded
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.networks import QNetwork, StackedLinear
from per_tutorial.dqn.optimizers import Optimizer
from per_tutorial.dqn.training import train
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


# A loss, a network and an optimiser of one's own


class SquaredLearner(DQNLearner):
    def losses(self, td_errors, weights):
        return 0.5 * weights * td_errors**2


def test_a_loss_of_ones_own_replaces_that_of_the_settings_also_where_gradients_are_off():
    own = SquaredLearner(LEARNER_CONFIG.replace(loss="huber"), (INPUTS,), ACTIONS, [5, 6])
    usual = DQNLearner(LEARNER_CONFIG.replace(loss="squared"), (INPUTS,), ACTIONS, [5, 6])
    for batch in map(random_batch, map(np.random.default_rng, range(5))):
        with torch.no_grad():
            found = own.update(batch)
        np.testing.assert_array_equal(found.losses, usual.update(batch).losses)
    assert_same_state(own.state, usual.state)


@pytest.mark.parametrize(
    "losses, found",
    [
        (lambda td_errors, weights: (weights * td_errors**2).mean(), r"\(\) with one"),
        (lambda td_errors, weights: weights * td_errors.detach() ** 2, r"\(2, 6\) without one"),
        (lambda td_errors, weights: np.square(td_errors.detach().numpy()), "ndarray"),
    ],
)
def test_a_loss_of_another_shape_or_without_a_gradient_is_refused(losses, found):
    wrong = type("Wrong", (DQNLearner,), {"losses": lambda self, *given: losses(*given)})
    stack = wrong(LEARNER_CONFIG, (INPUTS,), ACTIONS, [5, 6])
    before = copy.deepcopy(stack.state)
    with pytest.raises(ValueError, match=rf"^Wrong.losses: .* tensor \(2, 6\), .* got {found}$"):
        stack.update(random_batch(np.random.default_rng(0)))
    assert_same_state(stack.state, before)


class TanhNetwork(nn.Sequential):
    def __init__(self, inputs, actions, hidden, seeds):
        draws = [torch.Generator().manual_seed(seed) for seed in seeds]
        first, last = StackedLinear(inputs, 16, draws), StackedLinear(16, actions, draws)
        super().__init__(first, nn.Tanh(), last)


class Descent(Optimizer):
    @torch.no_grad()
    def descend(self, gradients):
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter -= self.learning_rate * gradient


class TanhLearner(DQNLearner):
    network_class = TanhNetwork
    optimizer_class = Descent


def test_a_network_and_an_optimiser_of_ones_own_learn_and_are_loaded_by_their_class(tmp_path):
    path, seen = tmp_path / "agent.safetensors", np.ones((1, 5, 4), np.float32)
    agent = train(TINY_CONFIG, 3, learner=TanhLearner).agent
    novice = TanhLearner(TINY_CONFIG, (4,), 2, 3)
    assert not np.allclose(agent.q_values(seen), novice.q_values(seen))
    assert not any(moments["step"] for moments in agent.optimizer.moments)  # Adam's
    agent.save(path)
    np.testing.assert_array_equal(TanhLearner.load(path).q_values(seen), agent.q_values(seen))
    names = "per_tutorial.dqn.networks.QNetwork", f"{__name__}.TanhNetwork"
    with pytest.raises(ValueError, match=r"network: must be {}, got {}\)$".format(*names)):
        DQNLearner.load(path)
    with pytest.raises(TypeError, match="'dueling'"):  # which it does not have
        TanhLearner(TINY_CONFIG.replace(dueling=True), (4,), 2, 3)


@pytest.mark.parametrize(
    "network, message",
    [
        (lambda draws: StackedLinear(INPUTS, 5, draws), r"Q .* \(2, 2, 4\), got \(2, 2, 5\)"),
        (lambda draws: nn.Linear(INPUTS, ACTIONS), r"runs \(2\), got 0.weight, torch.float32 of"),
        (lambda draws: StackedLinear(INPUTS, ACTIONS, draws).double(), "float32 .*got .*float64"),
        (lambda draws: StackedLinear(INPUTS, ACTIONS, draws).requires_grad_(False), "got 0.w"),
        (lambda draws: nn.Identity(), "parameters that all learn, got none"),
    ],
)
def test_a_network_that_does_not_fit_is_refused(network, message):
    class Wrong(nn.Sequential):
        def __init__(self, inputs, actions, hidden, seeds):
            super().__init__(network([torch.Generator().manual_seed(seed) for seed in seeds]))

    own = type("Own", (DQNLearner,), {"network_class": Wrong})
    with pytest.raises(ValueError, match=f"^Wrong: must .*{message}"):
        own(LEARNER_CONFIG, (INPUTS,), ACTIONS, [5, 6])


def test_buffers_of_a_network_are_those_of_the_online_network_at_each_target_update():
    class Centred(QNetwork):
        def __init__(self, inputs, *given):
            super().__init__(inputs, *given)
            self.register_buffer("mean", torch.zeros(1, 1, inputs))

        def forward(self, observations):
            if torch.is_grad_enabled():
                self.mean += 1
            return super().forward(observations - self.mean)

    own = type("Own", (DQNLearner,), {"network_class": Centred})
    agent = own(LEARNER_CONFIG.replace(target_update_every=2), (INPUTS,), ACTIONS, 5)
    for mean in (0, 2, 2):
        agent.update(random_batch(np.random.default_rng(0), runs=1))
        assert agent.target.mean.unique().tolist() == [mean]


# A batch of one run, without the axis of runs


def test_one_run_needs_no_axis_of_runs_and_no_dummy_indices():
    numbers = np.random.default_rng(0)
    usual, alone, plain, torchs = (
        DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, seeds=5) for _ in range(4)
    )
    for _ in range(5):
        batch = random_batch(numbers, runs=1)._replace(discounts=None)
        fields = [field[0] for field in batch[:6]]
        td_errors, expected = plain.td_errors(tuple(fields)), usual.update(batch)
        np.testing.assert_array_equal(td_errors, expected.td_errors[0])
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


@pytest.mark.parametrize("method", [DQNLearner.update, DQNLearner.td_errors])
@pytest.mark.parametrize(
    "name, shape, wanted",
    [
        ("weights", (2, 6, 1), "2, 6"),
        ("discounts", (2, 6, 1), "2, 6"),
        ("next_observations", (2, 5, INPUTS), "2, 6"),
        ("rewards", (6,), "2, batch"),
    ],
)
def test_a_batch_of_another_shape_is_refused_rather_than_broadcast(method, name, shape, wanted):
    batch = random_batch(np.random.default_rng(0))._replace(**{name: np.ones(shape, np.float32)})
    message = re.escape(f"batch: must have {name} of the shape ({wanted}), got {shape}")
    with pytest.raises(ValueError, match=f"^{message}$"):
        method(DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, [5, 6]), batch)


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


def after_updates(count, seed=0):
    stack = DQNLearner(LEARNER_CONFIG, (INPUTS,), ACTIONS, [5, 6])
    numbers = np.random.default_rng(seed)
    for _ in range(count):
        stack.update(random_batch(numbers))
    return stack


@pytest.mark.parametrize("updates", [0, 9])
def test_a_learner_goes_on_from_a_state_to_the_bit_and_keeps_none_of_its_arrays(updates):
    first, second = after_updates(updates), after_updates(3, seed=1)
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


def test_a_recorded_function_has_a_recording_for_each_shape(monkeypatch):
    def record(recorded, tensors):
        graph = SimpleNamespace(replay=lambda: None)  # a CUDA graph needs a GPU
        return graph, [(each.clone(), each.clone()) for each in tensors], len(tensors[0])

    monkeypatch.setattr(Recorded, "_record", record)
    length = Recorded(len, "cpu")
    assert [length(torch.zeros(n)) for n in (1, 2) * 3] == [1, 2] * 3
