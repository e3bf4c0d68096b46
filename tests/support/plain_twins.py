"""Learners and their plain twins, trained on the same minibatches and compared."""

import numpy as np
from plain_dqn import DoublePrecisionLearner, PlainLearner, PlainQNetwork
from small import ACTIONS, INPUTS, RUNS, random_batch


def assert_same_as_plain(config, *, learner_class=DoublePrecisionLearner, updates=22, rtol=1e-9):
    """Train a stack, and a plain learner for each of its runs, on the same minibatches."""
    numbers = np.random.default_rng(0)
    stack = learner_class(config, (INPUTS,), ACTIONS, seeds=[5, 6])
    twins = [PlainLearner(config, PlainQNetwork(stack.online, run)) for run in range(RUNS)]
    tolerance = {"rtol": rtol, "atol": rtol}
    for step in range(updates):
        batch = random_batch(numbers)
        step_size = config.learning_rate / (1 + step)
        update = stack.update(batch, step_size)
        for run, twin in enumerate(twins):
            fields = (*batch[:5], batch.discounts)
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
