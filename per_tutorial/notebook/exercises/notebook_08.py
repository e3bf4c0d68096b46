"""Notebook 08, after PER: κ, the loss in PER, LaBER with the Huber loss."""

import numpy as np

from per_tutorial.notebook.checking import EXERCISES, Exercise


def smallest_kappa(largest, factor, alpha):
    return largest / factor ** (1 / alpha)


EXERCISES["08.1"] = Exercise(
    right=smallest_kappa, cases=[(20.0, 10.0, 0.5), (3.0, 10.0, 0.4), (8.0, 2.5, 1.0)], hints=[
        (lambda m, t, a: m / t,
         "That holds for α = 1. The *priorities* may differ `factor`-fold, and they are powers."),
        (lambda m, t, a: m / t**a,
         "α is on the wrong side: largest / κ is `factor` to the power of 1/α."),
        (lambda m, t, a: (m / t) ** (1 / a),
         "Only `factor` is raised to 1/α: `largest` is an error, not a priority."),
        (lambda m, t, a: m**a / t, "That is κ^α, the smallest priority: take the root."),
    ])  # fmt: skip


def slopes_of_per(errors, alpha, beta, factor=lambda x, beta: x ** (1 - beta)):
    """The slopes `factor(N · P, β)` · δ."""
    p = np.abs(errors) ** alpha
    return factor(len(errors) * p / p.sum(), beta) * errors


EXERCISES["08.2"] = Exercise(
    right=slopes_of_per,
    cases=[(np.array([3.0, -0.2, 1.5]), 1.0, 0.0), (np.array([3.0, -0.2, 1.5]), 0.7, 0.5),
           (np.array([0.5, -2.0, 0.1, 4.0, -1.0]), 0.6, 0.4)],
    hints=[
        (lambda e, a, b: slopes_of_per(e, a, b) / len(e),
         "That is PER's pull; uniform draws take each with 1/N, so the slope is N times as large."),
        (lambda e, a, b: slopes_of_per(e, a, b, lambda x, b: x**-b),
         "That is weight times slope. PER also *draws* unevenly: the probability is a factor."),
        (lambda e, a, b: slopes_of_per(e, a, 0.0), "Each weight (N P)^−β is a factor, too."),
        (lambda e, a, b: -slopes_of_per(e, a, b),
         "The sign is reversed: here the slope of ½δ² is δ, as in section 2."),
    ])  # fmt: skip


def laber_huber(errors, chosen, kappa, mean=lambda p, chosen: p.mean(), size=np.minimum):
    p = size(np.abs(errors), kappa)
    slopes = np.clip(errors[chosen], -kappa, kappa)
    return np.mean(mean(p, chosen) / p[chosen] * slopes)


EXERCISES["08.3"] = Exercise(
    right=laber_huber,
    cases=[(np.array(errors), np.array(chosen), kappa) for errors, chosen, kappa in (
        ([-0.3, 2.0, -5.0, 0.6, 1.5], [2, 0, 2, 1], 1.0),
        ([0.4, -3.0, 1.2, -0.1, 6.0, -0.8], [4, 1, 4], 2.5))],
    hints=[
        (lambda e, c, k: laber_huber(e, c, k, size=lambda size, k: size),
         "The candidates were chosen by min(|δ|, κ), so the weights need that, too."),
        (lambda e, c, k: laber_huber(e, c, k, lambda p, c: p[c].mean()),
         "The mean goes over *all* candidates, not over the chosen ones."),
        (lambda e, c, k: np.clip(e[c], -k, k).mean(),
         "Where are the weights? What is chosen often counts less."),
        (lambda e, c, k: np.minimum(np.abs(e), k).mean(),
         "The sign got lost: weight times slope is the mean times the *sign* of δ."),
    ])  # fmt: skip
