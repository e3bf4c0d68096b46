"""Notebook 03, prioritised replay: weights, leaves, the weighted loss."""

import numpy as np
import torch

from per_tutorial.notebook.checking import EXERCISES, Exercise


def importance_weights(P, indices, beta, divisor=lambda weights, of_all: weights.max()):
    of_all = (len(P) * P) ** -beta
    return of_all[indices] / divisor(of_all[indices], of_all)


# Transitions that are hardly ever drawn, in the minibatch or not, and one that is drawn twice.
COMMON, RARE = np.array([0.5, 3.0, 0.02, 7.5, 1.2]), np.array([0.5, 3e-7, 2.0, 4e-4, 1e-5, 0.03])

EXERCISES["03.1"] = Exercise(
    right=importance_weights,
    cases=[(P / P.sum(), np.array(indices), beta) for P, indices, beta in (
        (COMMON, [4, 0, 3], 1.0), (COMMON, [4, 0, 3, 4], 0.3), (RARE, [3, 0, 5], 0.5),
        (RARE, [0, 1, 3, 4], 0.4))],
    hints=[
        (lambda P, i, b: (len(P) * P[i]) ** -b, "Right so far; now divide by the largest of them."),
        (lambda P, i, b: importance_weights(P, i, -b),
         "Upside down: what is drawn often must count *less*, so the exponent is −β."),
        (lambda P, i, b: importance_weights(P, i, b, lambda weights, of_all: of_all.max()),
         "You divide by the largest of the whole memory: take the largest of the minibatch."),
        (lambda P, i, b: importance_weights(P, i, 1.0),
         "That is the full correction, whatever β is: β is the exponent."),
    ])  # fmt: skip


def leaves(td_errors, largest_priority, alpha, epsilon, size=np.abs):
    priorities = size(td_errors) + epsilon
    return priorities**alpha, max(largest_priority, priorities.max()) ** alpha


EXERCISES["03.2"] = Exercise(
    right=leaves, parts=["the leaves of the replayed transitions", "the newcomer's leaf"],
    # The largest error is neither the first nor the last; it may be negative, and below 1.
    cases=[(np.array(errors), largest, alpha, epsilon) for errors, largest, alpha, epsilon in (
        ([0.5, -2.0, 0.0, 1.25], 1.5, 0.5, 0.1), ([0.3, -0.8, 0.1], 4.0, 0.6, 0.01),
        ([0.5, -2.0, 0.0, 1.25], 2.05, 0.7, 0.1), ([0.3, -0.8, 0.1], 0.4, 0.7, 0.05))],
    hints=[
        (lambda d, m, a, e: leaves(d, m, a, e, lambda d: d),
         "The priority is the *size* of the error: a negative number raised to α is NaN."),
        (lambda d, m, a, e: leaves(d, m, a, 0.0),
         "ε is missing: a transition without an error would never be drawn again."),
        (lambda d, m, a, e: leaves(d, m, a, e, np.square), "The priority is |δ|, not δ²."),
        (lambda d, m, a, e: (leaves(d, m, a, e)[0], leaves(d, m, 1.0, e)[1]),
         "The newcomer's is p, but the leaves hold p^α."),
        (lambda d, m, a, e: (leaves(d, m, a, e)[0], m**a),
         "This minibatch may have brought a new largest priority: look at it first."),
    ])  # fmt: skip


def weighted_loss(td_errors, weights):
    return (weights[:, 0] * 0.5 * td_errors**2).mean()


EXERCISES["03.3"] = Exercise(
    right=weighted_loss, gradient=["td_errors"],
    cases=[(torch.tensor(errors), torch.tensor(weights)[:, None]) for errors, weights in (
        ([1.0, -2.0, 0.5], [0.9, 0.25, 0.5]), ([0.1, -0.2, 0.3, 4.0], [0.9, 0.8, 0.5, 0.1]),
        ([1.5], [0.4]))],
    hints=[
        (lambda d, w: (w * 0.5 * d**2).mean(),
         "That is the mean weight times the mean loss. (batch, 1) times (batch,) makes a table of "
         "(batch, batch), and its mean does not show it: bring both to one shape first."),
        (lambda d, w: (w[:, 0] * d**2).mean(), "The ½ is missing."),
        (lambda d, w: 0.5 * (d**2).mean(), "Where are the weights?"),
        (lambda d, w: (w[:, 0] * 0.5 * d**2).sum(), "That is the sum; take the mean."),
    ])  # fmt: skip
