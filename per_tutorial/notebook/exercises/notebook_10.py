"""Notebook 10, when PER helps: the gain, the effective share, priorities of reducible loss."""

import numpy as np

from per_tutorial.notebook.checking.declaring import Array, function_exercise

# 10.1: the gain -----------------------------------------------------------------------------------


def mean_gain(uniform: Array, per: Array) -> float:
    return float(np.mean(np.log2(uniform / per)))


function_exercise(
    "10.1", mean_gain, "uniform per",
    [
        (np.array([0.2, 0.4, 0.9]), np.array([0.1, 0.4, 0.3])),
        (np.array([0.2, 0.1]), np.array([0.3, 0.7])),
        (np.array([0.2, 0.4, 0.9]), np.array([0.2, 0.5, 0.3])),
    ], [
    (lambda u, p: np.mean(np.log2(p / u)),
     "the sign is wrong: where PER has the smaller area, it gains."),
    (lambda u, p: np.log2(u.mean() / p.mean()),
     "runs are pairs: take the ratio of each pair first, and the mean last."),
    (lambda u, p: np.log2(np.mean(u / p)), "take the logarithm of each ratio, and then the mean."),
    (lambda u, p: np.mean(np.log(u / p)), "that is the natural logarithm: log2 is asked for."),
    (lambda u, p: np.mean(np.log10(u / p)), "that is log10: log2 is asked for."),
    (lambda u, p: np.mean(u / p), "that is the mean ratio: its logarithm is still missing."),
    (lambda u, p: np.median(np.log2(u / p)), "that is the median: the mean is asked for."),
    (lambda u, p: np.sum(np.log2(u / p)), "that is the sum: the mean is asked for."),
    (lambda u, p: np.sum(np.log2(u / p)) / (len(u) - 1),
     "a mean divides by the number of pairs, not by one less."),
    (lambda u, p: np.mean(u - p), "that is a difference: the gain is a ratio, on a log scale."),
])  # fmt: skip


# 10.2: the effective share ------------------------------------------------------------------------


def effective_share(errors: Array) -> float:
    size = np.abs(errors)
    return float(size.sum() ** 2 / (len(size) * (size**2).sum()))


function_exercise(
    "10.2", effective_share, "errors",
    [
        (np.array([1.0, -1.0, 1.0, 1.0]),),
        (np.array([4.0, 0.0, 0.0, 0.0]),),
        (np.array([3.0, -1.0, 0.5, 0.0, 2.0]),),
    ], [
    (lambda e: e.sum() ** 2 / (len(e) * (e**2).sum()),
     "errors of both signs cancel in that sum: take |δ|."),
    (lambda e: np.abs(e).sum() ** 2 / (e**2).sum(),
     "that is how many transitions count: divide by how many there are."),
    (lambda e: (e**2).sum() * len(e) / np.abs(e).sum() ** 2,
     "upside down: the share is at most 1."),
    (lambda e: np.abs(e).sum() / (len(e) * (e**2).sum()), "the sum of |δ| is squared."),
    (lambda e: (e**2).sum() / (len(e) * (e**2).sum()),
     "the numerator is the square of the sum, not the sum of the squares."),
    (lambda e: np.abs(e).sum() ** 2 / len(e) * (e**2).sum(),
     "`a / N * b` multiplies by b: put N times the sum of squares in parentheses."),
    (lambda e: -np.log2(effective_share(e)),
     "that is the concentration: the share itself is asked for."),
    (lambda e: np.abs(e).sum() ** 2 / ((len(e) - 1) * (e**2).sum()),
     "N is the number of transitions, not one less."),
    (lambda e: np.abs(e).sum() ** 2 / (np.count_nonzero(e) * (e**2).sum()),
     "N counts all transitions, those without error as well."),
    (lambda e: (np.abs(e) > 0).mean(), "that counts all errors above zero alike."),
    (lambda e: np.abs(e).max() / np.abs(e).sum(), "all errors count, not only the largest."),
])  # fmt: skip


# 10.3: priorities of reducible loss ---------------------------------------------------------------


def relo_probabilities(now: Array, older: Array, alpha: float) -> Array:
    return _normalised((np.maximum(now**2 - older**2, 0.0) + 1e-6) ** alpha)


def _normalised(priorities: Array) -> Array:
    return priorities / priorities.sum()


now, older = np.array([2.0, -0.5, 0.3, -1.5]), np.array([1.0, 1.0, -0.1, -1.2])
other = np.array([0.2, -0.5, 1.3, -1.5])
small = np.array([0.001, -0.002, 0.0, 0.01])  # squares as small as ε

function_exercise(
    "10.3", relo_probabilities, "now older alpha",
    [
        (now, older, 0.6),
        (now, older, 1.0),
        (other, older, 0.6),
        (now, other, 0.3),
        (small, 0.5 * small, 0.6),
    ], [
    (lambda n, o, a: _normalised((np.abs(n) + 1e-6) ** a),
     "that is PER: subtract the loss of the older copy."),
    (lambda n, o, a: _normalised((np.abs(n**2 - o**2) + 1e-6) ** a),
     "where the difference is below 0, nothing can be reduced: set it to 0, don't take its size."),
    (lambda n, o, a: _normalised((n**2 - o**2 + 1e-6) ** a),
     "a power of a negative number is NaN: set differences below 0 to 0 first."),
    (lambda n, o, a: _normalised((np.maximum(o**2 - n**2, 0) + 1e-6) ** a),
     "the other way round: the loss now minus that of the older copy."),
    (lambda n, o, a: _normalised((np.maximum(n**2 - o**2, 0) / 2 + 1e-6) ** a),
     "here the loss is δ², without the factor ½."),
    (lambda n, o, a: _normalised((np.maximum(np.abs(n) - np.abs(o), 0) + 1e-6) ** a),
     "losses are squared errors: δ², not |δ|."),
    (lambda n, o, a: _normalised((np.maximum(n - o, 0) + 1e-6) ** a),
     "losses are squared errors: δ², not δ."),
    (lambda n, o, a: _normalised(((n - o) ** 2 + 1e-6) ** a),
     lambda n, o, a: _normalised((np.maximum(n - o, 0) ** 2 + 1e-6) ** a),
     "square each error first, and then take the difference."),
    (lambda n, o, a: _normalised(np.maximum(n**2 - o**2, 0) ** a + 1e-6),
     "ε = 1e-6 is added before the power is taken."),
    (lambda n, o, a: _normalised(np.maximum(n**2 - o**2, 0) ** a),
     "ε = 1e-6 is missing: without it, what cannot be reduced would never be drawn."),
    (lambda n, o, a: _normalised(np.maximum(n**2 - o**2, 1e-6) ** a),
     "ε = 1e-6 is added to every priority, not used as a minimum."),
    (lambda n, o, a: _normalised(np.maximum(n**2 - o**2, 0) + 1e-6),
     "α is missing: it is the exponent of the priority."),
    (lambda n, o, a: _normalised(np.maximum(n**2 - o**2, 0) + 1e-6) ** a,
     "take the power first and divide by the sum last: probabilities add up to 1."),
    (lambda n, o, a: (np.maximum(n**2 - o**2, 0) + 1e-6) ** a,
     "those are priorities: divide them by their sum."),
])  # fmt: skip
