"""Notebook 09, should I use it: each side at its best rate, and how many pairs are needed."""

import numpy as np

from per_tutorial.notebook.checking import EXERCISES, Exercise


def tuned_difference(uniform, per, new_uniform, new_per):
    best_uniform = uniform.mean(axis=1).argmax()
    best_per = per.mean(axis=1).argmax()
    return np.mean(new_per[best_per] - new_uniform[best_uniform])


def chosen_by_new_runs(uniform, per, new_uniform, new_per):
    return tuned_difference(new_uniform, new_per, new_uniform, new_per)


def compared_on_first_runs(uniform, per, new_uniform, new_per):
    return tuned_difference(uniform, per, uniform, per)


def one_rate_for_both(uniform, per, new_uniform, new_per):
    return tuned_difference(uniform, uniform, new_uniform, new_per)


def uniform_minus_per(*scores):
    return -tuned_difference(*scores)


EXERCISES["09.1"] = Exercise(
    right=tuned_difference,
    cases=[tuple(map(np.array, scores)) for scores in (
        ([[3.0, 5.0], [2.0, 1.0]], [[1.0, 2.0], [4.0, 4.0]],
         [[2.0, 4.0], [5.0, 6.0]], [[7.0, 1.0], [3.0, 2.0]]),
        ([[1.0, 1.0], [4.0, 2.0], [9.0, 0.0]], [[6.0, 1.0], [2.0, 3.0], [0.0, 0.0]],
         [[1.0, 5.0], [2.0, 9.0], [0.0, 4.0]], [[8.0, 3.0], [9.0, 9.0], [1.0, 2.0]]))],
    hints=[
        (chosen_by_new_runs, "The new seeds must have no part in the choice: they only compare."),
        (compared_on_first_runs, "The first seeds only choose: compare on the new ones."),
        (one_rate_for_both, "Each side has its own best rate."),
        (uniform_minus_per, "The sign is wrong: PER − uniform is asked for."),
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
