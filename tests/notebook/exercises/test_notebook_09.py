"""The exercises of notebook 09: right answers of any form pass, wrong ones hear their mistake."""

import math

import numpy as np
import pytest
import torch


def rung(i, actors, base, steepness):
    return base ** (1 + steepness * i / max(actors - 1, 1))


def on_the_whole_ladder(i, actors, base, steepness):
    return base ** (1 + np.linspace(0, 1, actors) * steepness)[i]


def rung_by_logarithm(i, actors, base, steepness):
    if actors == 1:
        return base
    return math.exp(math.log(base) * (1 + steepness * i / (actors - 1)))


def returns(rewards, discount):
    return sum(discount**j * reward for j, reward in enumerate(rewards))


def priority(rewards, after, terminated, promised, discount, epsilon):
    target = returns(rewards, discount)
    if not terminated:
        target += discount ** len(rewards) * after
    return abs(target - promised) + epsilon


def from_the_end(rewards, after, terminated, promised, discount, epsilon):
    target = 0.0 if terminated else after
    for reward in reversed(rewards):
        target = reward + discount * target
    return abs(target - promised) + epsilon


def with_target(target):
    """|target − promised| + ε, with the value after the window or 0."""
    return lambda r, v, end, q, g, e: abs(target(r, 0.0 if end else v, g) - q) + e


def priority_in_place(rewards, after, terminated, promised, discount, epsilon):
    rewards.append(0.0 if terminated else after)
    return abs(returns(rewards, discount) - promised) + epsilon


def turnover(actors, steps, batches, size, capacity):
    return batches * size / (actors * steps), capacity / (actors * steps)


def work(incoming, message, call, each):
    return incoming * (call / message + each)


def shards(*arguments):
    return math.ceil(work(*arguments))


def shards_by_counting(*arguments):
    count = 1
    while work(*arguments) / count > 1:
        count += 1
    return count


RIGHT = [
    ("09.1", rung),
    ("09.1", on_the_whole_ladder),
    ("09.1", rung_by_logarithm),
    ("09.1", lambda i, n, b, s: torch.tensor(rung(i, n, b, s))),
    ("09.2", priority),
    ("09.2", from_the_end),
    ("09.2", lambda r, *rest: torch.tensor(priority(r, *rest), dtype=torch.float64)),
    ("09.2", lambda r, v, end, q, g, e: np.abs(returns([*r, (1 - end) * v], g) - q) + e),
    ("09.3", turnover),
    ("09.3", lambda *arguments: list(turnover(*arguments))),
    ("09.3", lambda n, f, u, b, c: np.array([u * b, c]) / n / f),
    ("09.4", shards),
    ("09.4", shards_by_counting),
    ("09.4", lambda *arguments: float(np.ceil(work(*arguments)))),
    ("09.4", lambda *arguments: -int(-work(*arguments) // 1)),
    ("09.4", lambda i, m, a, b: math.ceil(i / m * (a + m * b))),
    ("09.4", lambda i, m, a, b: math.ceil(i * (a + m * b) / m)),
    ("09.4", lambda i, m, a, b: math.ceil(i / (m / (a + m * b)))),
    ("09.4", lambda i, m, a, b: math.ceil(i / m * a + i * b)),
    ("09.4", lambda i, m, a, b: -(-(i / m * (a + m * b)) // 1)),
    ("09.4", lambda i, m, a, b: next(k for k in range(1, 99) if (a + m * b) * i / m / k <= 1)),
]

WRONG = [
    ("09.1", lambda i, n, b, s: b ** (1 + s * i / n), "divide by N − 1"),
    ("09.1", lambda i, n, b, s: b ** (1 + s * (i - 1) / max(n - 1, 1)), "counted from 0"),
    ("09.1", lambda i, n, b, s: b ** (1 + s * (i + 1) / n), "counted from 0"),
    ("09.1", lambda i, n, b, s: b ** (s * i / max(n - 1, 1)), "the exponent begins at 1"),
    ("09.1", lambda i, n, b, s: b ** ((1 + s) * i / max(n - 1, 1)), "outside of the product"),
    ("09.1", lambda i, n, b, s: b * (1 + s * i / max(n - 1, 1)), "that is a product"),
    ("09.1", lambda i, n, b, s: b**1 + s * i / max(n - 1, 1), "into brackets"),
    ("09.1", lambda i, n, b, s: b**1 + s * i / (n - 1), "into brackets"),
    ("09.1", lambda i, n, b, s: b ** (1 + s * i // max(n - 1, 1)), "divide with `/`"),
    ("09.1", lambda i, n, b, s: b ** (1 + i // max(n - 1, 1) * s), "divide with `/`"),
    ("09.1", lambda i, n, b, s: rung(n - 1 - i, n, b, s), "upside down"),
    ("09.1", lambda i, n, b, s: rung(i, n, b, 7), "7 is the paper's"),
    ("09.1", lambda i, n, b, s: rung(i, n, 0.4, s), "0.4 is the paper's"),
    ("09.1", lambda i, n, b, s: b ** (1 + s * i / (n - 1)), "divided by 0"),
    ("09.1", lambda i, n, b, s: rung(i, n, b, s) if n > 1 else 1.0, "A single one"),
    ("09.1", lambda i, n, b, s: b ** (1 + np.linspace(0, 1, n) * s), "a single number"),
    ("09.1", lambda i, n: 0.4, "keep these arguments"),
    ("09.2", lambda r, v, end, q, g, e: priority(r, v, False, q, g, e), "leave `after` out"),
    ("09.2", lambda r, v, end, q, g, e: priority(r, v, not end, q, g, e), "the other way round"),
    (
        "09.2",
        lambda r, v, end, q, g, e: abs(returns([*r, v * ~int(end)], g) - q) + e,
        "Write `not`",
    ),
    ("09.2", with_target(lambda r, v, g: returns(r, g) + g * v), "`len(rewards)` steps away"),
    ("09.2", with_target(lambda r, v, g: returns(r, g) + g**3 * v), "shorter than three steps"),
    ("09.2", with_target(lambda r, v, g: returns(r, g) + v), "is discounted as well"),
    ("09.2", with_target(lambda r, v, g: sum(r) + g ** len(r) * v), "by γ^j"),
    ("09.2", with_target(lambda r, v, g: g * returns([*r, v], g)), "count j from 0"),
    ("09.2", with_target(lambda r, v, g: r[0] + g * v), "add up all rewards"),
    ("09.2", lambda r, v, end, q, g, e: priority(r, v, end, 0, g, e), "must be taken away"),
    ("09.2", lambda r, v, end, q, g, e: priority(r, v, end, q, g, 0), "ε is missing"),
    ("09.2", lambda r, v, end, q, g, e: returns([*r, v * (not end)], g) - q + e, "never negative"),
    ("09.2", lambda *a: priority(*a) ** 0.6, "p, not p^α"),
    ("09.2", lambda *a: priority(*a[:5], 0) ** 2 + a[5], "squared"),
    ("09.2", priority_in_place, "it changes `rewards`"),
    ("09.2", lambda r, v, end, q, g, e: priority(r, v, end, q, g, 1e-6), "the argument `epsilon`"),
    ("09.2", lambda *a: min(priority(*a[:5], 0), 1.0) + a[5], "the error is cut off at 1"),
    ("09.2", lambda *a: min(priority(*a), 1.0), "the priority is cut off at 1"),
    (
        "09.2",
        lambda r, v, end, q, g, e: abs(returns([*r, v * (not end)], g) - q + e),
        "first, then add",
    ),
    ("09.3", lambda *a: turnover(*a)[::-1], "in this order"),
    ("09.3", lambda n, f, u, b, c: turnover(n, f, u, 1, c), "draws `batch_size` transitions"),
    ("09.3", lambda n, f, u, b, c: turnover(1, f, u, b, c), "those of one actor"),
    ("09.3", lambda n, f, u, b, c: (n * f / u / b, c / n / f), "the first is upside down"),
    ("09.3", lambda n, f, u, b, c: (u * b / n / f, n * f / c), "the second is upside down"),
    ("09.3", lambda n, f, u, b, c: (u * b / n / f, c / u / b), "stays in the memory"),
    ("09.3", lambda n, f, u, b, c: (u * b / n / f, c / (n * f - u * b)), "takes nothing out"),
    ("09.3", lambda n, f, u, b, c: (u * b / c, c / n / f), "share of the memory"),
    ("09.3", lambda n, f, u, b, c: u * b / n / f, "return 2 things"),
    ("09.3", lambda n, f, u, b, c: (min(u * b / n / f, 1), c / n / f), "more than once"),
    ("09.3", lambda n, f, u, b, c: (round(u * b / n / f), c / n / f), "don't round the draws"),
    ("09.3", lambda n, f, u, b, c: (u * b / n / f, c // (n * f)), "don't round the seconds"),
    ("09.3", lambda n, f, u, b, c: (u * b // (n * f), c / n / f), "don't round the draws: `//`"),
    ("09.3", lambda n, f, u, b, c: (u * b // (n * f), c // (n * f)), "both times"),
    ("09.4", work, "round it up"),
    ("09.4", lambda *a: int(work(*a)), "rounded down"),
    ("09.4", lambda *a: round(work(*a)), "to the nearest"),
    ("09.4", lambda *a: int(work(*a)) + 1, "instead of adding 1"),
    ("09.4", lambda i, m, a, b: math.ceil(i * (a + b)), "once for a message"),
    ("09.4", lambda i, m, a, b: math.ceil(i / m * (a + b)), "not each message"),
    ("09.4", lambda i, m, a, b: math.ceil(i * b), "costs `per_call` as well"),
    ("09.4", lambda i, m, a, b: math.ceil(i / m * a), "costs `per_transition` as well"),
    ("09.4", lambda i, m, a, b: math.ceil(a + m * b), "the time of one message"),
    ("09.4", lambda i, m, a, b: math.ceil(i * (a + m * b)), "divide by `message`"),
    ("09.4", lambda i, m, a, b: math.ceil(i / m * (a + (m - 1) * b)), "the first as well"),
    ("09.4", lambda *a: math.ceil(work(*a) / 0.8), "a load of 1 is allowed"),
    ("09.4", lambda i, m, a, b: math.ceil(math.ceil(i / m) * (a + m * b)), "only once, at the end"),
    ("09.4", lambda i, m, a, b: math.ceil(math.ceil(i / m) * a + i * b), "only once, at the end"),
    ("09.4", lambda i, m, a, b: math.ceil(i // m * (a + m * b)), "messages of a second down"),
    ("09.4", lambda i, m, a, b: math.ceil(i // m * a + i * b), "messages of a second down"),
    ("09.4", lambda i, m, a, b: math.ceil(i / int(m / (a + m * b))), "what one shard takes in"),
    ("09.4", lambda i, m, a, b: math.ceil(i / math.ceil(m / (a + m * b))), "one shard takes in"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words
