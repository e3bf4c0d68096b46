"""Notebook 03, prioritised replay: weights, leaves, β, the weighted loss."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from per_tutorial.notebook.checking.comparing import Part
from per_tutorial.notebook.checking.declaring import Array, Function, function_exercise

# 03.1: the weights of a minibatch -----------------------------------------------------------------


def raw_weights(P: Array, indices: NDArray[np.int64], beta: float) -> Array:
    return (len(P) * P[indices]) ** -beta


def importance_weights(
    P: Array,
    indices: NDArray[np.int64],
    beta: float,
    divisor: Function = lambda weights, P, beta: weights.max(),
) -> Array:
    weights = raw_weights(P, indices, beta)
    return weights / divisor(weights, P, beta)


def of_all(P: Array, beta: float) -> Array:
    return raw_weights(P, np.arange(len(P)), beta)


def one_for_each_draw(result: Any, right: Array) -> str | None:
    if np.shape(result) in ((40,), (7,)):
        return "one weight for each index, not for each stored transition: take P[indices]."
    if np.shape(result) == (4,) and len(right) == 5:
        return (
            "a transition that was drawn twice has one weight per draw: five indices, five weights."
        )
    return None


SMOOTH, ROUGH = np.arange(1.0, 41.0) ** 0.6, np.array([0.5, 3.0, 0.02, 7.5, 1.2, 2.2, 0.9])
RARE = np.array([0.5, 3e-7, 2.0, 4e-4, 1e-5, 0.03, 2e-3])
SMALL = np.geomspace(1.0, 1e4, 2_000)
MEMORIES = [
    *((SMOOTH, [7, 31, 12, 7, 25], beta) for beta in (0.5, 0.4, 0.8)),
    *((ROUGH, [4, 0, 3, 6], beta) for beta in (0.3, 1.0)),
    *((RARE, indices, beta) for indices in ([0, 1, 3, 4], [3, 0, 6, 5]) for beta in (0.4, 1.0)),
]

function_exercise(
    "03.1", importance_weights, "P indices beta",
    [(P / P.sum(), np.array(indices), beta) for P, indices, beta in MEMORIES], [
    (raw_weights, lambda P, i, beta: P[i] ** -beta,
     "right so far; now divide by the largest of them."),
    (lambda P, i, beta: raw_weights(P, i, -beta), lambda P, i, beta: P[i] ** beta,
     lambda P, i, beta: len(P) * P[i] ** beta, lambda P, i, beta: (P[i] / len(P)) ** beta,
     "upside down: what is drawn often must count *less*, so the exponent is −β. Then divide by "
     "the largest of them."),
    (*(lambda P, i, beta, least=least: importance_weights(np.maximum(P, least), i, beta)
       for least in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)),
     "small probabilities are cut off, and what is hardly ever drawn gets too small a weight: take "
     "each P as it is."),
    (lambda P, i, beta: np.minimum(raw_weights(P, i, beta), 1.0),
     "cut off at 1, all large weights become the same: divide by the largest of them instead."),
    (lambda P, i, beta: raw_weights(P, i, beta) * (len(P) / len(i)) ** beta,
     "N is the number of all stored transitions, `len(P)`; then divide by the largest weight."),
    (lambda P, i, beta: beta / (len(P) * P[i]), "β is the exponent, not a factor."),
    (dict(divisor=lambda w, P, beta: of_all(P, beta).max()),
     "you divide by the largest weight of the whole memory: one transition that is hardly ever "
     "drawn makes all others tiny. Take the largest of the minibatch."),
    (dict(divisor=lambda w, P, beta: of_all(P, beta).sum()),
     "divided by the sum over the whole memory: divide by the largest of the minibatch."),
    (dict(divisor=lambda w, P, beta: w.min()),
     "divided by the smallest: now all weights are 1 or more. Divide by the largest."),
    (dict(divisor=lambda w, P, beta: w.sum()),
     "divided by the sum: now they sum to 1. Divide by the largest."),
    (dict(divisor=lambda w, P, beta: w.mean()),
     "divided by the mean: divide by the largest, so that no weight is above 1."),
    (dict(divisor=lambda w, P, beta: w[0]), "divided by the first of them: divide by the largest."),
    (dict(divisor=lambda w, P, beta: w**2 / w.max()),
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
], larger=[(SMALL / SMALL.sum(), np.arange(5, 1_500, 31), 0.7)],
   forms=one_for_each_draw)  # fmt: skip


# 03.2: what the tree gets -------------------------------------------------------------------------


def leaves(
    td_errors: Array,
    largest_priority: float,
    alpha: float,
    epsilon: float,
    priority: Function = lambda td_errors, epsilon: np.abs(td_errors) + epsilon,
) -> tuple[Array, float]:
    priorities = priority(td_errors, epsilon)
    return priorities**alpha, max(largest_priority, priorities.max()) ** alpha


def new_leaves(*given: Any) -> Array:
    return leaves(*given)[0]


def newcomer_leaf(*given: Any) -> float:
    return leaves(*given)[1]


def huber(delta: Array) -> Array:
    size = np.abs(delta)
    return np.where(size <= 1, 0.5 * size**2, size - 0.5)


LEAF_MISTAKES = [
    (dict(priority=lambda d, e: d + e),
     "the priority is the *size* of the error, |δ|: a negative number raised to α is NaN."),
    (dict(priority=lambda d, e: d),
     "the priority is the *size* of the error, |δ| + ε: a negative number raised to α is NaN."),
    (dict(priority=lambda d, e: np.abs(d + e)),
     "ε is added to the size, |δ| + ε: inside the bars it makes negative errors smaller."),
    (dict(priority=lambda d, e: np.maximum(d, 0.0) + e),
     "errors below zero count as much as those above: the priority is the *size*, |δ|."),
    (dict(priority=lambda d, e: np.minimum(np.abs(d), 1.0) + e),
     dict(priority=lambda d, e: np.minimum(np.abs(d) + e, 1.0)),
     "some programs clip errors to ±1; here they count as they are."),
    (lambda d, m, a, e: np.sign(d) * new_leaves(d, m, a, e),
     lambda d, m, a, e: np.sign(d) * np.abs(d) ** a,
     "the sign is back: a leaf is (|δ| + ε)^α, which is never negative."),
    (dict(priority=lambda d, e: np.abs(d)),
     "ε is missing: a transition without an error would never be drawn again."),
    (dict(priority=lambda d, e: np.maximum(np.abs(d), e)),
     "ε is added to |δ|, not used as a lower limit."),
    (dict(priority=lambda d, e: d**2 + e), dict(priority=lambda d, e: 0.5 * d**2 + e),
     dict(priority=lambda d, e: huber(d) + e),
     "the priority is |δ|, not the loss: for small errors the loss is quadratic, so α would count "
     "twice."),
    (lambda d, m, a, e: np.abs(d) ** a + e,
     "ε belongs to the priority, before it is raised to α: (|δ| + ε)^α."),
    (lambda d, m, a, e: np.abs(d) + e, "these are the priorities p; the leaves hold p^α."),
    (lambda d, m, a, e: new_leaves(d, m, a * a, e), "α is applied twice."),
    (lambda d, m, a, e: new_leaves(d, m, a, e) / new_leaves(d, m, a, e).sum(),
     "leaves should not be divided by their sum: the tree knows its own total."),
    (lambda d, m, a, e: np.full(len(d), max(m, new_leaves(d, m, 1, e).max()) ** a),
     "a replayed transition gets its own priority, not the largest one."),
    (dict(priority=lambda d, e: d**2 + 2 * e * np.abs(d) + e * e),
     "the exponent is α, not 2α: the size of an error is not squared."),
]  # fmt: skip

NEWCOMER_MISTAKES = [
    (lambda d, m, a, e: newcomer_leaf(d, m, a * a, e),
     "α is applied twice there: the largest leaf is p^α already. Keep the largest p, and raise it "
     "once."),
    (lambda d, m, a, e: newcomer_leaf(d, m, 1.0, e),
     "it is p, but the leaves hold p^α."),
    (lambda d, m, a, e: max(m, new_leaves(d, m, a, e).max()) ** a,
     lambda d, m, a, e: max(m, new_leaves(d, m, a, e).max()),
     "you compare the largest p so far with new leaves, which are p^α: compare p with p, then "
     "raise the larger one."),
    (lambda d, m, a, e: max(m**a, (np.abs(d) + e).max()),
     lambda d, m, a, e: max(m**a, (np.abs(d) + e).max()) ** a,
     "you compare the largest leaf so far, p^α, with new priorities, which are p: compare p with "
     "p, then raise the larger one."),
    (lambda d, m, a, e: new_leaves(d, m, a, e).max(), lambda d, m, a, e: (np.abs(d) + e).max(),
     "the largest priority *so far* counts, not that of this minibatch alone."),
    (lambda d, m, a, e: m**a, lambda d, m, a, e: m, lambda d, m, a, e: (m + e) ** a,
     "this minibatch may have brought a new largest priority: look at it first."),
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
    (lambda d, m, a, e: 1.0, "it is not always 1 but the largest priority so far, raised to α."),
]  # fmt: skip


FOUR, THREE = np.array([0.5, -2.0, 0.0, 1.25]), np.array([0.3, -0.8, 0.1])
FIVE = np.array([0.7, 0.4, -0.2, 3.0, -0.6])

function_exercise(
    "03.2",
    leaves,
    "td_errors largest_priority alpha epsilon",
    # The largest error is never the first or the last of its minibatch, and sometimes negative.
    [
        (FOUR, 1.5, 0.6, 0.01), (THREE, 4.0, 0.6, 0.01), (FOUR, 1.5, 0.8, 0.01),
        (FOUR, 1.5, 0.6, 0.2), (FIVE, 2.0, 0.5, 0.1), (FIVE, 0.5, 0.5, 0.1),
        (FOUR, 2.05, 0.7, 0.1), (THREE, 0.4, 0.7, 0.05),
    ],
    larger=[
        (np.linspace(-3.0, 2.9, 101), 2.0, 0.5, 0.01), (300.0 * FIVE, 2.0, 0.5, 1e-6),
        (1e-3 * FIVE, 1e-3, 0.6, 1e-4),
    ],
    parts=[
        Part(name="the leaves of the replayed transitions", mistakes=LEAF_MISTAKES),
        Part(
            name="the newcomer's leaf",
            intro="the replayed leaves are right, the newcomer's is not: ",
            mistakes=NEWCOMER_MISTAKES,
        ),
    ],
)  # fmt: skip

# 03.3: β as a function of the step ----------------------------------------------------------------


def beta_at(step: int, steps: int, beta_start: float) -> float:
    return min(1.0, beta_start + (1 - beta_start) * step / steps)


def compounding(step: int, steps: int, beta: float) -> float:
    """Each step starts from the β of the step before, not from `beta_start`."""
    for k in range(1, min(step, steps) + 1):
        beta += k / steps * (1 - beta)
    return beta


def compounding_from_zero(step: int, steps: int, beta: float) -> float:
    for k in range(min(step, steps)):
        beta += k / steps * (1 - beta)
    return beta


function_exercise("03.3", beta_at, "step steps beta_start", [
    *((step, 1000, 0.4) for step in (0, 1, 100, 500, 900, 1000, 1001, 3000)),
    *((step, 1000, 0.6) for step in (0, 100, 500, 900, 1000)),
    *((step, 2000, 0.4) for step in (100, 500, 1500, 2000)), (35, 70, 0.0), (35, 70, 1.0),
    (69, 70, 0.0), (999, 1000, 0.4),
], [
    (lambda s, n, b: b + (1 - b) * s / n, "after the last step it goes on, above 1: stop there."),
    (lambda s, n, b: b + s / n,
     "it rises by 1 in all, and ends above 1: it should rise by 1 − beta_start in all."),
    (lambda s, n, b: min(1.0, b + s / n),
     "it reaches 1 too early: over all the steps it should rise by 1 − beta_start, not by 1."),
    (lambda s, n, b: min(1.0, s / n), lambda s, n, b: s / n, "at step 0 it is 0, not beta_start."),
    (lambda s, n, b: min(1.0, max(b, s / n)), lambda s, n, b: max(b, s / n),
     "it stays at beta_start for a while; it rises from the first step on, a little at each."),
    (lambda s, n, b: max(1.0, b + (1 - b) * s / n),
     "`max` keeps it at 1 or more; `min` stops it at 1."),
    (lambda s, n, b: b if s < n else 1.0,
     "that is one jump, not a line: `//` drops the fraction, `/` keeps it."),
    (lambda s, n, b: b * (1 - min(1.0, s / n)), "it falls to 0; β rises to 1."),
    (lambda s, n, b: b + 1 - beta_at(s, n, b), "upside down: it falls from 1 to beta_start."),
    (lambda s, n, b: b ** (1 - min(1.0, s / n)),
     "the ends are right, but between them it rises by the same *factor* at every step: that is "
     "not a straight line."),
    (compounding, compounding_from_zero,
     "each step adds to the β of the step before, so it rises too fast: start from beta_start "
     "every time."),
    (lambda s, n, b: 1.0, "it is 1 from the first step; it starts at beta_start."),
    (lambda s, n, b: 1.0 if s >= n - 1 else beta_at(s, n, b), lambda s, n, b: beta_at(s, n - 1, b),
     "it reaches 1 one step too early: at step `steps`, not at `steps - 1`."),
    (lambda s, n, b: beta_at(s + 1, n, b),
     "it is a step ahead: at step 0 it should be beta_start itself."),
    (lambda s, n, b: beta_at(s % n, n, b),
     "after the last step it starts again: from `steps` on it stays at 1."),
    (lambda s, n, b: round(beta_at(s, n, b), 2), "rounded, the line becomes a staircase."),
], larger=[(123_456, 1_000_000, 0.4), (3_000_000, 1_000_000, 0.4)],
asked_twice=(
    [(step, 100, 0.4) for step in range(101)],
    "the same step returns a different answer the second time: it accumulates. β is a "
    "function of the step and remembers nothing.",
))  # fmt: skip

# 03.4: the loss of a minibatch --------------------------------------------------------------------


def weighted_loss(
    td_errors: Tensor,
    weights: Tensor,
    terms: Function = lambda td_errors, weights: weights * 0.5 * td_errors**2,
    reduce: Function = torch.mean,
) -> Tensor:
    return reduce(terms(td_errors, weights[:, 0]))


TABLE = "(batch,) times (batch, 1) has made a table of (batch, batch)."


BATCHES = [
    ([0.1, -0.2, 0.3, 4.0], [0.9, 0.8, 0.5, 0.1]),
    ([2.0, -0.7, 0.4, 1.2, -3.0, 0.05], [0.2, 0.6, 0.9, 0.35, 0.15, 0.7]),
    ([1.5], [0.4]),
]

function_exercise(
    "03.4", weighted_loss, "td_errors weights",
    [(torch.tensor(errors), torch.tensor(weights)[:, None]) for errors, weights in BATCHES], [
    (lambda d, w: (w * 0.5 * d**2).mean(),
     "that is the mean weight times the mean loss. Weigh each loss before the mean. (If you did, "
     f"{TABLE} Bring both to one shape first.)"),
    (lambda d, w: (w * 0.5 * d**2).sum(), f"{TABLE} Bring both to one shape first."),
    (lambda d, w: (w * d**2).mean(), f"{TABLE} Bring both to one shape. The ½ is missing, too."),
    (lambda d, w: (0.5 * (w * d) ** 2).mean(), f"{TABLE} And the weight is not squared."),
    (dict(terms=lambda d, w: w * d**2), "the ½ is missing."),
    (dict(terms=lambda d, w: w * d**2, reduce=torch.sum),
     "that is the sum over the minibatch, without the ½; take the mean."),
    (dict(terms=lambda d, w: w * 0.5 * d**2, reduce=torch.sum),
     "that is the sum over the minibatch; take the mean."),
    (dict(terms=lambda d, w: w * 0.5 * d**2 / w.sum(), reduce=torch.sum),
     "divide by the size of the minibatch, not by the sum of the weights."),
    (dict(terms=lambda d, w: w / w.max() * 0.5 * d**2),
     "the weights are used as they come; they are not divided by the largest again."),
    (dict(terms=lambda d, w: 0.5 * d**2), "where are the weights?"),
    (dict(terms=lambda d, w: 0.5 * (w * d) ** 2),
     "you square the weight, too: it multiplies ½δ², not δ."),
    (dict(terms=lambda d, w: w * d.abs()), "that is the mean of w·|δ|; the loss has ½δ²."),
    (dict(terms=lambda d, w: w * 0.5 * d.abs()), "that is the mean of w·½|δ|; square the error."),
    (dict(terms=lambda d, w: w * d), "that is the mean of w·δ; the loss has ½δ²."),
    (dict(terms=lambda d, w: w * 0.5 * d**2, reduce=torch.max),
     "that is the largest; take the mean."),
    (dict(terms=lambda d, w: w * torch.where(d.abs() <= 1, 0.5 * d**2, d.abs() - 0.5)),
     "that is the Huber loss; here it is ½δ² for large errors, too."),
    (dict(terms=lambda d, w: -w * 0.5 * d**2),
     "the loss is positive: with a minus, errors would grow."),
    *((dict(reduce=lambda t, size=size: t.sum() / size),
       f"you always divide by {size}: the minibatch may have any size.") for size in (4, 6, 32)),
    (dict(terms=lambda d, w: 0.5 * d**2 / w), "you divide by the weights; multiply."),
], larger=[(torch.linspace(-2.0, 3.0, 128), torch.linspace(1.0, 0.1, 128)[:, None])],
   trained=["td_errors"])  # fmt: skip
