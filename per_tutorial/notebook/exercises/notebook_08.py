"""Notebook 08, after PER: κ, the loss in PER, reliabilities, LaBER with the Huber loss."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.notebook.checking.answers import numbers
from per_tutorial.notebook.checking.declaring import Array, Function, function_exercise

# 08.1: the smallest κ -----------------------------------------------------------------------------


def smallest_kappa(largest: float, times: float, alpha: float) -> float:
    return largest / times ** (1 / alpha)


function_exercise("08.1", smallest_kappa, "largest times alpha", [
    (20.0, 10.0, 0.5), (20.0, 10.0, 0.4), (20.0, 4.0, 0.5), (3.0, 10.0, 0.5), (8.0, 2.5, 1.0),
], [
    (lambda m, t, a: m / t,
     "that holds for α = 1. The *priorities* may differ `times`-fold, and they are powers: the "
     "ratio of the errors may be larger."),
    (lambda m, t, a: m / t**a,
     "α is on the wrong side: (largest / κ)^α = times, so largest / κ is `times` to the power of "
     "1/α."),
    (lambda m, t, a: (m / t) ** (1 / a),
     "only `times` is raised to 1/α: `largest` is an error, not a priority."),
    (lambda m, t, a: (m / t) ** a, "solve (largest / κ)^α = times for κ."),
    (lambda m, t, a: m**a / t,
     "that is κ^α, the smallest priority; κ itself is asked for: take the root."),
    (lambda m, t, a: m * t ** (1 / a), "upside down: κ is smaller than the largest error."),
    (lambda m, t, a: t ** (1 / a) / m, "upside down: that is 1/κ."),
    (lambda m, t, a: t ** (1 / a), "that is the ratio of the largest error to κ."),
    (lambda m, t, a: m / t ** (1 - a), "the exponent is 1/α, not 1 − α."),
    (lambda m, t, a: m / (t * a), lambda m, t, a: m * a / t,
     "α is an exponent, not a factor: (largest / κ)^α = times."),
    (lambda m, t, a: m / (t - 1) ** (1 / a),
     "the factor is `times`, not `times` − 1: the ratio of the two priorities is `times`."),
    (lambda m, t, a: m,
     "with κ as large as the largest error, all are drawn alike; a smaller κ will do."),
    (lambda m, t, a: 0.0,
     "with κ = 0 a transition without an error is never drawn: the ratio is ∞."),
], larger=[(5_000.0, 1_000.0, 0.7), (0.3, 50.0, 0.9)])  # fmt: skip

# 08.2: the loss that hides in PER -----------------------------------------------------------------


def slopes_of_per(
    errors: Array,
    alpha: float,
    beta: float,
    factor: Function = lambda x, alpha, beta: x ** (1 - beta),
) -> Array:
    """The slopes `factor(N · P, α, β)` · δ."""
    p = np.abs(errors) ** alpha
    return factor(len(errors) * p / p.sum(), alpha, beta) * errors


def one_slope_each(result: Any, right: Array) -> str | None:
    if np.shape(result) == ():
        return "one slope for each transition, not their sum or mean."
    if np.isnan(numbers(result)).any():
        return "that holds NaN: a negative number cannot be raised to α. Take |δ| first."
    return None


FIVE, FOUR = np.array([0.5, -2.0, 0.1, 4.0, -1.0]), np.array([3.0, -0.2, 1.5, -0.7])

function_exercise("08.2", slopes_of_per, "errors alpha beta", [
    (FIVE, 0.6, 0.4), (FIVE, 0.6, 1.0), (FIVE, 0.6, 0.0), (FIVE, 0.3, 0.4), (FOUR, 0.7, 0.5),
], [
    (lambda e, a, b: slopes_of_per(e, a, b) / len(e),
     "that is PER's pull. Uniform draws take each transition with 1/N, so its slope is N times as "
     "large."),
    (lambda e, a, b: -slopes_of_per(e, a, b),
     "the sign is reversed: here the slope of ½δ² is δ, as in section 4. (By Q it would be "
     "−δ, as δ is the target minus Q.)"),
    (lambda e, a, b: np.abs(slopes_of_per(e, a, b)),
     "the sign got lost: only the priority takes the size of the error; the slope is δ itself."),
    (dict(factor=lambda x, a, b: x**-b),
     "that is weight times slope. PER also *draws* unevenly: the probability is a factor, too."),
    (dict(factor=lambda x, a, b: x / len(x) * x**-b * len(x) ** b),
     "the weight contains N P(i): (N P)^−β, with N inside the power."),
    (dict(factor=lambda x, a, b: x),
     "that is PER without its weights (β = 0): each weight (N P)^−β is a factor, too."),
    (dict(factor=lambda x, a, b: x ** (1 + b)),
     "the sign of β is wrong: weights are (N P) to the power of −β."),
    (dict(factor=lambda x, a, b: x**b), "P times (N P)^−β leaves the exponent 1 − β, not β."),
    (dict(factor=lambda x, a, b: x ** (b - 1)), "the exponent is 1 − β, not β − 1."),
    (dict(factor=lambda x, a, b: x ** (a * (1 - b))),
     "α is in the probabilities already; it is not applied again."),
    (lambda e, a, b: np.abs(e) ** (a * (1 - b)) * e,
     "right but for a factor: P is divided by the sum of all priorities, and multiplied by N."),
    (lambda e, a, b: np.sign(e) * np.abs(e) ** (1 + a),
     "that is right for β = 0, and up to a factor: where are the weights?"),
    (lambda e, a, b: e, "that is right for β = 1, where the weights take everything back."),
    (dict(factor=lambda x, a, b: x ** (1 - b) / (x ** (1 - b)).max()),
     "the weights are not divided by anything here."),
    (dict(factor=lambda x, a, b: x * x**-b / (x**-b).max()),
     "the weights are not divided by their largest here."),
    (lambda e, a, b: 2 * slopes_of_per(e, a, b),
     "twice as much as it should be: the squared loss is ½δ² here, with the slope δ, not 2δ."),
    (lambda e, a, b: 0.5 * slopes_of_per(e, a, b) * e,
     "that is a loss; its slope is asked for: ½δ² has the slope δ."),
    (lambda e, a, b: slopes_of_per(e, a, b) / np.abs(e),
     "the size of δ is missing: the slope of ½δ² is δ itself, not only its sign."),
    (lambda e, a, b: slopes_of_per(e, a, b) / e,
     "δ itself is missing: that is the factor before it. The slope of ½δ² is δ."),
    (lambda e, a, b: slopes_of_per(e, a, b) * e, "one δ too many: the slope of ½δ² is δ, not δ²."),
], larger=[(np.geomspace(1e-4, 50.0, 40), 0.6, 0.4)], forms=one_slope_each)  # fmt: skip

# 08.3: reliabilities of two environments ----------------------------------------------------------


def reliabilities(
    errors: Array,
    ends: NDArray[np.bool_],
    share: Function = lambda sizes: np.cumsum(sizes) / sizes.sum(),
    size: Function = np.abs,
    environments: int = 2,
) -> Array:
    """R of a memory that environments fill in turns: `share` of the |δ| of an episode."""
    R = np.ones(len(errors))
    for first in range(environments):
        places = np.arange(first, len(errors), environments)
        last = np.flatnonzero(ends[places])
        for episode in np.split(places, last + 1)[: len(last)]:
            R[episode] = share(size(errors[episode]))
    return R


def ends_to_come(ends: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each step, the number of ends of its environment from that step on."""
    return np.cumsum(ends.reshape(-1, 2)[::-1], axis=0, dtype=np.int64)[::-1].ravel()


def never_begun_again(errors: Array, ends: NDArray[np.bool_]) -> Array:
    """As if each environment had one episode, up to its last end."""
    left = ends_to_come(ends)
    running = left == 0
    known = reliabilities(np.where(running, 0.0, errors), ends & (left == 1))
    return np.where(running, 1.0, known)


ONE_END, SEVERAL = np.isin(np.arange(8), [4, 7]), np.isin(np.arange(12), [2, 5, 7, 8])
TWELVE = np.array([1.0, -0.5, 2.0, 0.3, -4.0, 0.7, 1.0, 2.5, -0.6, 3.0, 0.9, -1.1])

function_exercise("08.3", reliabilities, "errors ends", [
    (TWELVE[:8], ONE_END), (TWELVE, SEVERAL), (TWELVE[::-1], SEVERAL),
], [
    (dict(environments=1),
     "that is right for one environment. Here the neighbours of a step belong to the other "
     "environment: the next step of its own episode is two indices later."),
    (lambda e, d: reliabilities(np.maximum(e, 0), d), "errors below zero count too: sum |δ|."),
    (lambda e, d: reliabilities(e**2, d), "sum |δ|, not its square."),
    (dict(size=lambda e: e), "sum |δ|: with their signs, errors cancel each other."),
    (lambda e, d: reliabilities(e, d | np.roll(d, 1) & (np.arange(len(d)) % 2 == 1)
                                | np.roll(d, -1) & (np.arange(len(d)) % 2 == 0)),
     "an end closes the episode of its own environment, not that of the other."),
    (dict(share=lambda s: 1 - np.cumsum(s) / s.sum()),
     "the wrong part: R is 1 minus the share that is still *to come*, so the last step has R = 1."),
    (dict(share=lambda s: np.cumsum(s[::-1])[::-1] / s.sum()),
     "backwards: what counts against a step is what comes *after* it."),
    (dict(share=lambda s: (np.cumsum(s) - s) / s.sum()),
     dict(share=lambda s: 1 - (s.sum() - np.cumsum(s) + s) / s.sum()),
     "the sum in the numerator goes over i > t: the step's own error does not count against it."),
    (dict(share=np.cumsum),
     "divide by the sum over the episode: R is a share, and the last step has 1."),
    (dict(share=lambda s: s / s.sum()), "that is the share of the step alone: sum up to the step."),
    (dict(share=lambda s: np.cumsum(s) / s.max()), "divide by the episode's sum, not its largest."),
    (dict(share=lambda s: np.arange(1, len(s) + 1) / len(s)),
     "that counts steps; R counts their errors."),
    (lambda e, d: np.ones(len(e)),
     "R is 1 only where the episode still runs, and at its last step. Where it has ended, it is "
     "known what came after: R is 1 minus the share that was still to come."),
    (lambda e, d: reliabilities(e, np.append(d[:-2], [True, True])),
     "an episode that still runs has R = 1: nobody knows yet what is to come. "
     "(This page departs from the paper there, which takes the largest sum of any episode.)"),
    (lambda e, d: reliabilities(e, np.arange(len(d)) >= len(d) - 2), never_begun_again,
     "each episode counts on its own: begin again after an end."),
    *((lambda e, d, done=done: np.where(np.arange(len(e)) % 2 == done, reliabilities(e, d), 1.0),
       f"that is right at the {one} indices; those of the other environment need their R, too.")
      for done, one in enumerate(("even", "odd"))),
    (lambda e, d: np.where(ends_to_come(d) == 0, 0.0, reliabilities(e, d)),
     "in an episode that still runs, R is 1, not 0."),
    (lambda e, d: reliabilities(e, d).reshape(-1, 2).T.ravel(),
     "go back to the order of the memory: the two environments in turns."),
    (lambda e, d: reliabilities(e, np.append(d[2:], [False, False])),
     "the step where `ends` is True is the last one of its episode, not the first of the next."),
], larger=[(np.sin(np.arange(1.0, 301.0)), np.arange(300) % 37 == 30)])  # fmt: skip

# 08.4: LaBER with the Huber loss ------------------------------------------------------------------


def laber_huber(errors: Array, chosen: NDArray[np.int64], kappa: float) -> float:
    p = np.minimum(np.abs(errors), kappa)
    return np.mean(p.mean() * np.sign(errors[chosen]))


def with_weights(weigh: Function, slope: Function | None = None) -> Function:
    """The estimate with the weights `weigh(all errors, chosen, κ)` and, if given, another slope."""

    def wrong(errors, chosen, kappa):
        slopes = np.clip(errors[chosen], -kappa, kappa) if slope is None else slope(errors[chosen])
        return np.mean(weigh(errors, chosen, kappa) * slopes)

    return wrong


def size(errors: Array, kappa: float) -> Array:
    return np.minimum(np.abs(errors), kappa)


def huber_loss(errors: Array, kappa: float) -> Array:
    return np.where(np.abs(errors) <= kappa, errors**2 / 2, kappa * (np.abs(errors) - kappa / 2))


def one_number(result: Any, right: float) -> str | None:
    return (
        "a single number is asked for: the mean over the chosen." if np.ndim(result) == 1 else None
    )


CANDIDATES = np.array([0.4, -3.0, 1.2, -0.1, 6.0, -0.8]), np.array([-0.3, 2.0, -5.0, 0.6, 1.5])

function_exercise("08.4", laber_huber, "errors chosen kappa", [
    *((CANDIDATES[0], np.array(chosen), kappa)
      for chosen, kappa in (([4, 1, 4], 1.0), ([4, 1, 4], 2.5), ([0, 3, 2, 4], 1.0))),
    *((CANDIDATES[1], np.array(chosen), kappa)
      for chosen, kappa in (([0, 0, 1, 1, 4], 0.5), ([2, 0, 2, 1], 1.0))),
], [
    (with_weights(lambda e, c, k: np.abs(e).mean() / np.abs(e[c])),
     "the candidates were chosen by min(|δ|, κ), so the weights need that, too."),
    (with_weights(lambda e, c, k: size(e, k).mean() / size(e[c], k), lambda d: d),
     "the slope of the Huber loss is δ cut off at ±κ."),
    (with_weights(lambda e, c, k: np.abs(e).mean() / np.abs(e[c]), lambda d: d),
     "that is LaBER with the squared loss: both |δ| in the weights and the slope are cut off at "
     "κ."),
    (with_weights(lambda e, c, k: size(e[c], k).mean() / size(e[c], k)),
     "the mean goes over *all* candidates, not over the chosen ones."),
    (with_weights(lambda e, c, k: 1 / size(e[c], k)),
     "that is the lazy form: the mean over the candidates is missing."),
    (with_weights(lambda e, c, k: size(e, k).sum() / size(e[c], k)),
     "the numerator of the weight is the *mean* over all candidates, not their sum."),
    (with_weights(lambda e, c, k: size(e[c], k) / size(e, k).mean()),
     "upside down: what is chosen often counts *less*."),
    (with_weights(lambda e, c, k: 1.0), "where are the weights? What is chosen often counts less."),
    (with_weights(lambda e, c, k: size(e[c], k).min() / size(e[c], k)),
     "weights are not divided by the largest of them: a candidate's weight is the mean over all "
     "candidates divided by its own."),
    (lambda e, c, k: size(e, k).mean(),
     "the sign got lost: weight times slope is the mean times the *sign* of δ."),
    (lambda e, c, k: len(c) * laber_huber(e, c, k), "take the mean over the chosen, not the sum."),
    (lambda e, c, k: len(c) / len(e) * laber_huber(e, c, k),
     "divide by the number of the chosen, not of all candidates."),
    (lambda e, c, k: np.clip(e, -k, k).mean(),
     "that is the mean slope of all candidates, which the estimate equals on average. The "
     "estimate uses the chosen ones."),
    (lambda e, c, k: abs(laber_huber(e, c, k)),
     "the sign of the whole estimate got lost: it may be negative."),
    (lambda e, c, k: -laber_huber(e, c, k),
     "the sign is reversed: the slope is δ, cut off at ±κ."),
    (lambda e, c, k: np.mean(size(e, k).mean() / size(e[c], k) * np.minimum(e[c], k)),
     "the slope of the Huber loss is δ cut off at ±κ, on both sides."),
    (with_weights(lambda e, c, k: size(e, k).mean() / size(e[c], k), np.abs),
     "the slope has the sign of δ, and is cut off at ±κ."),
    (lambda e, c, k: np.mean(size(e, k).mean() / size(e[c], k) * huber_loss(e[c], k)),
     "that is the loss; its slope is asked for: δ cut off at ±κ."),
    (lambda e, c, k: laber_huber(e, np.unique(c), k),
     "a candidate that was chosen twice counts twice."),
], larger=[(1e3 * CANDIDATES[0], np.array([1, 4, 0]), 200.0)], forms=one_number)  # fmt: skip
