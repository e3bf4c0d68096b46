"""Notebook 00, the Blind Cliffwalk: copies of a transition, how fast a value is learned, how often
the first rank is drawn, and what greedy replay never looks at again."""

import numpy as np

from per_tutorial.notebook.checking import EXERCISES, Exercise


def copies(n, state):
    return 2 ** (n - 1 - state)


EXERCISES["00.1"] = Exercise(right=copies, cases=[(3, 1), (6, 2), (5, 0), (8, 7)], hints=[
    (lambda n, s: 2**s, "That grows along the walk, but fewer sequences reach a later state."),
    (lambda n, s: 2 ** (n - s),
     "That many sequences reach the state. Half of them take the other action there."),
    (lambda n, s: 2 ^ (n - 1 - s), "`^` is not a power in Python: `**` is."),
    (lambda n, s: n - 1 - s, "That many actions are free: each *doubles* the number of copies."),
])  # fmt: skip


def updates_until_close(error, step_size, tolerance):
    updates = 0
    while abs(error) >= tolerance:
        error = (1 - step_size) * error
        updates += 1
    return updates


EXERCISES["00.2"] = Exercise(
    right=updates_until_close,
    # Both signs, small from the start, and equal to the tolerance on the way: still too large.
    cases=[(1.0, 0.5, 0.25), (1.0, 0.25, 0.03), (-1.0, 0.1, 0.03), (0.02, 0.25, 0.03)],
    hints=[
        (lambda e, s, t: max(0, np.ceil((abs(e) - t) / s)),
         "Each update takes away a share of what is *left*, not the same amount again and again."),
        (lambda e, s, t: updates_until_close(e, s, t) + 1,
         "One too many: count the updates before which the error is still too large."),
        (lambda e, s, t: max(0, np.ceil(np.log(t / abs(e)) / np.log(1 - s))),
         "An error that equals the tolerance is not yet below it: it needs another update."),
        (lambda e, s, t: updates_until_close(e, 1 - s, t),
         "`step_size` is what an update takes away; what is left is the share 1 − step_size."),
    ])  # fmt: skip


def draws_until_largest(size, alpha):
    return sum((1 / rank) ** alpha for rank in range(1, size + 1))


EXERCISES["00.3"] = Exercise(
    right=draws_until_largest, cases=[(2, 1.0), (10, 0.7), (100, 0.4)], hints=[
        (lambda n, a: 1 / draws_until_largest(n, a),
         "That is the probability P that it comes up in one draw; it takes 1/P draws on average."),
        (lambda n, a: draws_until_largest(n - 1, a),
         "One rank is missing: range(1, size) ends at size − 1."),
        (lambda n, a: draws_until_largest(n, -a),
         "The other way round: the *higher* the rank's number, the *smaller* the priority."),
        (lambda n, a: draws_until_largest(n, 1.0) ** a,
         "Raise each 1 / rank to α first, then add up."),
    ])  # fmt: skip


def never_chosen(noted, actual):
    noted = noted.copy()
    chosen = set()
    while (k := int(np.argmax(noted))) not in chosen:
        chosen.add(k)
        noted[k] = actual[k]
    return len(noted) - len(chosen)


EXERCISES["00.4"] = Exercise(
    right=never_chosen,
    # It gets stuck at once, after some choices, or after all.
    cases=[(np.array(noted), np.array(actual)) for noted, actual in (
        ([0.2, 1.1, 0.6, 0.9], [3.0, 1.5, 0.1, 0.05]), ([0.5, 0.4, 0.3], [0.05, 0.02, 0.01]),
        ([1.3, 2.4, 0.7, 1.9, 0.2], [0.1, 1.0, 0.9, 0.3, 0.6]),
        ([0.3, 0.8, 0.1, 0.95, 0.6, 0.2, 0.7], [0.31, 0.25, 0.9, 0.15, 0.05, 0.02, 0.12]),
        np.random.default_rng(30).permutation(60).reshape(2, 30) / 30)],
    hints=[
        (lambda noted, actual: len(noted) - never_chosen(noted, actual),
         "That is how many it does choose."),
        (lambda noted, actual: np.sum(noted < actual.max()),
         "An error that was not noted yet cannot hold it: it must choose that transition first."),
        (lambda noted, actual: np.sum(noted < actual[np.argmax(noted)]),
         "That looks at the first choice alone. It notes what it finds, and takes the largest."),
        (lambda noted, actual: len(noted) - 1,
         "Each time it notes what it finds: noted[k] becomes actual[k]."),
    ])  # fmt: skip
