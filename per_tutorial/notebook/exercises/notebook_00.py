"""Notebook 00, the Blind Cliffwalk: copies of a transition, how fast a value is learned, how often
the first rank is drawn, and what greedy replay never looks at again."""

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


def draws_until_largest(size, alpha):
    return sum((1 / rank) ** alpha for rank in range(1, size + 1))


EXERCISES["00.2"] = Exercise(
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
