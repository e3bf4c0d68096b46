"""Notebook 02, uniform DQN: targets, exploration, TD errors."""

import numpy as np
import torch

from per_tutorial.notebook.checking import EXERCISES, Exercise


def td_target(reward, terminated, truncated, next_q, discount):
    return reward + (not terminated) * discount * next_q.max()


TWO, THREE, FOUR = (np.array(q) for q in ([3.0, 7.0], [-2.5, -0.75, -4.0], [0.5, 2.0, 6.5, -8.0]))

EXERCISES["02.1"] = Exercise(
    right=td_target,
    cases=[
        (1.0, False, False, TWO, 0.9), (1.0, True, False, TWO, 0.9), (1.0, False, True, TWO, 0.9),
        (1.0, True, True, TWO, 0.9), (-0.5, False, True, THREE, 0.8),
        (2.0, False, False, FOUR, 0.99),
    ],
    hints=[
        (lambda r, te, tr, q, g: td_target(r, te or tr, tr, q, g),
         "A time limit ends the watching, not the future: only `terminated` takes it away."),
        (lambda r, te, tr, q, g: td_target(r, False, tr, q, g),
         "After termination nothing follows: the target is the reward alone."),
        (lambda r, te, tr, q, g: r + ~te * g * q.max(),
         "`~` is meant for arrays: ~False is −1, and ~True is −2. Write `not terminated`."),
        (lambda r, te, tr, q, g: (not te) * (r + g * q.max()),
         "Termination cuts off what follows, not the reward of the step itself."),
    ])  # fmt: skip


def epsilon(step, begin=200, steps=1_000, end=0.1):
    return 1.0 + (end - 1.0) * min(max(step - begin, 0) / steps, 1.0)


EXERCISES["02.2"] = Exercise(
    right=epsilon,
    cases=[(step,) for step in (0, 100, 200, 201, 450, 700, 1_150, 1_200, 1_201, 3_000)],
    hints=[
        (lambda step: epsilon(step, begin=0),
         "It falls from step 0 on; it should stay at 1 until step 200."),
        (lambda step: epsilon(step, steps=800),
         "It reaches 0.1 at step 1,000; it should fall for 1,000 steps, from step 200 on."),
        (lambda step: 1.0 - 0.9 * max(step - 200, 0) / 1_000,
         "After step 1,200 it goes on, and falls below 0.1; it should stay there."),
        (lambda step: 1.0 if step < 1200 else 0.1,
         "That is one jump, not a line: `//` drops the fraction, `/` keeps it."),
    ])  # fmt: skip


def td_errors_of(q_values, actions, targets):
    return targets - q_values.gather(1, actions[:, None])[:, 0]


EXERCISES["02.3"] = Exercise(
    right=td_errors_of, gradient=["q_values"],
    # The first has as many transitions as actions: there, a wrong axis raises no error.
    cases=[tuple(map(torch.tensor, batch)) for batch in (
        ([[1.0, 5.25, -0.5], [2.0, 0.25, 3.5], [4.0, 3.75, 0.5]], [0, 2, 1], [2.5, 2.0, 7.125]),
        ([[0.5, -1.25, 2.75, 0.1], [3.25, 1.5, -0.5, 2.0]], [3, 1], [1.5, -0.25]))],
    hints=[
        (lambda q, a, t: t - q.gather(1, a[:, None]),
         "`gather` returns (batch, 1): drop its second axis before you subtract."),
        (lambda q, a, t: t - q[:, a],
         "`q_values[:, actions]` picks those columns in *every* row: `gather` along axis 1."),
        (lambda q, a, t: -td_errors_of(q, a, t), "The sign: δ is the target minus the estimate."),
        (lambda q, a, t: t - q.amax(dim=1),
         "You take the best action's Q; the estimate is that of the action that was taken."),
    ])  # fmt: skip
