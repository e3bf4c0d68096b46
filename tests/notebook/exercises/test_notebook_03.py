"""The exercises of notebook 03: right answers of any form pass, wrong ones hear their mistake."""

import numpy as np
import pytest
import torch


def raw(P, indices, beta):
    return (len(P) * P[indices]) ** -beta


def importance_weights(P, indices, beta):
    weights = raw(P, indices, beta)
    return weights / weights.max()


def weights_one_by_one(P, indices, beta):
    smallest = min(P[i] for i in indices)
    return [(P[i] / smallest) ** -beta for i in indices]


def P_in_place(P, indices, beta):
    P *= len(P)
    return P[indices] ** -beta


def leaves(td_errors, largest_priority, alpha, epsilon):
    priorities = np.abs(td_errors) + epsilon
    return priorities**alpha, max(largest_priority, priorities.max()) ** alpha


def with_newcomer(newcomer):
    """`leaves` with another rule for the newcomer, given (priorities, largest, alpha)."""

    def answer(td_errors, largest, alpha, epsilon):
        priorities = np.abs(td_errors) + epsilon
        return priorities**alpha, newcomer(priorities, largest, alpha)

    return answer


def with_priority(priority):
    """`leaves` with another priority, given (td_errors, epsilon)."""
    return lambda delta, largest, alpha, epsilon: (priority(delta, epsilon) ** alpha, 0.0)


def leaves_one_by_one(td_errors, largest, alpha, epsilon):
    for error in td_errors.tolist():
        largest = max(largest, abs(error) + epsilon)
    return [(abs(error) + epsilon) ** alpha for error in td_errors], largest**alpha


def leaves_in_place(td_errors, largest, alpha, epsilon):
    np.abs(td_errors, out=td_errors)
    return leaves(td_errors, largest, alpha, epsilon)


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


def with_terms(terms):
    return lambda td_errors, weights: terms(td_errors, weights[:, 0]).mean()


def summed_one_by_one(td_errors, weights):
    total = 0.0
    for error, weight in zip(td_errors, weights, strict=True):
        total = total + weight[0] * error * error / 2
    return total / len(td_errors)


def weights_in_place(td_errors, weights):
    weights /= weights.max()
    return loss(td_errors, weights)


RIGHT = [
    ("03.1", importance_weights),
    ("03.1", lambda P, i, beta: (P[i] / P[i].min()) ** -beta),
    ("03.1", weights_one_by_one),
    ("03.1", lambda P, i, beta: tuple(importance_weights(P, i, beta).astype(np.float32))),
    ("03.1", lambda P, i, beta: importance_weights(torch.tensor(P), torch.tensor(i), beta)),
    ("03.2", leaves),
    ("03.2", leaves_one_by_one),
    ("03.2", lambda *given: list(leaves(*given))),
    ("03.2", lambda delta, *rest: leaves(torch.tensor(delta), *rest)),
    ("03.2", lambda delta, *rest: leaves(delta.astype(np.float32), *rest)),
    ("03.3", line),
    ("03.3", lambda step, steps, b: 1 - (1 - b) * max(0, steps - step) / steps),
    ("03.3", lambda step, steps, b: np.interp(step, [0, steps], [b, 1])),
    ("03.3", lambda step, steps, b: np.float32(np.clip(b + (1 - b) * (step / steps), 0, 1))),
    ("03.4", loss),
    ("03.4", lambda delta, w: (w.squeeze() * delta.pow(2) / 2).mean()),
    ("03.4", lambda delta, w: 0.5 * (w * delta[:, None] ** 2).mean()),
    ("03.4", lambda delta, w: w.flatten() @ delta**2 / (2 * len(delta))),
    ("03.4", lambda delta, w: 0.5 * torch.mean(torch.mul(w.T, delta.square()))),
    ("03.4", summed_one_by_one),
]

WRONG = [
    ("03.1", raw, "now divide by the largest"),
    ("03.1", lambda P, i, b: raw(P, i, b) / raw(P, slice(None), b).max(), "whole memory"),
    ("03.1", lambda P, i, b: importance_weights(P, i, b)[:, None], "(5, 1), a column"),
    ("03.1", lambda P, i, b: importance_weights(P, slice(None), b), "take P[indices]"),
    ("03.1", lambda P, i, b: importance_weights(P, i, -b), "upside down"),
    ("03.1", lambda P, i, b: importance_weights(P, i, 1.0), "Where is the exponent"),
    ("03.1", lambda P, i, b: importance_weights(P, i, 0.5), "does not change with `beta`"),
    ("03.1", lambda P, i, b: raw(P, i, b) / raw(P, i, b).sum(), "divided by the sum"),
    ("03.1", lambda P, i, b: raw(P, i, b) / raw(P, i, b).min(), "divided by the smallest"),
    ("03.1", lambda P, i, b: np.ones(len(i)), "corrects nothing"),
    ("03.1", lambda P, i, b: P[i] / P[i].max(), "those are the probabilities"),
    ("03.1", lambda P, i, b: np.minimum(raw(P, i, b), 1), "cut off at 1"),
    ("03.1", lambda P, i, b: (len(i) * P[i]) ** -b, "N is the number of all stored transitions"),
    ("03.1", lambda P, i, b: importance_weights(P, np.unique(i), b), "drawn twice"),
    ("03.1", lambda P, i, b: b / (len(P) * P[i]), "the exponent, not a factor"),
    ("03.1", lambda P, i, b: b / P[i] / (b / P[i]).max(), "As a factor, β cancels"),
    ("03.1", lambda P, i, b: 1.0, "should have 5 numbers; yours has 1"),
    ("03.1", lambda P: P, "(P, indices, beta): keep these arguments"),
    ("03.1", P_in_place, "it changes `P`"),
    (
        "03.2",
        with_newcomer(lambda p, largest, a: max(largest**a, (p**a).max()) ** a),
        "applied twice",
    ),
    (
        "03.2",
        with_newcomer(lambda p, largest, a: max(largest, (p**a).max()) ** a),
        "compare p with p",
    ),
    ("03.2", with_newcomer(lambda p, largest, a: max(largest, p.max())), "the leaves hold p^α"),
    ("03.2", with_newcomer(lambda p, largest, a: p.max() ** a), "*so far*"),
    ("03.2", with_newcomer(lambda p, largest, a: largest**a), "new largest priority"),
    ("03.2", with_newcomer(lambda p, largest, a: max(largest, p[0]) ** a), "not only the first"),
    ("03.2", with_newcomer(lambda p, largest, a: max(largest, p[-1]) ** a), "not only the last"),
    ("03.2", with_newcomer(lambda p, largest, a: 1.0), "not always 1"),
    ("03.2", with_newcomer(lambda p, largest, a: max(1.0, largest, *p) ** a), "not a lower limit"),
    ("03.2", with_newcomer(lambda p, largest, a: max(largest, *p) ** 0.6), "with `alpha`"),
    ("03.2", with_newcomer(lambda p, largest, a: p), "a single number"),
    (
        "03.2",
        lambda d, m, a, e: (leaves(d, m, a, e)[0], max(m, max(d) + e) ** a),
        "take |δ|, errors",
    ),
    ("03.2", with_priority(lambda delta, e: np.abs(delta)), "ε is missing"),
    ("03.2", with_priority(lambda delta, e: delta**2 + e), "not the loss"),
    ("03.2", with_priority(lambda delta, e: 0.5 * delta**2 + e), "not the loss"),
    ("03.2", with_priority(lambda delta, e: delta + e), "a negative number raised to α is NaN"),
    ("03.2", with_priority(lambda delta, e: np.abs(delta + e)), "inside the bars"),
    (
        "03.2",
        lambda delta, largest, a, e: (np.abs(delta) ** a + e, 0.0),
        "before it is raised to α",
    ),
    ("03.2", lambda delta, largest, a, e: (np.abs(delta) + e, 0.0), "the leaves hold p^α"),
    ("03.2", lambda delta, largest, a, e: leaves(delta, largest, 0.6, e), "with `alpha`"),
    ("03.2", lambda delta, largest, a, e: leaves(delta, largest, a, 0.01), "with `epsilon`"),
    ("03.2", lambda delta, largest, a, e: (1.0, 1.0), "should have 4 numbers; yours has 1"),
    ("03.2", lambda *given: leaves(*given)[0], "return 2 things"),
    ("03.2", lambda *given: leaves(*given)[1], "yours is one"),
    ("03.2", lambda *given: leaves(*given)[::-1], "in this order"),
    ("03.2", lambda *given: dict(enumerate(leaves(*given))), "as a tuple"),
    ("03.2", leaves_in_place, "it changes `td_errors`"),
    ("03.3", accumulated(), "it accumulates"),
    ("03.3", compounding, "rises too fast"),
    ("03.3", lambda step, steps, b: b + (1 - b) * step / steps, "stop there"),
    ("03.3", lambda step, steps, b: b + step / steps, "ends above 1"),
    ("03.3", lambda step, steps, b: min(1.0, step / steps), "not beta_start"),
    ("03.3", lambda step, steps, b: min(1.0, b + step / steps), "too early"),
    ("03.3", lambda step, steps, b: max(1.0, b + (1 - b) * step / steps), "`min` stops it at 1"),
    ("03.3", lambda step, steps, b: min(1, b + (1 - b) * (step // steps)), "drops the fraction"),
    ("03.3", lambda step, steps, b: line(step, steps, 0.4), "does not change with `beta_start`"),
    ("03.3", lambda step, steps, b: line(step, 1000, b), "does not change with `steps`"),
    ("03.3", lambda *given: line(*given) + (given[0] == 500) / 2e4, "be 0.7, yours is 0.70005"),
    (
        "03.3",
        lambda *given: 1.0 if given[0] >= given[1] - 1 else line(*given),
        "one step too early",
    ),
    ("03.3", lambda step, steps, b: line(step, steps - 1, b), "one step too early"),
    ("03.3", lambda step, steps, b: line(step + 1, steps, b), "a step ahead"),
    ("03.3", lambda step, steps, b: line(step % steps, steps, b), "starts again"),
    ("03.3", lambda *given: round(line(*given), 2), "rounded"),
    ("03.3", lambda step, steps, b: 1.0, "it is 1 from the first step"),
    ("03.3", lambda step, steps, b: [line(step, steps, b)], "a single number"),
    ("03.4", lambda delta, w: (w * 0.5 * delta**2).mean(), "a table of (batch, batch)"),
    ("03.4", lambda delta, w: (w * 0.5 * delta**2).sum(), "a table of (batch, batch)"),
    ("03.4", lambda delta, w: w.mean() * (0.5 * delta**2).mean(), "the mean loss"),
    (
        "03.4",
        lambda delta, w: w.mean() * (0.5 * delta**2).mean(),
        "Weigh each loss before the mean",
    ),
    ("03.4", with_terms(lambda delta, w: w * 0.5 * delta.abs()), "square the error"),
    ("03.4", lambda delta, w: w[:, 0] * 0.5 * delta**2, "a single number"),
    ("03.4", lambda delta, w: 2 * loss(delta, w), "the ½ is missing"),
    ("03.4", lambda delta, w: len(w) * loss(delta, w), "take the mean"),
    ("03.4", lambda delta, w: loss(delta, w) / w.mean(), "not by the sum of the weights"),
    ("03.4", lambda delta, w: (0.5 * delta**2).mean(), "where are the weights"),
    ("03.4", with_terms(lambda delta, w: 0.5 * (w * delta) ** 2), "square the weight"),
    ("03.4", with_terms(lambda delta, w: w * delta.abs()), "the loss has ½δ²"),
    ("03.4", lambda delta, w: loss(delta, w).item(), "no gradient flows back"),
    ("03.4", lambda delta, w: float(loss(delta, w)), "no gradient flows back"),
    ("03.4", lambda delta, w: loss(delta, w).detach(), "no gradient flows back"),
    ("03.4", lambda delta, w: loss(delta.detach(), w), "no gradient flows back"),
    ("03.4", with_terms(lambda d, w: w * 0.5 * d * d.detach()), "the gradient is not"),
    ("03.4", lambda delta, w: np.mean(w.numpy()[:, 0] * 0.5 * delta.numpy() ** 2), "leaves torch"),
    ("03.4", weights_in_place, "it changes `weights`"),
    ("03.4", lambda delta, w: loss(delta.square_(), w), "it changes `td_errors`"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words
