"""Notebook 06, PER in an agent that exists: places in a ring, the loss and several critics."""

import numpy as np
import torch
from torch.nn.functional import smooth_l1_loss

from per_tutorial.notebook.checking import EXERCISES, Exercise


def place(number, environments, rows):
    step, column = divmod(number, environments)
    return step % rows, column


EXERCISES["06.1"] = Exercise(
    right=place, parts=["the row", "the column"], kinds=True,
    cases=[(0, 4, 10), (5, 4, 10), (40, 4, 10), (107, 4, 10), (64, 3, 7), (12, 1, 5)], hints=[
        (lambda n, e, rows: divmod(n, e),
         "After the last row the first is written again: the row needs `% rows`."),
        (lambda n, e, rows: (n % rows, n % e),
         "Rows count steps, not transitions: divide by `environments` first."),
        (lambda n, e, rows: divmod(n % rows, e),
         "The ring holds rows · environments transitions, not `rows`."),
        (lambda n, e, rows: place(n, e, rows)[::-1], "In this order: the row, then the column."),
    ])  # fmt: skip


def huber(values, targets):
    return smooth_l1_loss(values, targets, reduction="none")


def per_loss(values, targets, weights, each=huber):
    return (weights[:, None] * each(values, targets)).mean()


EXERCISES["06.2"] = Exercise(
    right=per_loss, gradient=["values"],
    cases=[(torch.tensor(values)[:, None], torch.tensor(targets)[:, None], torch.tensor(weights))
           for values, targets, weights in (
               ([0.1, 2.0, -0.4], [0.3, -1.5, 0.2], [0.9, 0.4, 0.8]),
               ([2.0, 0.3, 0.0, 1.2], [0.0, 0.5, 0.4, -0.7], [0.2, 0.6, 0.9, 0.35]))],
    hints=[
        (lambda v, t, w: w.mean() * smooth_l1_loss(v, t),
         "That is the mean weight times the mean loss: `reduction='none'` keeps losses apart. "
         "(batch, 1) times (batch,) makes a table of (batch, batch): bring both to one shape."),
        (lambda v, t, w: smooth_l1_loss(v, t), "Where are the weights?"),
        (lambda v, t, w: per_loss(v, t, w) * len(w), "That is the sum; take the mean."),
        (lambda v, t, w: per_loss(v, t, w, lambda v, t: (v - t) ** 2),
         "That is w·δ²: the loss is the Huber loss."),
    ])  # fmt: skip


def priorities(values, targets, epsilon, reduce=lambda errors: np.abs(errors).mean(axis=1)):
    return reduce(targets[:, None] - values) + epsilon


EXERCISES["06.3"] = Exercise(
    right=priorities,
    cases=[
        (np.array([[1.0, -1.0], [0.5, 0.25], [2.0, 3.0]]), np.array([0.0, 1.0, -1.0]), 0.5),
        (np.array([[0.3, 0.1, -2.0], [1.0, 1.5, 0.5]]), np.array([0.2, 0.9]), 0.01),
    ],
    hints=[
        (lambda v, t, e: priorities(v, t, e, lambda d: np.abs(d.mean(axis=1))),
         "Take sizes before the mean: +1 and −1 cancel in it, though both critics are wrong."),
        (lambda v, t, e: priorities(v, t, 0.0), "ε is missing: a priority is never 0."),
        (lambda v, t, e: priorities(v, t, e, lambda d: (d**2).mean(axis=1)),
         "The error is squared: that is the loss. The priority is the size |δ|."),
        (lambda v, t, e: np.abs(t[:, None] - v).mean(axis=0) + e,
         "One priority for each transition, not for each critic: `axis=1`."),
    ])  # fmt: skip
