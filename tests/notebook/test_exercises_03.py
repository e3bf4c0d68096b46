"""The checks of notebook 03's exercises name the mistake that was made."""

import numpy as np
import pytest

from per_tutorial.notebook.exercises import check


def raw(P, indices, beta):
    return (len(P) * P[indices]) ** -beta


def importance_weights(P, indices, beta):
    weights = raw(P, indices, beta)
    return weights / weights.max()


def leaves(td_errors, largest_priority, alpha, epsilon):
    priorities = np.abs(td_errors) + epsilon
    return priorities**alpha, max(largest_priority, priorities.max()) ** alpha


def with_newcomer(newcomer):
    """`leaves` with another rule for the newcomer, given (priorities, largest, alpha)."""

    def wrong(td_errors, largest, alpha, epsilon):
        priorities = np.abs(td_errors) + epsilon
        return priorities**alpha, newcomer(priorities, largest, alpha)

    return wrong


def with_priority(priority):
    """`leaves` with another priority, given (td_errors, epsilon)."""
    return lambda delta, largest, alpha, epsilon: (priority(delta, epsilon) ** alpha, 0.0)


def line(step, steps, beta_start):
    return min(1.0, beta_start + (1 - beta_start) * step / steps)


def compounding(step, steps, beta):
    for k in range(1, step + 1):
        beta += k / steps * (1 - beta)
    return beta


def accumulated():
    """β that rises with each call, whatever the step."""
    beta = [0.4]

    def beta_at(step, steps, beta_start):
        beta[0] = min(1.0, beta[0] + (1 - beta_start) / steps)
        return beta[0]

    return beta_at


def loss(td_errors, weights):
    return (weights[:, 0] * 0.5 * td_errors**2).mean()


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("03.1", importance_weights),
        ("03.1", lambda P, i, beta: (P[i] / P[i].min()) ** -beta),  # N cancels
        ("03.2", leaves),
        ("03.3", line),
        ("03.4", loss),
        ("03.4", lambda delta, w: float(loss(delta, w))),
    ],
)
def test_right_answers_pass(capsys, name, answer):
    assert check(name, answer) is True, capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("03.1", raw, "now divide by the largest"),
        ("03.1", lambda P, i, b: raw(P, i, b) / raw(P, np.arange(40), b).max(), "whole memory"),
        ("03.1", lambda P, i, b: importance_weights(P, i, b)[:, None], "(batch, 1)"),
        ("03.1", lambda P, i, b: importance_weights(P, i, -b), "upside down"),
        ("03.1", lambda P, i, b: importance_weights(P, i, 1.0), "Where is the exponent"),
        ("03.1", lambda P, i, b: raw(P, i, b) / raw(P, i, b).sum(), "divided by the sum"),
        ("03.1", lambda P, i, b: raw(P, i, b) / raw(P, i, b).min(), "divided by the smallest"),
        ("03.1", lambda P, i, b: np.ones(len(i)), "corrects nothing"),
        ("03.1", lambda P, i, b: 1.0, "one weight for each index"),
        ("03.1", lambda P: P, "stopped with TypeError"),
        ("03.2", with_newcomer(lambda p, largest, a: max(largest**a, (p**a).max()) ** a), "twice"),
        ("03.2", with_newcomer(lambda p, largest, a: max(largest, p.max())), "the leaves hold p^α"),
        ("03.2", with_newcomer(lambda p, largest, a: p.max() ** a), "*so far*"),
        ("03.2", with_newcomer(lambda p, largest, a: largest**a), "new largest priority"),
        ("03.2", with_newcomer(lambda p, largest, a: 1.0), "the newcomer's is"),
        ("03.2", with_priority(lambda delta, e: np.abs(delta)), "ε is missing"),
        ("03.2", with_priority(lambda delta, e: delta**2 + e), "not the loss"),
        ("03.2", with_priority(lambda delta, e: 0.5 * delta**2 + e), "not the loss"),
        ("03.2", lambda delta, largest, a, e: (np.abs(delta) + e, 0.0), "the leaves hold p^α"),
        ("03.2", lambda delta, largest, a, e: (1.0, 1.0), "one leaf for each TD error"),
        ("03.3", accumulated(), "it accumulates"),
        ("03.3", compounding, "after a tenth of the steps"),
        ("03.3", lambda step, steps, b: b + (1 - b) * step / steps, "stop at 1"),
        ("03.3", lambda step, steps, b: b + step / steps, "ends above 1"),
        ("03.3", lambda step, steps, b: step / steps, "not beta_start"),
        ("03.3", lambda step, steps, b: min(1.0, b + step / steps), "half-way"),
        ("03.4", lambda delta, w: (w * 0.5 * delta**2).mean(), "a table of (batch, batch)"),
        ("03.4", lambda delta, w: (w * 0.5 * delta**2).sum(), "a table of (batch, batch)"),
        ("03.4", lambda delta, w: w.mean() * (0.5 * delta**2).mean(), "the mean loss"),
        ("03.4", lambda delta, w: w[:, 0] * 0.5 * delta**2, "a single number"),
        ("03.4", lambda delta, w: 2 * loss(delta, w), "the ½ is missing"),
        ("03.4", lambda delta, w: 4 * loss(delta, w), "take the mean"),
        ("03.4", lambda delta, w: (0.5 * delta**2).mean(), "where are the weights"),
        ("03.4", lambda delta, w: (0.5 * (w[:, 0] * delta) ** 2).mean(), "square the weight"),
    ],
)
def test_wrong_answers_are_told_their_mistake(capsys, name, answer, mistake):
    assert check(name, answer) is False
    assert mistake in capsys.readouterr().out


def test_a_nan_leaf_is_told_its_cause(capsys):
    with np.errstate(invalid="ignore"):
        assert check("03.2", with_priority(lambda delta, epsilon: delta + epsilon)) is False
    assert "|δ|" in capsys.readouterr().out


def test_an_answer_that_changes_what_it_is_given_is_told_so(capsys):
    def in_place(P, indices, beta):
        P *= len(P)
        return P[indices] ** -beta

    assert check("03.1", in_place) is False
    assert "it changes P" in capsys.readouterr().out
