"""The exercises of notebook 06: right answers of any form pass, wrong ones hear their mistake."""

import numpy as np
import pytest
import torch
from torch.nn import HuberLoss
from torch.nn.functional import mse_loss, smooth_l1_loss


def place(number, environments, rows):
    return number // environments % rows, number % environments


def place_by_counting(number, environments, rows):
    row = column = 0
    for _ in range(number):
        column += 1
        if column == environments:
            row, column = (row + 1) % rows, 0
    return [row, column]


def each(values, targets):
    return smooth_l1_loss(values, targets, reduction="none")


def loss(values, targets, weights):
    return (weights[:, None] * each(values, targets)).mean()


def summed_one_by_one(values, targets, weights):
    total = 0.0
    for value, target, weight in zip(values, targets, weights, strict=True):
        total = total + weight * each(value, target)[0]
    return total / len(values)


def loss_in_place(values, targets, weights):
    weights *= 2
    return loss(values, targets, weights / 2)


def with_terms(terms):
    return lambda v, t, w: terms(t - v, w[:, None]).mean()


def priorities(values, targets, epsilon):
    return np.abs(values - targets[:, None]).mean(axis=1) + epsilon


def of_errors(reduce):
    return lambda v, t, epsilon: reduce(t[:, None] - v) + epsilon


def priorities_in_place(values, targets, epsilon):
    values -= targets[:, None]
    return np.abs(values).mean(axis=1) + epsilon


def memory(transitions, pixels, stack):
    return 2 * stack * pixels * transitions, pixels * transitions


RIGHT = [
    ("06.1", place),
    ("06.1", place_by_counting),
    ("06.1", lambda n, e, rows: np.divmod(n % (rows * e), e)),
    ("06.1", lambda n, e, rows: np.unravel_index(n % (rows * e), (rows, e))),
    ("06.1", lambda n, e, rows: torch.tensor(place(n, e, rows))),
    ("06.2", loss),
    ("06.2", lambda v, t, w: (w * each(v, t)[:, 0]).mean()),
    ("06.2", lambda v, t, w: (w * HuberLoss(reduction="none")(v, t).squeeze()).mean()),
    ("06.2", lambda v, t, w: w @ each(v, t).flatten() / len(w)),
    ("06.2", summed_one_by_one),
    ("06.3", priorities),
    ("06.3", lambda v, t, e: [np.mean([abs(q - y) for q in row]) + e for row, y in zip(v, t)]),  # noqa: B905
    ("06.3", lambda v, t, e: (np.abs(v.T - t) + e).mean(axis=0)),
    ("06.3", lambda v, t, e: (torch.tensor(v) - torch.tensor(t)[:, None]).abs().mean(1) + e),
    ("06.4", memory),
    ("06.4", lambda n, p, s: [n * p * s * 2.0, float(n * p)]),
    ("06.4", lambda n, p, s: np.array([2 * s, 1]) * p * n),
]

TABLE = "a table of (batch, batch)"

WRONG = [
    ("06.1", lambda n, e, rows: divmod(n, e), "the row needs `% rows`"),
    ("06.1", lambda n, e, rows: place(n, e, rows)[::-1], "the row, then the column"),
    ("06.1", lambda n, e, rows: (n % rows, n // rows), "one environment after the other"),
    ("06.1", lambda n, e, rows: (n % rows, n // rows % e), "one environment after the other"),
    ("06.1", lambda n, e, rows: (n % rows // e, n % e), "divide by `environments` first, then"),
    ("06.1", lambda n, e, rows: (n % rows, n % e), "by steps, not by transitions"),
    ("06.1", lambda n, e, rows: divmod(n, rows), "has `environments` columns"),
    ("06.1", lambda n, e, rows: divmod(n % rows, e), "rows · environments transitions"),
    ("06.1", lambda n, e, rows: (n // e % (rows + 1), n % e), "counted from 0"),
    ("06.1", lambda n, e, rows: (min(n // e, rows - 1), n % e), "stays in the last row"),
    ("06.1", lambda n, e, rows: (n // e % rows, 0), "the column is the environment"),
    ("06.1", lambda n, e, rows: (n / e % rows, n % e), "use `//`"),
    ("06.1", lambda n, e, rows: n // e % rows, "return 2 things"),
    ("06.1", lambda n, e: (0, 0), "(number, environments, rows): keep these arguments"),
    ("06.1", lambda n, e, rows: (0, 0), "is always [0, 0]"),
    ("06.2", lambda v, t, w: (w * each(v, t)).mean(), TABLE),
    ("06.2", lambda v, t, w: (w * each(v, t)).sum(), TABLE),
    ("06.2", lambda v, t, w: (w * each(v, t)).mean(), f"{TABLE}. Bring both to one shape"),
    ("06.2", lambda v, t, w: w.mean() * smooth_l1_loss(v, t), "weigh each loss before the mean"),
    ("06.2", lambda v, t, w: smooth_l1_loss(v, t), "where are the weights"),
    ("06.2", lambda v, t, w: w * each(v, t)[:, 0], "a single number"),
    ("06.2", lambda v, t, w: (w[:, None] * each(v, t)).sum(), "take the mean"),
    ("06.2", lambda v, t, w: len(w) * loss(v, t, w) / w.sum(), "not by the sum of the weights"),
    ("06.2", with_terms(lambda d, w: w * d**2), "that is w·δ²"),
    ("06.2", lambda v, t, w: (w[:, None] * mse_loss(v, t, reduction="none") / 2).mean(), "½δ²"),
    ("06.2", with_terms(lambda d, w: w * d.abs()), "that is w·|δ|"),
    ("06.2", lambda v, t, w: smooth_l1_loss(w[:, None] * v, w[:, None] * t), "not the error"),
    ("06.2", lambda v, t, w: loss(v, t, w / w.max()), "divided by the largest again"),
    ("06.2", lambda v, t, w: loss(v, t, 1 / w), "you divide by the weights"),
    ("06.2", lambda v, t, w: loss(v, t, w).item(), "no gradient flows back"),
    ("06.2", lambda v, t, w: loss(v.detach(), t, w), "no gradient flows back"),
    ("06.2", loss_in_place, "it changes `weights`"),
    ("06.3", of_errors(lambda d: np.abs(d.mean(axis=1))), "+1 and −1 cancel"),
    ("06.3", of_errors(lambda d: d.mean(axis=1)), "never negative"),
    ("06.3", of_errors(lambda d: np.abs(d).sum(axis=1)), "that is the sum"),
    ("06.3", of_errors(lambda d: np.abs(d).sum(axis=1) / 2), "more than two critics"),
    ("06.3", of_errors(lambda d: (np.abs(d[:, 0]) + np.abs(d[:, 1])) / 2), "more than two critics"),
    ("06.3", lambda v, t, e: np.maximum(priorities(v, t, 0), e), "ε is added to every priority"),
    ("06.3", of_errors(lambda d: np.abs(d).max(axis=1)), "that is the largest"),
    ("06.3", of_errors(lambda d: np.abs(d).min(axis=1)), "that is the smallest of the sizes"),
    ("06.3", of_errors(lambda d: np.abs(d)[:, 0]), "the first critic alone"),
    ("06.3", lambda v, t, e: np.abs(t - v.min(axis=1)) + e, "belongs into the target"),
    ("06.3", of_errors(lambda d: (d**2).mean(axis=1)), "squared"),
    ("06.3", lambda v, t, e: priorities(v, t, 0), "ε is missing"),
    ("06.3", lambda v, t, e: priorities(v, t, e) ** 0.6, "α is the buffer's business"),
    ("06.3", lambda v, t, e: priorities(v, t, e)[:, None], "a column"),
    ("06.3", lambda v, t, e: np.abs(v - t[:, None]).mean(axis=0) + e, "`axis=1`"),
    ("06.3", lambda v, t, e: np.abs(v - t[:, None]).mean() + e, "numbers"),
    ("06.3", lambda v, t, e: np.abs(v - t).mean(axis=1) + e, "ValueError"),
    ("06.3", priorities_in_place, "it changes `values`"),
    ("06.4", lambda n, p, s: (s * p * n, p * n), "the next observation is stored as well"),
    ("06.4", lambda n, p, s: (2 * s * p * n, 2 * p * n), "the next transition brings"),
    ("06.4", lambda n, p, s: (2 * s * p * n, s * p * n), "each observation once"),
    ("06.4", lambda n, p, s: (2 * p * n, p * n), "an observation has `stack` pictures"),
    ("06.4", lambda n, p, s: (2 * s * p * n / 1e9, p * n / 1e9), "not GB"),
    ("06.4", lambda n, p, s: (2 * s * p * n, (n + 1) * p), "are left out here"),
    ("06.4", lambda n, p, s: (2 * s * p * n, (n + s) * p), "are left out here"),
    ("06.4", lambda n, p, s: (2 * s * p * n, (n + s - 1) * p), "are left out here"),
    ("06.4", lambda n, p, s: (8 * s * p * n, 4 * p * n), "one byte here"),
    ("06.4", lambda n, p, s: ((s + 1) * p * n, p * n), "in full means in full"),
    ("06.4", lambda n, p, s: memory(n, p, s)[::-1], "in this order"),
    ("06.4", lambda n, p, s: (8 * p * n, p * n), "does not change with `stack`"),
    ("06.4", lambda n, p, s: 2 * s * p * n, "return 2 things"),
    ("06.4", lambda n, p, s: (2 * s * p, p), "multiply by their number"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words
