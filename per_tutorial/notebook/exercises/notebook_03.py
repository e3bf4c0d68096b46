"""Notebook 03, prioritised replay: weights, leaves, β, the weighted loss."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from per_tutorial.notebook.checking import checks
from per_tutorial.notebook.checking.answers import Hint, cases_of, like, part
from per_tutorial.notebook.checking.comparing import Function, compare, remembers
from per_tutorial.notebook.checking.tensors import check_gradient, tensors

Array = NDArray[np.float64]

# 03.1: the weights of a minibatch ----------------------------------------------------------------


def raw_weights(P: Array, indices: NDArray[np.int64], beta: float) -> Array:
    return (len(P) * P[indices]) ** -beta


def importance_weights(P: Array, indices: NDArray[np.int64], beta: float) -> Array:
    weights = raw_weights(P, indices, beta)
    return weights / weights.max()


def divided_by(divisor: Function) -> Function:
    """The weights divided by something else, given (weights, P, beta)."""

    def wrong(P, indices, beta):
        weights = raw_weights(P, indices, beta)
        return weights / divisor(weights, P, beta)

    return wrong


def of_all(P: Array, beta: float) -> Array:
    return raw_weights(P, np.arange(len(P)), beta)


WEIGHT_MISTAKES = [
    (raw_weights, "right so far; now divide by the largest of them."),
    (lambda P, i, beta: P[i] ** -beta, "right so far; now divide by the largest of them."),
    (lambda P, i, beta: np.minimum(raw_weights(P, i, beta), 1.0),
     "cut off at 1, all large weights become the same: divide by the largest of them instead."),
    (lambda P, i, beta: raw_weights(P, i, beta) * (len(P) / len(i)) ** beta,
     "N is the number of all stored transitions, `len(P)`; then divide by the largest weight."),
    (lambda P, i, beta: beta / (len(P) * P[i]), "β is the exponent, not a factor."),
    (divided_by(lambda w, P, beta: of_all(P, beta).max()),
     "you divide by the largest weight of the whole memory: one transition that is hardly ever "
     "drawn makes all others tiny. Take the largest of the minibatch."),
    (divided_by(lambda w, P, beta: of_all(P, beta).sum()),
     "divided by the sum over the whole memory: divide by the largest of the minibatch."),
    (divided_by(lambda w, P, beta: w.min()),
     "divided by the smallest: now all weights are 1 or more. Divide by the largest."),
    (divided_by(lambda w, P, beta: w.sum()),
     "divided by the sum: now they sum to 1. Divide by the largest."),
    (divided_by(lambda w, P, beta: w.mean()),
     "divided by the mean: divide by the largest, so that no weight is above 1."),
    (divided_by(lambda w, P, beta: w[0]), "divided by the first of them: divide by the largest."),
    (divided_by(lambda w, P, beta: w**2 / w.max()),
     "upside down: the largest weight divided by each weight."),
    (lambda P, i, beta: importance_weights(P, i, -beta),
     "upside down: what is drawn often must count *less*, so the exponent is −β."),
    (lambda P, i, beta: importance_weights(P, i, 1.0),
     "that is the full correction, whatever β is. Where is the exponent? (As a factor, β cancels "
     "in the division.)"),
    (lambda P, i, beta: importance_weights(P, i, 1 - beta), "the exponent is −β, not β − 1."),
    (lambda P, i, beta: np.ones(len(i)), "all weights are 1: that corrects nothing."),
    (lambda P, i, beta: P[i] / P[i].max(),
     "those are the probabilities: what is drawn often must count *less*."),
    (lambda P, i, beta: importance_weights(P, np.arange(len(i)), beta),
     "those are the weights of the first transitions; `indices` says which to take."),
    (lambda P, i, beta: importance_weights(P, np.sort(i), beta),
     "sorted: leave them in the order of `indices`."),
]  # fmt: skip


@checks("03.1")
def check_weights(answer: object) -> str | None:
    smooth, rough = np.arange(1.0, 41.0) ** 0.6, np.array([0.5, 3.0, 0.02, 7.5, 1.2, 2.2, 0.9])
    rows = [(smooth, [7, 31, 12, 7, 25], beta) for beta in (0.5, 0.4, 0.8)]
    rows += [(rough, [4, 0, 3, 6], beta) for beta in (0.3, 1.0)]
    cases = cases_of("P indices beta", [(P / P.sum(), np.array(i), beta) for P, i, beta in rows])

    def read(result: Any, right: Array) -> Array:
        if np.shape(result) in ((40,), (7,)):
            raise Hint(
                "one weight for each index, not for each stored transition: take P[indices]."
            )
        if np.shape(result) == (4,) and len(right) == 5:
            raise Hint(
                "a transition that was drawn twice has a place for each draw: five indices, five "
                "weights."
            )
        return like(result, right)

    return compare(answer, importance_weights, cases, WEIGHT_MISTAKES, read=read)


# 03.2: what the tree gets ------------------------------------------------------------------------


def new_leaves(td_errors: Array, largest_priority: float, alpha: float, epsilon: float) -> Array:
    return (np.abs(td_errors) + epsilon) ** alpha


def newcomer_leaf(td_errors: Array, largest: float, alpha: float, epsilon: float) -> float:
    return max(largest, (np.abs(td_errors) + epsilon).max()) ** alpha


def with_priority(priority: Function) -> Function:
    """`new_leaves` with another priority, given (td_errors, epsilon)."""
    return lambda delta, largest, alpha, epsilon: priority(delta, epsilon) ** alpha


def huber(delta: Array) -> Array:
    size = np.abs(delta)
    return np.where(size <= 1, 0.5 * size**2, size - 0.5)


LOSS = (
    "the priority is |δ|, not the loss: of small errors the loss is the square, so α would count "
    "twice."
)

LEAF_MISTAKES = [
    (with_priority(lambda d, e: d + e),
     "the priority is the *size* of the error, |δ|: a negative number raised to α is NaN."),
    (with_priority(lambda d, e: d),
     "the priority is the *size* of the error, |δ| + ε: a negative number raised to α is NaN."),
    (with_priority(lambda d, e: np.abs(d + e)),
     "ε is added to the size, |δ| + ε: inside the bars it makes negative errors smaller."),
    (with_priority(lambda d, e: np.maximum(d, 0.0) + e),
     "errors below zero count as much as those above: the priority is the *size*, |δ|."),
    (with_priority(lambda d, e: np.abs(d)),
     "ε is missing: a transition without an error would never be drawn again."),
    (with_priority(lambda d, e: np.maximum(np.abs(d), e)),
     "ε is added to |δ|; it is no lower limit."),
    *((with_priority(lambda d, e, loss=loss: loss(d) + e), LOSS)
      for loss in (lambda d: d**2, lambda d: 0.5 * d**2, huber)),
    (lambda d, m, a, e: np.abs(d) ** a + e,
     "ε belongs to the priority, before it is raised to α: (|δ| + ε)^α."),
    (lambda d, m, a, e: np.abs(d) + e, "these are the priorities p; the leaves hold p^α."),
    (lambda d, m, a, e: new_leaves(d, m, a * a, e), "α is applied twice."),
    (lambda d, m, a, e: new_leaves(d, m, a, e) / new_leaves(d, m, a, e).sum(),
     "the leaves are not divided by their sum: the tree knows its own total."),
    (lambda d, m, a, e: np.full(len(d), max(m, new_leaves(d, m, 1, e).max()) ** a),
     "a replayed transition gets its own priority, not the largest one."),
    (with_priority(lambda d, e: d**2 + 2 * e * np.abs(d) + e * e),
     "the exponent is α, not 2α: the size of an error is not squared."),
]  # fmt: skip

SO_FAR = "the largest priority *so far* counts, not that of this minibatch alone."
MINIBATCH_FIRST = "this minibatch may have brought a new largest priority: look at it first."

NEWCOMER_MISTAKES = [
    (lambda d, m, a, e: newcomer_leaf(d, m, a * a, e),
     "α is applied twice there: the largest leaf is p^α already. Keep the largest p, and raise it "
     "once."),
    (lambda d, m, a, e: newcomer_leaf(d, m, 1.0, e),
     "it is p, but the leaves hold p^α."),
    *((lambda d, m, a, e, c=c: max(m, new_leaves(d, m, a, e).max()) ** c(a),
       "you compare the largest p so far with new leaves, which are p^α: compare p with p, then "
       "raise the larger one.") for c in (lambda a: a, lambda a: 1.0)),
    (lambda d, m, a, e: new_leaves(d, m, a, e).max(), SO_FAR),
    (lambda d, m, a, e: m**a, MINIBATCH_FIRST),
    (lambda d, m, a, e: m, MINIBATCH_FIRST),
    (lambda d, m, a, e: (m + e) ** a, MINIBATCH_FIRST),
    (lambda d, m, a, e: (max(m, np.abs(d).max()) + e) ** a,
     "ε is in the largest priority already; it is not added again."),
    (lambda d, m, a, e: max(m, np.abs(d).max()) ** a,
     "a new largest priority is |δ| + ε; you compare without ε."),
    (lambda d, m, a, e: newcomer_leaf(d[:1], m, a, e),
     "any error of the minibatch may bring the largest priority, not only the first."),
    (lambda d, m, a, e: newcomer_leaf(d[-1:], m, a, e),
     "any error of the minibatch may bring the largest priority, not only the last."),
    (lambda d, m, a, e: max(m, d.max() + e) ** a,
     "the largest error in *size* brings the largest priority: take |δ|, errors may be negative."),
    (lambda d, m, a, e: max(m, (np.abs(d) + e).mean()) ** a,
     "you compare with the mean of the new priorities; compare with the largest."),
    (lambda d, m, a, e: max(m, (np.abs(d) + e).sum()) ** a,
     "you compare with the sum of the new priorities; compare with the largest."),
    (lambda d, m, a, e: min(m, (np.abs(d) + e).max()) ** a,
     "the larger of the two counts, not the smaller."),
    (lambda d, m, a, e: max(1.0, newcomer_leaf(d, m, a, e)),
     "1 is where the largest priority starts in our code, not a lower limit: take the one given."),
    (lambda d, m, a, e: 1.0,
     "it is not always 1 but the largest priority so far, raised to α."),
]  # fmt: skip


@checks("03.2")
def check_leaves(answer: object) -> str | None:
    four, three = np.array([0.5, -2.0, 0.0, 1.25]), np.array([0.3, -0.8, 0.1])
    five = np.array([0.7, 0.4, -0.2, 3.0, -0.6])
    # The largest error is never the first or the last of its minibatch, and once it is negative.
    rows = [(four, 1.5, 0.6, 0.01), (three, 4.0, 0.6, 0.01), (four, 1.5, 0.8, 0.01),
            (four, 1.5, 0.6, 0.2), (five, 2.0, 0.5, 0.1), (five, 0.5, 0.5, 0.1),
            (four, 2.05, 0.7, 0.1), (three, 0.4, 0.7, 0.05)]  # fmt: skip
    cases = cases_of("td_errors largest_priority alpha epsilon", rows)
    things = ["the leaves of the replayed transitions", "the newcomer's leaf"]

    def replayed(result: Any, right: Array) -> Array:
        return like(part(result, 0, things, right), right)

    def newcomer(result: Any, right: float) -> Array:
        return like(part(result, 1, things), right)

    first = compare(answer, new_leaves, cases, LEAF_MISTAKES, read=replayed)
    if first:
        return first
    second = compare(answer, newcomer_leaf, cases, NEWCOMER_MISTAKES, read=newcomer)
    return second and f"the replayed leaves are right, the newcomer's is not: {second}"


# 03.3: β as a function of the step ---------------------------------------------------------------


def beta_at(step: int, steps: int, beta_start: float) -> float:
    return min(1.0, beta_start + (1 - beta_start) * step / steps)


def compounding(step: int, steps: int, beta: float) -> float:
    """Each step starts from the β of the step before, not from `beta_start`."""
    for k in range(1, min(step, steps) + 1):
        beta += k / steps * (1 - beta)
    return beta


BETA_MISTAKES = [
    (lambda s, n, b: b + (1 - b) * s / n, "after the last step it goes on, above 1: stop there."),
    (lambda s, n, b: b + s / n,
     "it rises by 1 in all, and ends above 1; what is left above beta_start is less."),
    (lambda s, n, b: min(1.0, b + s / n),
     "it is at 1 too early: what is left above beta_start is less than 1, and that is what it "
     "rises by in all the steps."),
    (lambda s, n, b: min(1.0, s / n), "at step 0 it is 0, not beta_start."),
    (lambda s, n, b: s / n, "at step 0 it is 0, not beta_start."),
    (lambda s, n, b: max(1.0, b + (1 - b) * s / n),
     "`max` keeps it at 1 or more; `min` stops it at 1."),
    (lambda s, n, b: b if s < n else 1.0,
     "that is one jump, not a line: `//` drops the fraction, `/` keeps it."),
    (lambda s, n, b: b * (1 - min(1.0, s / n)), "it falls to 0; β rises to 1."),
    (lambda s, n, b: b + 1 - beta_at(s, n, b), "upside down: it falls from 1 to beta_start."),
    (lambda s, n, b: b ** (1 - min(1.0, s / n)),
     "the ends are right, but between them it rises by the same *factor* at every step: that is "
     "no line."),
    (compounding,
     "each step adds to the β of the step before, so it rises too fast: start from beta_start "
     "every time."),
    (lambda s, n, b: 1.0, "it is 1 from the first step; it starts at beta_start."),
    *((wrong, "it reaches 1 one step too early: at step `steps`, not at `steps - 1`.") for wrong in (
        lambda s, n, b: 1.0 if s >= n - 1 else beta_at(s, n, b),
        lambda s, n, b: beta_at(s, n - 1, b),
    )),
    (lambda s, n, b: beta_at(s + 1, n, b),
     "it is a step ahead: at step 0 it should be beta_start itself."),
    (lambda s, n, b: beta_at(s % n, n, b),
     "after the last step it starts again: from `steps` on it stays at 1."),
    (lambda s, n, b: round(beta_at(s, n, b), 2), "rounded, the line becomes a staircase."),
]  # fmt: skip


@checks("03.3")
def check_beta(answer: object) -> str | None:
    names = "step steps beta_start"
    if remembers(answer, cases_of(names, [(step, 100, 0.4) for step in range(101)])):
        return (
            "asked for the same step again it gives another answer: it accumulates. β is a "
            "function of the step and remembers nothing."
        )
    rows = [(step, 1000, 0.4) for step in (0, 1, 100, 500, 900, 1000, 1001, 3000)]
    rows += [(step, 1000, 0.6) for step in (0, 100, 500, 900, 1000)]
    rows += [(step, 2000, 0.4) for step in (100, 500, 1500, 2000)]
    rows += [(35, 70, 0.0), (35, 70, 1.0), (69, 70, 0.0), (999, 1000, 0.4)]
    return compare(answer, beta_at, cases_of(names, rows), BETA_MISTAKES)


# 03.4: the loss of a minibatch -------------------------------------------------------------------


def weighted_loss(td_errors: Tensor, weights: Tensor) -> Tensor:
    return (weights[:, 0] * 0.5 * td_errors**2).mean()


def with_terms(terms: Function, reduce: Function = torch.mean) -> Function:
    """`weighted_loss` with other terms, given (δ, w), both (batch,)."""
    return lambda td_errors, weights: reduce(terms(td_errors, weights[:, 0]))


TABLE = "(batch,) times (batch, 1) has made a table of (batch, batch)."

LOSS_MISTAKES = [
    (lambda d, w: (w * 0.5 * d**2).mean(),
     "that is the mean weight times the mean loss. Weigh each loss before the mean. (If you did, "
     f"{TABLE} Bring both to one shape first.)"),
    (lambda d, w: (w * 0.5 * d**2).sum(), f"{TABLE} Bring both to one shape first."),
    (lambda d, w: (w * d**2).mean(), f"{TABLE} Bring both to one shape. The ½ is missing, too."),
    (lambda d, w: (0.5 * (w * d) ** 2).mean(), f"{TABLE} And the weight is not squared."),
    (with_terms(lambda d, w: w * d**2), "the ½ is missing."),
    (with_terms(lambda d, w: w * d**2, torch.sum),
     "that is the sum over the minibatch, without the ½; take the mean."),
    (with_terms(lambda d, w: w * 0.5 * d**2, torch.sum),
     "that is the sum over the minibatch; take the mean."),
    (with_terms(lambda d, w: w * 0.5 * d**2 / w.sum(), torch.sum),
     "divide by the size of the minibatch, not by the sum of the weights."),
    (with_terms(lambda d, w: w / w.max() * 0.5 * d**2),
     "the weights are used as they come; they are not divided by the largest again."),
    (with_terms(lambda d, w: 0.5 * d**2), "where are the weights?"),
    (with_terms(lambda d, w: 0.5 * (w * d) ** 2),
     "you square the weight, too: it multiplies ½δ², not δ."),
    (with_terms(lambda d, w: w * d.abs()), "that is the mean of w·|δ|; the loss has ½δ²."),
    (with_terms(lambda d, w: w * 0.5 * d.abs()), "that is the mean of w·½|δ|; square the error."),
    (with_terms(lambda d, w: w * d), "that is the mean of w·δ; the loss has ½δ²."),
    (with_terms(lambda d, w: w * 0.5 * d**2, torch.max), "that is the largest; take the mean."),
    (with_terms(lambda d, w: w * torch.where(d.abs() <= 1, 0.5 * d**2, d.abs() - 0.5)),
     "that is the Huber loss; here it is ½δ² for large errors, too."),
    (with_terms(lambda d, w: 0.5 * d**2 / w), "you divide by the weights; multiply."),
]  # fmt: skip


@checks("03.4")
def check_loss(answer: object) -> str | None:
    batches = [
        ([0.1, -0.2, 0.3, 4.0], [0.9, 0.8, 0.5, 0.1]),
        ([2.0, -0.7, 0.4, 1.2, -3.0, 0.05], [0.2, 0.6, 0.9, 0.35, 0.15, 0.7]),
    ]
    rows = [(torch.tensor(errors), torch.tensor(weights)[:, None]) for errors, weights in batches]
    cases = cases_of("td_errors weights", rows)
    trained = ["td_errors"]
    mistake = compare(answer, weighted_loss, cases, LOSS_MISTAKES, give=tensors(trained))
    if mistake is None:
        check_gradient(answer, weighted_loss, cases[0], trained)
    return mistake
