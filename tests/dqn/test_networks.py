"""A stack of Q-networks is so many networks, and nothing passes from one to another."""

import numpy as np
import pytest
import torch
from plain_dqn import PlainQNetwork

from per_tutorial.dqn.networks import QNetwork, StackedLinear

INPUTS, ACTIONS, RUNS = 4, 3, 3
architectures = pytest.mark.parametrize("hidden, dueling", [((), True), ((8, 6), False)])


def network(hidden, dueling, seeds=(0, 1, 2)):
    return QNetwork(INPUTS, ACTIONS, hidden, seeds, dueling=dueling)


def observations(runs=RUNS, seed=0):
    return torch.randn(runs, 5, INPUTS, generator=torch.Generator().manual_seed(seed))


@architectures
def test_each_run_computes_what_a_network_of_linear_layers_computes(hidden, dueling):
    stack, inputs = network(hidden, dueling), observations()
    outputs = stack(inputs)
    assert outputs.shape == (RUNS, 5, ACTIONS)
    for run in range(RUNS):
        alone = PlainQNetwork(stack, run)(inputs[run])
        torch.testing.assert_close(outputs[run].double(), alone, rtol=1e-5, atol=1e-6)


@architectures
def test_the_initial_network_of_a_run_depends_on_its_own_seed_alone(hidden, dueling):
    stack = network(hidden, dueling, seeds=(5, 6, 7))
    other = network(hidden, dueling, seeds=(9, 6))
    for mine, theirs in zip(stack.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine[1], theirs[1])  # both have seed 6
        assert not torch.equal(mine[0], theirs[0])


def test_the_initial_distribution_is_that_of_torch_nn_linear():
    inputs, outputs = 50, 400
    layer = StackedLinear(inputs, outputs, [torch.Generator().manual_seed(s) for s in range(2)])
    reference = torch.nn.Linear(inputs, outputs)
    for mine, torchs in ((layer.weight, reference.weight), (layer.bias, reference.bias)):
        bound = inputs**-0.5
        assert bound * 0.98 < mine.abs().max() <= bound
        quantiles = torch.linspace(0.1, 0.9, 9)
        np.testing.assert_allclose(
            mine.detach().flatten().quantile(quantiles),
            torchs.detach().flatten().quantile(quantiles),
            atol=0.2 * bound,
        )
