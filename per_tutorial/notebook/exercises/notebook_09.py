"""Notebook 09, many machines: the ladder of ε, a first priority, the turnover, the shards."""

import math
from collections.abc import Sequence

import numpy as np

from per_tutorial.notebook.checking.declaring import Function, function_exercise

# 09.1: the ladder of ε ----------------------------------------------------------------------------


def rung(i: int, actors: int, base: float, steepness: float) -> float:
    return base ** (1 + steepness * i / max(actors - 1, 1))


function_exercise("09.1", rung, "i actors base steepness", [
    *((i, 4, 0.4, 7.0) for i in range(4)), (2, 4, 0.4, 3.0), (2, 9, 0.4, 7.0), (5, 8, 0.7, 7.0),
    (359, 360, 0.4, 7.0), (1, 2, 0.4, 7.0),
], [
    (lambda i, n, base, s: base ** (1 + s * i / n),
     "the last of N actors has i = N − 1, and its exponent is 1 + steepness: divide by N − 1."),
    (lambda i, n, base, s: base ** (1 + s * (i - 1) / max(n - 1, 1)),
     "`i` is counted from 0 here: the first actor gets `base` itself."),
    (lambda i, n, base, s: base ** (1 + s * (i + 1) / n),
     "`i` is counted from 0 here, and the last one is N − 1: divide `i` by N − 1."),
    (lambda i, n, base, s: base ** (s * i / max(n - 1, 1)),
     "the exponent begins at 1: without it, the first actor has ε = 1."),
    (lambda i, n, base, s: base ** ((1 + s) * i / max(n - 1, 1)),
     "the exponent goes from 1 to 1 + steepness: the 1 is outside the product."),
    (lambda i, n, base, s: base**1 + s * i / max(n - 1, 1),
     "a power comes before a sum: put the whole exponent in brackets."),
    (lambda i, n, base, s: base ** (1 + s * i // max(n - 1, 1)),
     lambda i, n, base, s: base ** (1 + s * (i // max(n - 1, 1))),
     "`//` rounds down, and the ladder loses rungs: divide with `/`."),
    (lambda i, n, base, s: base * (1 + s * i / max(n - 1, 1)),
     "that is a product; the bracket is the exponent of `base`."),
    (lambda i, n, base, s: base * (1 - i / max(n - 1, 1)),
     "that goes down evenly to 0; on the ladder the exponent grows evenly."),
    (lambda i, n, base, s: base ** (1 + s * (n - 1 - i) / max(n - 1, 1)),
     "the ladder is upside down: the first actor explores most."),
    (lambda i, n, base, s: base ** -(1 + s * i / max(n - 1, 1)),
     "ε is a share, below 1: the exponent is positive."),
    (lambda i, n, base, s: base ** (1 + s * i * (n - 1)),
     "`i` is divided by N − 1, not multiplied."),
    (lambda i, n, base, s: base ** (1 + 7 * i / max(n - 1, 1)),
     "7 is the paper's; here `steepness` is an argument."),
    (lambda i, n, base, s: 0.4 ** (1 + s * i / max(n - 1, 1)),
     "0.4 is the paper's; here `base` is an argument."),
], later=[(
    [(0, 1, 0.4, 7.0), (0, 1, 0.7, 3.0)],
    "right for several actors. A single one has i = 0 and N − 1 = 0: it gets `base`, and nothing "
    "may be divided by 0.",
)])  # fmt: skip

# 09.2: an actor's first priority ------------------------------------------------------------------


def discounted(rewards: Sequence[float], discount: float) -> float:
    return sum(discount**j * reward for j, reward in enumerate(rewards))


def window_error(rewards: Sequence[float], after: float, promised: float, discount: float) -> float:
    return discounted(rewards, discount) + discount ** len(rewards) * after - promised


def first_priority(
    rewards: Sequence[float],
    after: float,
    terminated: bool,
    promised: float,
    discount: float,
    epsilon: float,
    delta: Function = window_error,
) -> float:
    return abs(delta(rewards, after * (not terminated), promised, discount)) + epsilon


function_exercise("09.2", first_priority, "rewards after terminated promised discount epsilon", [
    ([1.0, 2.0, 0.5], 4.0, False, 3.0, 0.9, 0.01), ([1.0, 2.0, 0.5], 4.0, True, 3.0, 0.9, 0.01),
    ([1.0, 2.0], 4.0, False, 3.0, 0.9, 0.01), ([1.0], 4.0, True, 3.0, 0.9, 0.01),
    ([-1.0], 2.0, False, 1.5, 0.5, 0.01), ([1.0, 2.0, 0.5], 4.0, False, 9.0, 0.9, 0.01),
    ([1.0] * 5, 10.0, False, 2.0, 0.99, 0.5), ([0.0, 0.0], 1.0, False, 0.25, 0.5, 0.3),
], [
    (lambda r, v, end, q, g, e: abs(discounted(r, g) + g ** len(r) * v - q) + e,
     "where the episode has terminated, nothing follows: leave `after` out."),
    (lambda r, v, end, q, g, e: abs(discounted(r, g) + g ** len(r) * v * end - q) + e,
     "it is the other way round: `after` counts where the episode has not terminated."),
    (lambda r, v, end, q, g, e: abs(discounted(r, g) + g ** len(r) * v * ~int(end) - q) + e,
     "`~` is for arrays: it turns a single True or False into −2 or −1. Write `not`."),
    (dict(delta=lambda r, v, q, g: discounted(r, g) + g * v - q),
     "the value at the end is `len(rewards)` steps away: γ to that power."),
    (dict(delta=lambda r, v, q, g: discounted(r, g) + g**3 * v - q),
     "a window may be shorter than three steps: the power of γ is `len(rewards)`."),
    (dict(delta=lambda r, v, q, g: discounted(r, g) + g ** (len(r) - 1) * v - q),
     "the last reward is discounted by γᵏ⁻¹, and the value after it by γᵏ, k = `len(rewards)`."),
    (dict(delta=lambda r, v, q, g: discounted(r, g) + v - q),
     "the value at the end is discounted as well, by γ to the power of `len(rewards)`."),
    (dict(delta=lambda r, v, q, g: sum(r) + g ** len(r) * v - q),
     "the rewards are discounted: the j-th, counted from 0, by γ^j."),
    (dict(delta=lambda r, v, q, g: g * discounted(r, g) + g ** len(r) * v - q),
     dict(delta=lambda r, v, q, g: g * discounted(r, g) + g ** (len(r) + 1) * v - q),
     "the first reward is not discounted: count j from 0."),
    (dict(delta=lambda r, v, q, g: discounted(r[::-1], g) + g ** len(r) * v - q),
     "the first reward is not discounted, and the last one most: yours is the other way round."),
    (lambda r, v, end, q, g, e: abs(discounted(r, g) + (not end) * (g ** len(r) * v - q)) + e,
     "where the episode has terminated, only `after` is left out; `promised` is always "
     "subtracted."),
    (dict(delta=lambda r, v, q, g: r[0] + g * v - q),
     dict(delta=lambda r, v, q, g: r[0] + g ** len(r) * v - q),
     dict(delta=lambda r, v, q, g: r[-1] + g ** len(r) * v - q),
     "that is a single reward: add up all of the window."),
    (dict(delta=lambda r, v, q, g: discounted(r, g) + g ** len(r) * v),
     "that is the target; what was promised must be subtracted."),
    (lambda r, v, end, q, g, e: min(first_priority(r, v, end, q, g, 0), 1.0) + e,
     "the error is cut off at 1; a priority may be larger."),
    (lambda r, v, end, q, g, e: min(first_priority(r, v, end, q, g, e), 1.0),
     "the priority is cut off at 1; it may be larger."),
    (dict(delta=lambda r, v, q, g: discounted(r, g) + g ** len(r) * v + q),
     "what was promised is subtracted, not added."),
    (lambda r, v, end, q, g, e: first_priority(r, v, end, q, g, 0),
     "ε is missing, or a number of your own: add the argument `epsilon`."),
    (lambda r, v, end, q, g, e: abs(discounted(r, g) + g ** len(r) * v * (not end) - q + e),
     "take the size of the error first, then add ε."),
    (lambda r, v, end, q, g, e:
     discounted(r, g) + g ** len(r) * v * (not end) - q + e,
     "a priority is never negative: take the size of the error."),
    (lambda r, v, end, q, g, e: max(first_priority(r, v, end, q, g, 0), e),
     "ε is added to every priority, not used as a minimum."),
    (lambda r, v, end, q, g, e: first_priority(r, v, end, q, g, e) ** 0.6,
     "α is the memory's business: send p, not p^α."),
    (lambda r, v, end, q, g, e: first_priority(r, v, end, q, g, 0) ** 2 + e,
     "the error is squared: that is the loss. The priority is |δ| + ε."),
], larger=[
    ([0.12345, 0.5], 0.3, False, 0.1, 0.77, 0.0123),
    ([0.5, -0.25] * 20, 300.0, False, -10.0, 0.987, 1e-3),
])  # fmt: skip

# 09.3: the turnover -------------------------------------------------------------------------------


def turnover(
    actors: int, steps_per_second: float, batches: float, batch_size: int, capacity: int
) -> tuple[float, float]:
    incoming = actors * steps_per_second
    return batches * batch_size / incoming, capacity / incoming


function_exercise("09.3", turnover, "actors steps_per_second batches batch_size capacity", [
    (360, 35.0, 19.0, 512, 2_000_000), (360, 35.0, 19.0, 512, 20_000), (4, 100.0, 50.0, 32, 10_000),
    (4, 100.0, 50.0, 512, 10_000), (4, 25.0, 50.0, 32, 10_000), (8, 100.0, 50.0, 32, 10_000),
    (1, 200.0, 200.0, 32, 20_000), (4, 100.0, 10.0, 32, 10_000),
], [
    (lambda n, f, u, b, c: turnover(n, f, u, b, c)[::-1],
     "in this order, please: the draws of a transition, then the seconds."),
    (lambda n, f, u, b, c: (u / (n * f), c / (n * f)),
     "a minibatch draws `batch_size` transitions, not one."),
    (lambda n, f, u, b, c: (u * b / f, c / f),
     lambda n, f, u, b, c: (u * b / (n * f), c / f),
     lambda n, f, u, b, c: (u * b / f, c / (n * f)),
     "`steps_per_second` are those of one actor: there are `actors` of them."),
    (lambda n, f, u, b, c: (n * f / (u * b), c / (n * f)),
     "the first is upside down: for draws per transition, divide the draws by what comes in."),
    (lambda n, f, u, b, c: (u * b / (n * f), n * f / c),
     "the second is upside down: for seconds, divide the capacity by what comes in."),
    (lambda n, f, u, b, c: (u * b / (n * f), c / (u * b)),
     "what is drawn stays in the memory; what comes in overwrites: divide by that."),
    (lambda n, f, u, b, c: (u * b / (n * f), c / (n * f - u * b)),
     "drawing takes nothing out of a memory: only what comes in overwrites."),
    (lambda n, f, u, b, c: (u * b / c, c / (n * f)),
     "that is the share of the memory that is drawn in a second; divide by what comes in, not by "
     "the capacity."),
    (lambda n, f, u, b, c: (u * b * c / (n * f), c / (n * f)),
     "the capacity cancels in the first: in c / λ seconds u·B·c / λ draws meet c transitions."),
    (lambda n, f, u, b, c: (1 - np.exp(-u * b / (n * f)), c / (n * f)),
     "that is the chance of being drawn at all, if all draws are alike; the mean number is asked "
     "for."),
    (lambda n, f, u, b, c: (min(u * b / (n * f), 1.0), c / (n * f)),
     "a transition may be drawn more than once: the mean may be above 1."),
    (lambda n, f, u, b, c: (round(u * b / (n * f)), c / (n * f)),
     "don't round the draws: a mean need not be a whole number."),
    (lambda n, f, u, b, c: (u * b / (n * f), c // (n * f)),
     "don't round the seconds."),
    (lambda n, f, u, b, c: (round(u * b / (n * f), 2), round(c / (n * f))),
     "right but for the rounding: do not round."),
    (lambda n, f, u, b, c: (u * b // (n * f), c / (n * f)),
     "don't round the draws: `//` rounds down, so divide with `/`."),
    (lambda n, f, u, b, c: (u * b // (n * f), c // (n * f)),
     "`//` rounds down: divide with `/`, both times."),
    (lambda n, f, u, b, c: (u * b, c / (n * f)),
     "those are the draws of a second; divide by the transitions that come in during it."),
], names=["the draws of a transition", "the seconds"])  # fmt: skip

# 09.4: the shards ---------------------------------------------------------------------------------


def load(incoming: float, message: int, per_call: float, per_transition: float) -> float:
    """Seconds of work per second."""
    return incoming / message * per_call + incoming * per_transition


def shards_needed(*given: float, work: Function = load, up: Function = math.ceil) -> int:
    return up(work(*given))


function_exercise("09.4", shards_needed, "incoming message per_call per_transition", [
    (12_500.0, 100, 2e-3, 1e-4), (12_500.0, 100, 2e-3, 1e-3), (12_500.0, 1, 2e-3, 1e-4),
    (12_500.0, 10, 2e-3, 1e-4), (54_000.0, 100, 2e-3, 1e-4), (54_000.0, 100, 8e-3, 1e-4),
    (1_000.0, 100, 1e-3, 1e-5),
    (1_024.0, 128, 0.125, 0.00390625),  # powers of 2: exactly 5, however it is computed
    # The messages per second, or the transitions that one shard takes, are not whole numbers
    (50.0, 100, 1.5, 1e-3), (199.0, 100, 1.0, 1e-3),
    (204.5, 128, 1.5, 0.0078125), (105.5, 128, 1.5, 0.0075),
], [
    (load, "that is the load on a single shard; the smallest whole number of shards is asked for: "
           "round it up."),
    (dict(up=math.floor), "rounded down, the load of each shard is above 1: round up."),
    (dict(up=round), "rounded to the nearest, the load may be above 1: round up."),
    (dict(up=lambda work: math.floor(work) + 1),
     "where the load is a whole number already, no extra shard is needed: round up instead of "
     "adding 1."),
    (dict(up=lambda work: 1 / work), "that is upside down: the more work, the more shards."),
    (dict(work=lambda i, m, a, b: i * a + i * b),
     "the call is paid once for a message, not for each transition."),
    (dict(work=lambda i, m, a, b: i / m * a + i / m * b),
     "each transition in a message costs `per_transition`, not each message."),
    (dict(work=lambda i, m, a, b: i * m * (a + b)),
     dict(work=lambda i, m, a, b: i * m * (a + m * b)),
     dict(work=lambda i, m, a, b: i * m * a + i * b),
     "there are incoming / message messages in a second."),
    (dict(work=lambda i, m, a, b: i * b), "each message costs `per_call` as well."),
    (dict(work=lambda i, m, a, b: i / m * a),
     "each transition costs `per_transition` as well."),
    (dict(work=lambda i, m, a, b: a + i * b),
     "a call is paid for every message: there are incoming / message of them in a second."),
    (dict(work=lambda i, m, a, b: a + m * b),
     "that is the time of one message; there are incoming / message of them in a second."),
    (lambda i, m, a, b: math.ceil(i / m * a) + math.ceil(i * b),
     "add first, then round up once."),
    (dict(work=lambda i, m, a, b: i * (a + m * b)),
     "there are incoming / message messages in a second: divide by `message`."),
    (dict(work=lambda i, m, a, b: i / m * (a + (m - 1) * b)),
     "`per_transition` is paid for each transition in a message, the first as well."),
    (lambda i, m, a, b: math.ceil(math.ceil(i / m) * (a + m * b)),
     lambda i, m, a, b: math.ceil(math.ceil(i / m) * a + i * b),
     "rates need not be whole numbers: round up only once, at the end."),
    (lambda i, m, a, b: math.ceil(i // m * (a + m * b)),
     lambda i, m, a, b: math.ceil(i // m * a + i * b),
     "rates need not be whole numbers: `//` rounds down the messages of a second; divide with "
     "`/`."),
    (lambda i, m, a, b: math.ceil(i / math.floor(m / (a + m * b))),
     lambda i, m, a, b: math.ceil(i / math.ceil(m / (a + m * b))),
     "what one shard takes in need not be a whole number: round up only once, at the end."),
    (*(dict(up=lambda work, least=least: max(least, math.ceil(work))) for least in (2, 3, 4)),
     "a single shard is enough where the load is at most 1."),
    (dict(up=lambda work: math.ceil(work / 0.8)),
     "that leaves the margin of section 11; here a load of 1 is allowed."),
], larger=[(7e6, 100, 2e-3, 1e-4)])  # fmt: skip
