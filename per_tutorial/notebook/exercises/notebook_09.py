"""Notebook 09, should I use it: the gain of pairs of runs, and how many pairs are needed."""

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


def pairs_needed(differences, half_width):
    return int(np.ceil((1.96 * differences.std(ddof=1) / half_width) ** 2))


EXERCISES["09.2"] = Exercise(
    right=pairs_needed,
    cases=[(np.array([12.0, -3.0, 8.0, 1.0]), 5.0), (np.array([0.2, 0.1, 0.4]), 0.05)],
    hints=[
        (lambda d, w: int(np.ceil((1.96 * d.std() / w) ** 2)),
         "With n in its denominator the standard deviation is too small: use ddof=1."),
        (lambda d, w: int((1.96 * d.std(ddof=1) / w) ** 2),
         "So many pairs are just too few: round up."),
        (lambda d, w: int(np.ceil((2 * 1.96 * d.std(ddof=1) / w) ** 2)),
         "The interval reaches half_width to either side; its whole width is twice that."),
        (lambda d, w: int(np.ceil(1.96 * d.std(ddof=1) / w)),
         "The reach shrinks with the square root of the pairs, so their number is a square."),
    ])  # fmt: skip
