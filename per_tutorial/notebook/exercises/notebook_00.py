"""Notebook 00, the Blind Cliffwalk: copies of a transition, how fast a value is learned, how often
the first rank is drawn, and what greedy replay never looks at again."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from per_tutorial.notebook.checking.answers import Hint, that_ends
from per_tutorial.notebook.checking.declaring import Array, function_exercise

# 00.1: how many copies of each transition of a state the memory holds -----------------------------


def copies(n: int, state: int) -> int:
    return 2 ** (n - 1 - state)


function_exercise(
    "00.1", copies, "n state",
    [(5, 4), (5, 0), (8, 3), (5, 2), (6, 2), (7, 6), (3, 1), (10, 2), (9, 5)], [
    (lambda n, s: 2**s,
     "that grows along the walk; the later a state, the fewer sequences reach it."),
    (lambda n, s: 2 ** (n - s),
     "that many sequences reach the state. Half of them take one action there, and half the "
     "other."),
    (lambda n, s: 2.0 ** (n - 2 - s),
     "off by one: the last state is reached by two sequences, so there is one copy of each of "
     "its transitions."),
    (lambda n, s: 2 ^ (n - 1 - s), lambda n, s: 2 ^ n - 1 - s,
     "`^` is not a power in Python: `**` is."),
    (lambda n, s: 2**n, "that is the number of all sequences; only some of them reach the state."),
    (lambda n, s: 2 ** (n - 1),
     "that is right for state 0 alone: a later state is reached by fewer sequences."),
    (lambda n, s: 2 ** (n + 1) - 2, "that is the size of the whole memory."),
    (lambda n, s: n - 1 - s,
     "that is the number of actions that are still free; each of them doubles the number of "
     "copies."),
    (lambda n, s: 2 * (n - 1 - s),
     "each free action *doubles* the number: raise 2 to the number of free actions."),
    (lambda n, s: (n - 1 - s) ** 2,
     "the other way round: 2 is raised to the number of free actions."),
    (lambda n, s: 1, "that is right for the last state alone: an earlier state has more copies."),
], larger=[(11, 0), (12, 7), (14, 1), (16, 3)])  # fmt: skip

# 00.2: updates until the error of a value is small ------------------------------------------------


def updates_until_close(error: float, step_size: float, tolerance: float) -> int:
    updates = 0
    while abs(error) >= tolerance:
        error = (1 - step_size) * error
        updates += 1
    return updates


def exact_updates(error: float, step_size: float, tolerance: float) -> float:
    """`updates_until_close` before rounding up; negative if the error is small from the start."""
    return math.log(tolerance / abs(error)) / math.log(1 - step_size)


# (error, step_size, tolerance). Where an error reaches the tolerance exactly, both are powers of
# two, so that logarithms are exact too; elsewhere it is never so close that rounding decides.
ERRORS = [
    (1.0, 0.25, 0.03), (1.0, 0.5, 0.03), (1.0, 0.25, 0.002), (0.4, 0.25, 0.05), (0.4, 0.25, 0.03),
    (-1.0, 0.25, 0.03), (0.02, 0.25, 0.03), (-2.0, 0.1, 0.05), (5.0, 0.5, 0.03), (-0.01, 0.5, 0.03),
    (1.0, 0.125, 0.03), (1.0, 0.5, 0.25), (-0.25, 0.5, 0.25),
]  # fmt: skip


def updates_until_equal(error: float, step_size: float, tolerance: float) -> int:
    return max(0, math.ceil(exact_updates(error, step_size, tolerance)))


def straight_lines() -> list[Callable[..., float]]:
    """Wrong answers: the error shrinks by a constant amount, with several ways of rounding."""

    def line(size, amount, whole, least):
        return lambda e, s, t: max(least, whole((size(e) - t) / amount(e, s, t)))

    sizes = abs, lambda e: e
    amounts = (
        lambda e, s, t: s * abs(e),
        lambda e, s, t: s * e,
        lambda e, s, t: s,
        lambda e, s, t: s * t,
        lambda e, s, t: s * (abs(e) - t),
    )
    wholes = math.ceil, lambda n: math.floor(n) + 1, math.floor, round, float
    some = itertools.product(sizes, amounts, wholes, (0, -math.inf))
    return [line(*each) for each in some]


function_exercise("00.2", updates_until_close, "error step_size tolerance", ERRORS, [
    (*straight_lines(),
     "each update takes away a share of what is *left* of the error, not the same amount again and "
     "again: 1, 0.75, 0.5625, …"),
    (lambda e, s, t: updates_until_close(e, 1 - s, t),
     "`step_size` is what an update takes away; what is left is the share 1 − step_size."),
    (lambda e, s, t: updates_until_close(e, s, t) + 1,
     "one too many: count the updates before which the error is still too large."),
    (lambda e, s, t: max(0, updates_until_close(e, s, t) - 1),
     lambda e, s, t: math.floor(exact_updates(e, s, t)),
     lambda e, s, t: int(exact_updates(e, s, t)),
     "one too few: after this many updates the error is not yet below the tolerance."),
    (updates_until_equal,
     "equal is not yet smaller: an error that equals the tolerance needs another update."),
    (lambda e, s, t: max(1, updates_until_close(e, s, t)),
     lambda e, s, t: max(1, updates_until_equal(e, s, t)),
     "an error that is small from the start needs 0 updates: compare it before the first update."),
    (lambda e, s, t: math.ceil(exact_updates(e, s, t)),
     "an error that is small from the start needs 0 updates, never a negative number."),
    (lambda e, s, t: max(0.0, exact_updates(e, s, t)), exact_updates,
     "the number of updates is whole: round up."),
    (lambda e, s, t: max(0, round(exact_updates(e, s, t))), "round *up*, not to the nearest."),
    (lambda e, s, t: updates_until_close(max(e, 0.0), s, t),
     "an error of −1 is as far off as one of 1: compare its size with the tolerance."),
    (lambda e, s, t: updates_until_close(e, s, math.sqrt(t)),
     "the tolerance is for the error itself, not for its square."),
    (lambda e, s, t: max(0, math.ceil(math.log(abs(e) / t) / s)),
     "an update multiplies the error by 1 − step_size; exp(−step_size) is only close to that."),
    (lambda e, s, t: abs(e) * (1 - s) ** updates_until_close(e, s, t),
     lambda e, s, t: e * (1 - s) ** updates_until_close(e, s, t),
     "that is what is left of the error; the number of updates is asked for."),
], larger=[(1.0, 0.05, 0.03), (1.0, 0.01, 0.035), (-20.0, 0.003, 0.001)],
   calls=partial(that_ends, hint=(
       "your loop never ends. Does each update change what the loop tests? And does it take away a "
       "share of what is *left*, so that the error can't jump over 0?")))  # fmt: skip

# 00.3: draws until the largest error comes up, by rank --------------------------------------------


def draws_until_largest(size: int, alpha: float) -> float:
    return sum((1 / rank) ** alpha for rank in range(1, size + 1))


def added_up(answer: Any, *given: Any) -> Any:
    """What an answer returns; a `Hint` if it lists the terms instead of adding them up."""
    result = answer(*given)
    if isinstance(result, Iterator):
        raise Hint("that lists the numbers one by one: add them up, `sum(…)`.")
    return result


function_exercise(
    "00.3", draws_until_largest, "size alpha",
    [(10, 0.7), (10, 0.4), (10, 1.0), (100, 0.7), (2, 1.0), (500, 0.6), (1, 0.7), (10, 0.0)], [
    (lambda n, a: 1 / draws_until_largest(n, a),
     "that is the probability P that it comes up in one draw; it takes 1/P draws on average."),
    (lambda n, a: draws_until_largest(n - 1, a),
     "one rank is missing: range(1, size) ends at size − 1."),
    (lambda n, a: draws_until_largest(n, a) - 1, "rank 1 is missing in the sum."),
    (lambda n, a: draws_until_largest(n + 1, a), "one rank too many: the last one is `size`."),
    (lambda n, a: draws_until_largest(n, -a),
     "the other way round: the *higher* the rank's number, the *smaller* the priority."),
    (lambda n, a: draws_until_largest(n, 1.0), "where is α? Each 1 / rank is raised to it."),
    (lambda n, a: draws_until_largest(n, 1.0) ** a, "raise each 1 / rank to α first, then add up."),
    (lambda n, a: n**a * draws_until_largest(n, a),
     "that is how long the *smallest* error takes: its rank is `size`, that of the largest is 1."),
    (lambda n, a: a * draws_until_largest(n, 1.0), "α is an exponent: `**`, not `*`."),
    (lambda n, a: n, "that is uniform replay; here the largest error comes up more often."),
    (lambda n, a: 1 / n, "that is the probability that uniform replay draws it."),
    (lambda n, a: n**a,
     "divide by the sum over *all* ranks: priorities are not yet probabilities."),
    (lambda n, a: 1,
     "its priority is 1, but its probability is not: that is its share of the sum of all "
     "priorities."),
], larger=[(3_000, 0.5), (20_000, 0.8)], calls=added_up)  # fmt: skip

# 00.4: what greedy replay never chooses again -----------------------------------------------------


def never_chosen(noted: Array, actual: Array) -> int:
    noted = noted.copy()
    chosen: set[int] = set()
    while (k := int(np.argmax(noted))) not in chosen:
        chosen.add(k)
        noted[k] = actual[k]
    return len(noted) - len(chosen)


def until_one_grows(noted: Array, actual: Array) -> int:
    """How many are left when greedy replay first finds an error that is larger than noted."""
    for seen, k in enumerate(np.argsort(-noted), start=1):
        if actual[k] > noted[k]:
            return len(noted) - seen
    return 0


def count_them(result: Any, right: int) -> str | None:
    """A hint about a mask whose True values should be counted."""
    if np.ndim(result) == 1 and np.asarray(result).dtype == bool:
        return "that says for each transition whether it is so: count the True ones, `np.sum(…)`."
    return None


def shuffled(size: int) -> Array:
    """Distinct numbers, (2, size)."""
    return np.random.default_rng(size).permutation(2 * size).reshape(2, size) / size


# Greedy replay gets stuck at once, after some choices or after all. Sometimes it never reaches the
# largest error, and an error that has grown is not always the largest.
NOTED = [
    ([0.9, 0.5, 0.3, 0.7, 0.1, 0.45], [0.2, 0.6, 0.05, 0.4, 0.8, 0.02]),
    ([0.2, 1.1, 0.6, 0.9], [3.0, 1.5, 0.1, 0.05]),
    ([0.5, 0.4, 0.3], [0.05, 0.02, 0.01]),
    ([0.3, 0.8, 0.1, 0.95, 0.6, 0.2, 0.7], [0.31, 0.25, 0.9, 0.15, 0.05, 0.02, 0.12]),
    ([0.82, 0.4, 0.9, 0.1, 0.6, 0.3, 0.22, 0.7], [0.35, 0.01, 0.5, 0.6, 0.2, 0.04, 0.03, 0.91]),
    ([1.3, 2.4, 0.7, 1.9, 0.2], [0.1, 1.0, 0.9, 0.3, 0.6]),
]


function_exercise("00.4", never_chosen, "noted actual", [map(np.array, row) for row in NOTED], [
    (lambda noted, actual: len(noted) - never_chosen(noted, actual),
     "that is how many it does choose."),
    (lambda noted, actual: len(noted) - never_chosen(noted, actual) - 1,
     "that is how many it leaves behind; those that it never reaches are asked for."),
    (lambda noted, actual: np.sum(noted < actual.max()),
     "an error that greedy replay has not noted yet cannot hold it: it must choose that "
     "transition first."),
    (lambda noted, actual: np.sum(noted < actual[np.argmax(noted)]),
     lambda noted, actual: np.sum(noted <= actual[np.argmax(noted)]),
     "that looks at the first choice alone. Greedy replay notes what it finds there, and then "
     "takes the largest again, until it meets one that it has chosen before."),
    (lambda noted, actual: len(noted) - 1,
     "each time it notes what it finds: noted[k] becomes actual[k]."),
    (lambda noted, actual: never_chosen(-noted, -actual), "greedy replay takes the *largest*."),
    (until_one_grows,
     "it stays where the error that it finds is larger than all *other* noted errors, even if that "
     "error has become smaller."),
    (lambda noted, actual: np.sum(actual > noted),
     "whether an error has grown does not matter; what counts is which noted error is the "
     "largest."),
    (lambda noted, actual: np.sum(actual < noted),
     "whether an error has become smaller does not matter; what counts is which noted error is "
     "the largest."),
    (lambda noted, actual: never_chosen(noted, actual) + 1,
     "one too many: the one that it stays with is chosen, too."),
    (lambda noted, actual: never_chosen(noted, actual) - 1, "one too few."),
    (lambda noted, actual: 0,
     "not all come up: as soon as an error that it has found is larger than all others that are "
     "noted, greedy replay stays there."),
], larger=[shuffled(n) for n in (30, 300, 1_000)], forms=count_them,
   calls=partial(that_ends, lines=6_000_000, hint=(
       "your loop never ends. Greedy replay doesn't, either: stop when it chooses a transition for "
       "the second time.")))  # fmt: skip
