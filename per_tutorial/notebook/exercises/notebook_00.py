"""Notebook 00, the Blind Cliffwalk: how often uniform and rank-based replay draw what matters."""

from per_tutorial.notebook.checking import EXERCISES, Exercise


def draws_until_right(n, state):
    return (2 ** (n + 1) - 2) / 2 ** (n - 1 - state)


EXERCISES["00.1"] = Exercise(
    right=draws_until_right, cases=[(3, 1), (6, 2), (5, 0), (8, 7)], hints=[
        (lambda n, s: 2 ** (n - 1 - s),
         "That is the number of copies. How large is the memory that one draws from?"),
        (lambda n, s: 2 ** (n - 1 - s) / (2 ** (n + 1) - 2),
         "That is the probability P that one draw hits; it takes 1/P draws on average."),
        (lambda n, s: 2 ** (s + 1),
         "2ⁿ is the number of episodes, and half of them have more than one transition."),
        (lambda n, s: (2 ** (n + 1) - 2) / 2 ** (n - s),
         "Half of the sequences that reach the state take the other action there."),
        (lambda n, s: (2 ** (n + 1) - 2) / 2**s,
         "Fewer sequences reach a later state: the number of copies falls along the walk."),
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
