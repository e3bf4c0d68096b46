"""The exercises of notebook 00: right answers of any form pass, wrong ones hear their mistake."""

import itertools
import math

import numpy as np
import pytest


def copies_counted(n, state):
    """Goes through all sequences of actions: those that take the right one up to the state."""
    sequences = itertools.product((0, 1), repeat=n)
    return sum(all(each[:state]) and each[state] for each in sequences)


def updates(error, step_size, tolerance):
    done = 0
    while abs(error) >= tolerance:
        error -= step_size * error
        done += 1
    return done


def exact(error, step_size, tolerance):
    return np.log(tolerance / abs(error)) / np.log(1 - step_size)


def same_amount_each_time(error, step_size, tolerance):
    amount, done, left = step_size * abs(error), 0, abs(error)
    while left >= tolerance:
        left -= amount
        done += 1
    return done


def without_size(error, step_size, tolerance):
    done = 0
    while error >= tolerance:
        error *= 1 - step_size
        done += 1
    return done


def until_not_above(error, step_size, tolerance):
    done = 0
    while abs(error) > tolerance:
        error *= 1 - step_size
        done += 1
    return done


def update_first(error, step_size, tolerance):
    for done in itertools.count(1):
        error *= 1 - step_size
        if abs(error) < tolerance:
            return done


def draws(size, alpha):
    return np.sum(np.arange(1, size + 1) ** -float(alpha))


def never(noted, actual):
    """Down the noted errors, until one that was found is larger than the next."""
    largest_found = -np.inf
    for reached, k in enumerate(np.argsort(-noted)):
        if noted[k] < largest_found:
            return len(noted) - reached
        largest_found = max(largest_found, actual[k])
    return 0


def never_by_playing(noted, actual):
    noted, seen = list(noted), []
    for _ in range(100):
        k = noted.index(max(noted))
        seen.append(k)
        noted[k] = actual[k]
    return len(set(range(len(noted))) - set(seen))


def never_in_place(noted, actual):
    for _ in range(100):
        k = np.argmax(noted)
        noted[k] = -actual[k]
    return int((noted > 0).sum())


def never_until_it_grows(noted, actual):
    left = len(noted)
    for k in np.argsort(noted)[::-1]:
        left -= 1
        if actual[k] > noted[k]:
            break
    return left


RIGHT = [
    ("00.1", lambda n, state: 2 ** (n - 1 - state)),
    ("00.1", lambda n, state: 1 << n - state - 1),
    ("00.1", lambda n, state: 2.0**n / 2 ** (state + 1)),
    ("00.1", lambda n, state: np.array(2) ** (n - 1 - state)),
    ("00.1", copies_counted),
    ("00.2", updates),
    ("00.2", lambda e, s, t: max(0, math.floor(exact(e, s, t)) + 1)),
    ("00.2", lambda e, s, t: np.floor(np.maximum(-1, exact(e, s, t))) + 1),
    ("00.2", lambda e, s, t: updates(np.float32(e), np.float32(s), t)),
    ("00.2", lambda e, s, t: np.sum(abs(e) * (1 - s) ** np.arange(200) >= t)),
    ("00.3", draws),
    ("00.3", lambda size, alpha: math.fsum(1 / rank**alpha for rank in range(1, size + 1))),
    ("00.3", lambda size, alpha: np.float32(draws(size, alpha))),
    ("00.3", lambda size, alpha: np.cumsum((np.arange(size) + 1.0) ** -alpha)[-1]),
    ("00.4", never),
    ("00.4", never_by_playing),
    ("00.4", lambda noted, actual: np.array(float(never(noted, actual)))),
]

WRONG = [
    ("00.1", lambda n, state: 2**state, "the later a state"),
    ("00.1", lambda n, state: 2 ** (n - state), "Half of them take one action"),
    ("00.1", lambda n, state: 2 ** (n - 2 - state), "off by one"),
    ("00.1", lambda n, state: 2**n, "the number of all sequences"),
    ("00.1", lambda n, state: n - 1 - state, "each of them doubles"),
    ("00.1", lambda n, state: 2 * (n - 1 - state), "raise 2 to the number"),
    ("00.1", lambda n, state: 2 ** (n + 1) - 2, "the whole memory"),
    ("00.1", lambda n, state: {5: {0: 16, 2: 4, 4: 1}, 8: {3: 16}}[n][state], "KeyError: 6"),
    ("00.1", lambda n, state: {5: 16 >> state, 8: 16}.get(n, 0), "it should be 8, yours is 0"),
    ("00.1", lambda n, state: 2 ** (4 - state), "does not change with `n`"),
    ("00.1", lambda n, state: str(2 ** (n - 1 - state)), "without quotation marks"),
    ("00.1", lambda n, state: print(2 ** (n - 1 - state)), "is the `return` missing?"),
    ("00.1", 16, "a function is asked for"),
    ("00.2", same_amount_each_time, "what is *left*"),
    ("00.2", lambda e, s, t: max(0, math.ceil((abs(e) - t) / s)), "what is *left*"),
    ("00.2", lambda e, s, t: updates(e, 1 - s, t), "what is left is the share 1 − step_size"),
    ("00.2", lambda e, s, t: updates(e, s, t) + 1, "one too many"),
    ("00.2", lambda e, s, t: int(exact(e, s, t)), "one too few"),
    ("00.2", lambda e, s, t: exact(e, s, t) // 1, "one too few"),
    ("00.2", lambda e, s, t: math.ceil(exact(e, s, t)), "never a negative number"),
    ("00.2", exact, "round up"),
    ("00.2", lambda e, s, t: max(0, round(exact(e, s, t))), "round *up*"),
    ("00.2", until_not_above, "equal is not yet smaller"),
    ("00.2", lambda e, s, t: max(0, math.ceil(exact(e, s, t))), "equal is not yet smaller"),
    ("00.2", lambda e, s, t: np.ceil(np.maximum(0, exact(e, s, t))), "equal is not yet smaller"),
    ("00.2", update_first, "compare it before the first update"),
    ("00.2", lambda e, s, t: max(1, until_not_above(e, s, t)), "before the first update"),
    ("00.2", without_size, "an error of −1 is as far off"),
    ("00.2", lambda e, s, t: updates(e, s, t**0.5), "not for its square"),
    ("00.2", lambda e, s, t: max(0, math.ceil(np.log(abs(e) / t) / s)), "only comes near that"),
    ("00.2", lambda e, s, t: abs(e) * (1 - s) ** updates(e, s, t), "the number of updates"),
    ("00.2", lambda e, s, t: updates(e, 0.25, t), "does not change with `step_size`"),
    ("00.2", lambda e, s, t: updates(e, s, 0.03), "does not change with `tolerance`"),
    ("00.2", lambda e, s, t: math.ceil(math.log(e / t)), "change with `step_size`"),
    ("00.2", lambda e, s, t: math.log(e / t, 1 / (1 - s)), "round up"),
    ("00.2", lambda e, s, t: 13, "is always 13"),
    ("00.2", lambda e: 13, "is called with (error, step_size, tolerance)"),
    ("00.3", lambda n, a: 1 / draws(n, a), "that is the probability P"),
    ("00.3", lambda n, a: sum(k**-a for k in range(1, n)), "range(1, size) ends at size − 1"),
    ("00.3", lambda n, a: sum(k**-a for k in range(2, n + 1)), "rank 1 is missing"),
    ("00.3", lambda n, a: sum(k**-a for k in range(1, n + 2)), "one rank too many"),
    ("00.3", lambda n, a: sum(k**a for k in range(1, n + 1)), "the *smaller* the priority"),
    ("00.3", lambda n, a: draws(n, 1.0), "where is α"),
    ("00.3", lambda n, a: draws(n, 0.7), "does not change with `alpha`"),
    ("00.3", lambda n, a: draws(10, a), "does not change with `size`"),
    ("00.3", lambda n, a: draws(n, 1.0) ** a, "raise each 1 / rank to α first"),
    ("00.3", lambda n, a: n**a * draws(n, a), "the *smallest* error"),
    ("00.3", lambda n, a: n, "that is uniform replay"),
    ("00.3", lambda n, a: 1.0, "that is its share of all priorities"),
    ("00.3", lambda n, a: sum(k**-a for k in range(n + 1)), "ZeroDivisionError"),
    ("00.3", lambda n, a: np.arange(1, n + 1) ** -a, "a single number is asked for"),
    ("00.4", lambda noted, actual: len(noted) - never(noted, actual), "how many it does choose"),
    ("00.4", lambda noted, actual: (noted < max(actual)).sum(), "cannot hold it"),
    ("00.4", lambda noted, actual: len(noted) - 1, "noted[k] becomes actual[k]"),
    ("00.4", lambda noted, actual: never(-noted, -actual), "takes the *largest*"),
    ("00.4", never_until_it_grows, "larger than all *other* noted errors"),
    ("00.4", lambda noted, actual: sum(actual > noted), "whether an error has grown"),
    ("00.4", lambda noted, actual: sum(actual < noted), "has become smaller does not matter"),
    ("00.4", lambda noted, actual: never(noted, actual) + 1, "one too many"),
    ("00.4", lambda noted, actual: max(0, never(noted, actual) - 1), "one too few"),
    ("00.4", lambda noted, actual: 0, "greedy replay stays there"),
    ("00.4", never_in_place, "it changes `noted`"),
    ("00.4", lambda noted, actual: np.argsort(noted), "a single number is asked for"),
    ("00.4", lambda noted, actual: {2, 4}, "a set has no order"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words
