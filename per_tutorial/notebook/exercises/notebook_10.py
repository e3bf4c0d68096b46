"""Notebook 10, when PER helps: the gain, the effective share, priorities of reducible loss."""

import numpy as np

from per_tutorial.notebook.checking import EXERCISES, Exercise


def mean_gain(uniform, per):
    return np.mean(np.log2(uniform / per))


EXERCISES["10.1"] = Exercise(
    right=mean_gain,
    cases=[tuple(map(np.array, areas)) for areas in (
        ([0.2, 0.1], [0.3, 0.7]), ([0.2, 0.4, 0.9], [0.1, 0.4, 0.3]))],
    hints=[
        (lambda u, p: np.mean(np.log2(p / u)),
         "The sign is wrong: where PER has the smaller area, it gains."),
        (lambda u, p: np.log2(u.mean() / p.mean()),
         "Runs are pairs: take the ratio of each pair first, and the mean last."),
        (lambda u, p: np.log2(np.mean(u / p)), "Take the logarithm of each ratio, then the mean."),
        (lambda u, p: np.mean(np.log(u / p)), "That is the natural logarithm: log2 is asked for."),
    ])  # fmt: skip


def effective_share(errors):
    size = np.abs(errors)
    return size.sum() ** 2 / (len(size) * (size**2).sum())


EXERCISES["10.2"] = Exercise(
    right=effective_share,
    cases=[(np.array(errors),) for errors in (
        [1.0, -1.0, 1.0, 1.0], [4.0, 0.0, 0.0, 0.0], [3.0, -1.0, 0.5, 0.0, 2.0])],
    hints=[
        (lambda e: e.sum() ** 2 / (len(e) * (e**2).sum()),
         "Errors of both signs cancel in that sum: take |δ|."),
        (lambda e: len(e) * effective_share(e),
         "That is how many transitions count: divide by how many there are."),
        (lambda e: 1 / effective_share(e), "Upside down: the share is at most 1."),
        (lambda e: np.abs(e).sum() ** 2 / len(e) * (e**2).sum(),
         "`a / N * b` multiplies by b: put N times the sum of squares in parentheses."),
    ])  # fmt: skip


def normalised(priorities):
    return priorities / priorities.sum()


def relo_probabilities(now, older, alpha, gain=lambda now, older: np.maximum(now - older, 0)):
    return normalised((gain(now**2, older**2) + 1e-6) ** alpha)


EXERCISES["10.3"] = Exercise(
    right=relo_probabilities,
    # Gains, losses and both; and squares as small as ε.
    cases=[(np.array(now), np.array(older), alpha) for now, older, alpha in (
        ([2.0, -0.5, 0.3], [1.0, 1.0, -0.1], 1.0), ([0.2, -0.5, 1.3], [1.0, 1.0, -0.1], 0.6),
        ([0.001, -0.002, 0.0], [0.0005, -0.001, 0.0], 0.6))],
    hints=[
        (lambda n, o, a: relo_probabilities(n, 0 * o, a),
         "The loss of the older copy is not subtracted."),
        (lambda n, o, a: relo_probabilities(n, o, a, lambda n, o: np.abs(n - o)),
         "Where the difference is below 0, nothing can be reduced: set it to 0."),
        (lambda n, o, a: normalised(np.maximum(n**2 - o**2, 0) ** a),
         "ε = 1e-6 is missing: what cannot be reduced would never be drawn."),
        (lambda n, o, a: (np.maximum(n**2 - o**2, 0) + 1e-6) ** a,
         "Those are priorities: divide them by their sum."),
    ])  # fmt: skip
