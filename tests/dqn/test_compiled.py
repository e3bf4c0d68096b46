"""Compiled updates do what the others do."""

import numpy as np
import pytest
from plain_dqn import needs_compiler
from plain_twins import assert_same_as_plain
from small import ACTIONS, INPUTS, LEARNER_CONFIG, random_batch

from per_tutorial.dqn.learner import DQNLearner


@pytest.mark.exhaustive
@needs_compiler
@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "rmsprop", "momentum": 0.6},
        {"double": True, "dueling": True, "td_error_clip": 0.7, "max_grad_norm": 0.5},
    ],
    ids=str,
)
def test_compiled_the_learner_is_the_plain_algorithm_as_well(changes):
    config = LEARNER_CONFIG.replace(**changes)
    assert_same_as_plain(config.replace(compiled=True), config)


@pytest.mark.exhaustive
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
