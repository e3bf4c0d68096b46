"""Notebook 09, should I use it: the gain of pairs of runs, and pairs pooled over studies."""

import numpy as np

from per_tutorial.notebook.checking import EXERCISES, Exercise


def mean_gain(uniform, per):
    return np.mean(np.log2(uniform / per))


EXERCISES["09.1"] = Exercise(
    right=mean_gain,
    cases=[tuple(map(np.array, areas)) for areas in (
        ([0.2, 0.1], [0.3, 0.7]), ([0.2, 0.4, 0.9], [0.1, 0.4, 0.3]))],
    hints=[
        (lambda u, p: np.mean(np.log2(p / u)),
         "The sign is wrong: where PER has the smaller error, it gains."),
        (lambda u, p: np.log2(u.mean() / p.mean()),
         "Runs are pairs: take the ratio of each pair first, and the mean last."),
        (lambda u, p: np.log2(np.mean(u / p)), "Take the logarithm of each ratio, then the mean."),
        (lambda u, p: np.mean(np.log(u / p)), "That is the natural logarithm: log2 is asked for."),
    ])  # fmt: skip


def pooled_mean(first, second):
    new = ~np.isin(second[:, 0], first[:, 0])
    return np.concatenate([first[:, 1], second[new, 1]]).mean()


EXERCISES["09.2"] = Exercise(
    right=pooled_mean,
    # No seed in both; one in both, with another difference; and all of the first again.
    cases=[tuple(map(np.array, studies)) for studies in (
        ([[0, 3.0], [1, 5.0]], [[2, 1.0], [3, 2.0], [4, 0.5]]),
        ([[0, 3.0], [1, 5.0]], [[1, 4.5], [2, 1.0], [3, 2.0]]),
        ([[7, 2.0], [8, -1.0], [9, 4.0]], [[7, 2.0], [8, -1.0], [9, 4.0], [10, 8.0]]))],
    hints=[
        (lambda a, b: (a[:, 1].mean() + b[:, 1].mean()) / 2,
         "The mean of two means counts the pairs of the smaller study for more."),
        (lambda a, b: np.concatenate([a, b])[:, 1].mean(),
         "A seed in both studies is counted twice."),
        (lambda a, b: pooled_mean(b, a),
         "Where both have a seed, the difference of the first study counts."),
    ])  # fmt: skip
