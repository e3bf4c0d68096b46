"""Notebook 04: double n-step targets, dueling, soft targets."""

import numpy as np
import torch

from per_tutorial.notebook.checking import EXERCISES, Exercise


def rated(choosing, rating):
    """One network's Q of the actions that the other would choose."""
    return rating.gather(1, choosing.argmax(dim=1, keepdim=True))[:, 0]


def n_step_double_targets(
    rewards, steps, terminated, next_q_online, next_q_target, discount, values=rated
):
    return rewards + discount**steps * ~terminated * values(next_q_online, next_q_target)


# The first has as many transitions as actions: there, a wrong axis raises no error.
WINDOWS = [
    ([1.5, 0.25, -2.0], [3, 2, 1], [False, True, False],
     [[-1.0, -5, -2], [0.5, 2.5, 4.5], [9, 8, 1]], [[-3.0, -4, -7], [6.5, 5, 1.5], [-8, 3, 2]]),
    ([1.0, 0.0, -1.0, 0.5], [2, 4, 4, 1], [False, False, True, False],
     [[1.0, 5, 2], [4, 0, 3], [0, 1, 6], [2, 3, 1]],
     [[3.0, 4, 7], [6, 5, 2], [8, 1, 2], [1, 2, 9]]),
]  # fmt: skip

EXERCISES["04.1"] = Exercise(
    right=n_step_double_targets,
    cases=[(*map(torch.tensor, window), g) for window in WINDOWS for g in (0.5, 0.95)],
    hints=[
        (lambda r, n, end, o, t, g: n_step_double_targets(r, n, end, t, t, g),
         "That is plain DQN: let the online network choose the action."),
        (lambda r, n, end, o, t, g: n_step_double_targets(r, n, end, o, o, g),
         "The online network both chooses and rates: let the target network rate its choice."),
        (lambda r, n, end, o, t, g: n_step_double_targets(r, n, end, t, o, g),
         "The roles are swapped: you choose by the target network and rate by the online one."),
        (lambda r, n, end, o, t, g: r + g * ~end * rated(o, t),
         "γ is the discount of one step; the value comes `steps` steps later."),
        (lambda r, n, end, o, t, g: r + g**n * rated(o, t),
         "After termination nothing follows: there the target is the rewards alone."),
    ])  # fmt: skip


def legal_mean(advantages, legal):
    return (advantages * legal).sum(dim=1, keepdim=True) / legal.sum(dim=1, keepdim=True)


def dueling_q(value, advantages, legal, mean=legal_mean):
    return value + advantages - mean(advantages, legal)


EXERCISES["04.2"] = Exercise(
    right=dueling_q, gradient=["value", "advantages"],
    # The first has as many transitions as actions: there, a wrong axis raises no error.
    cases=[(torch.tensor(V)[:, None], torch.tensor(A), torch.tensor(ok).bool()) for V, A, ok in (
        ([1.0, -2.0, 5.0], [[1.0, 2.0, 6.0], [0.0, -4.0, 1.0], [3.0, 3.0, 9.0]],
         [[1, 1, 0], [1, 0, 1], [0, 1, 1]]),
        ([0.5, -1.5], [[0.25, -3.0, 1.0, 7.0], [2.0, 0.5, -0.5, 4.5]],
         [[1, 0, 0, 1], [1, 1, 0, 1]]))],
    hints=[
        (lambda V, A, ok: dueling_q(V, A, ok | True),
         "You subtract the mean over all actions: leave out those that are illegal in the state."),
        (lambda V, A, ok: dueling_q(V, A, ok, lambda A, ok: (A * ok).mean(dim=1, keepdim=True)),
         "Divide by the number of *legal* actions of the state, `legal.sum(…)`."),
        (lambda V, A, ok: dueling_q(V, A, ok, lambda A, ok: A[ok].mean()),
         "You subtract the mean of the whole minibatch; each state has legal actions of its own."),
        (lambda V, A, ok: dueling_q(V, A, ok).masked_fill(~ok, float("-inf")),
         "Illegal actions keep their Q; only the mean leaves them out."),
    ])  # fmt: skip


def half_life(tau):
    return np.log(0.5) / np.log(1 - tau)


EXERCISES["04.3"] = Exercise(right=half_life, cases=[(0.5,), (0.02,), (0.95,)], hints=[
    (lambda tau: 0.5 / tau,
     "Each update takes the share τ of what is *left*, not the same amount each time."),
    (lambda tau: np.log(2) / tau, "Nearly: that is the limit for small τ."),
    (lambda tau: np.log(0.5) / np.log(tau), "One update leaves 1 − τ of the distance, not τ."),
])  # fmt: skip
