"""Importance-sampling weights: w_i = (1/N · 1/P(i))^β / max_j w_j (section 3.4)."""

import numpy as np

from per_tutorial.conformance.answers import (
    Fault,
    Finding,
    Inconclusive,
    fails,
    holds,
    question,
    reported,
)
from per_tutorial.conformance.chance import FALSE_ALARM, worst_misfit
from per_tutorial.conformance.context import CAPACITY, TestContext, refusals
from per_tutorial.conformance.harness import BufferHarness
from per_tutorial.conformance.questions.distribution import EXPONENTS, mixed_error
from per_tutorial.replay.contracts import Floats

SECTION = "3.4"
# Some libraries compute weights, with logarithms and powers, in single precision.
EXPONENT_TOLERANCE, RELATIVE_TOLERANCE = 0.002, 0.002


@question(
    "weights-beta-zero",
    "With β = 0, are all weights equal?",
    section=SECTION,
    effect="Switching the correction off leaves some of it.",
    needs=("newcomers-at-first",),
)
def weights_beta_zero(context: TestContext) -> Finding:
    with refusals("β = 0"):
        harness = context.harness(CAPACITY, beta=0.0)
        harness.sample()
    harness.set_errors(mixed_error)
    _, weights = harness.weighted(200)
    low, high = weights.min(), weights.max()
    sentence = f"weights between {low:.4g} and {high:.4g}"
    return holds(sentence) if high - low <= 1e-5 * high else fails(sentence)


@question(
    "weights-exponent",
    "Are weights (N · P(i))^−β, as one compares transitions of a minibatch?",
    section=SECTION,
    effect="Updates are biased in another way than β says; annealing β does not end at no bias.",
    needs=(*EXPONENTS, "weights-beta-zero"),
)
def weights_exponent(context: TestContext) -> Finding:
    for beta in (0.4, 1.0):
        harness = context.harness(CAPACITY, beta=beta).set_errors(mixed_error)
        serials, weights = harness.weighted(1000)
        slope, off = fit(harness, serials, weights)
        wanted = 0.0 if context.adapter.distribution == "uniform" else -beta
        sentence = f"exponent {slope:.3f} of N · P(i) where {wanted:g} is wanted"
        if abs(slope - wanted) > EXPONENT_TOLERANCE:
            return fails(sentence)
        if off > RELATIVE_TOLERANCE:
            return fails(f"{sentence}, but single weights are off by up to {off:.1%}")
    return holds(f"{sentence}; single weights are off by {off:.1g} at most")


@question(
    "weights-undo",
    "At β = 1, do weights undo the preference: is E[w · f] the mean of f?",
    section="3.4, “fully compensates”",
    effect="Even with β at its end, the agent's values are biased towards what is replayed most.",
    needs=("proportions-full", "weights-exponent"),
    false_alarm=FALSE_ALARM,
)
def weights_undo(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY, exact=True, beta=1.0).set_errors(mixed_error)
    if harness.settings.batch_size == 1:
        # Divided by the largest of its minibatch, the only weight is always 1.
        raise Inconclusive("it draws without replacement, and a minibatch of one has the weight 1")
    serials, weights = harness.weighted(20_000)
    counts = harness.count(serials)
    if (counts == 0).any():
        return fails(
            f"transition {harness.stored[counts == 0][0]} never came in {counts.sum()} draws"
        )
    levels = np.exp(item_levels(harness, serials, weights))  # w of each transition, up to a factor
    levels[~harness.is_known] = np.inf
    implied = 1 / levels / (1 / levels).sum()
    levels[~harness.is_known] = 0.0
    # f is 1 for transitions more likely than the median, else 0: its mean is a half.
    share = counts * levels / (counts * levels).sum()
    often = implied > np.median(implied)
    value = share[often].sum() / often.mean() if often.any() else 1.0
    worst = worst_misfit(counts, implied)
    if worst is None:
        return holds(f"E[w · f] is {value:.3f} of the mean of f, which marks what is drawn often")
    return fails(
        f"E[w · f] is {value:.3f} of the mean of f: transition {harness.stored[worst]} came in "
        f"{counts[worst] / counts.sum():.2%} of draws, its weight stands for {implied[worst]:.2%}"
    )


@question(
    "weights-part-full",
    "Are weights positive and finite before the buffer is full?",
    section=SECTION,
    effect="All weights are 0, so nothing is learned until the buffer is full; or NaN reaches the "
    "network.",
    needs=("reach", "newcomers-at-first"),
)
def weights_part_full(context: TestContext) -> Finding:
    for size, batch in ((1, 1), (5, 4), (33, 32)):
        harness = context.harness(size, batch_size=batch)
        harness.weighted(batch)
        harness.set_errors(mixed_error)
        _, weights = harness.weighted(20 * batch)
        if weights.max() < 1e-3:
            return fails(
                f"with {size} stored of {CAPACITY}, the largest weight is {weights.max():.2g}"
            )
    return holds("with 1, 5 and 33 stored of 64")


@question(
    "weights-scale",
    "If all transitions are equally likely, is every weight 1, whatever the batch size?",
    section=SECTION,
    effect="Weights are part of the step. Divided by their sum or by the batch size, they make it "
    "that much smaller: the agent learns with a thirty-second of the learning rate that was set.",
    needs=("weights-part-full",),
)
def weights_scale(context: TestContext) -> Finding:
    # With equal priorities, N · P = 1: weights are 1 whether they are left as (N · P)^−β or divided
    # by the largest of the minibatch or of the memory. Ranks differ even then, hence α = 0.
    alpha = 0.0 if context.adapter.distribution == "rank" else 0.6
    medians = {}
    for stored, batch in ((CAPACITY, 32), (CAPACITY, 4), (33, 32)):
        _, weights = context.harness(stored, batch_size=batch, alpha=alpha).weighted(640)
        if weights.max() > (1 + RELATIVE_TOLERANCE) * weights.min():
            return fails(
                f"with {stored} of 64 stored, they differ: {weights.min():g}–{weights.max():g}"
            )
        medians[stored, batch] = float(np.median(weights))
    if np.allclose(list(medians.values()), 1.0, rtol=RELATIVE_TOLERANCE):
        return holds("in minibatches of 4 and of 32, with 33 and 64 of 64 stored")
    found = "; ".join(
        f"{median:.3g} in minibatches of {batch} with {stored} of 64 stored"
        for (stored, batch), median in medians.items()
    )
    shrinks = medians[CAPACITY, 32] < 0.5 * medians[CAPACITY, 4]
    return fails(f"{found}{': the step shrinks with the batch size' if shrinks else ''}")


@question(
    "weights-normalisation",
    "What are weights divided by?",
    section="3.4, “for stability reasons”",
    effect="By the largest of the minibatch or of the memory, by the mean, or by nothing: a "
    "choice. Another divisor changes the learning rate: too large stops learning, too small lets "
    "updates explode.",
    needs=("weights-exponent", "weights-scale"),
)
def weights_normalisation(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY, beta=0.4).set_errors(mixed_error)
    serials, weights = harness.weighted(1000)
    expected = np.maximum(harness.expected(), 1e-12)
    expected[~harness.is_known] = 1.0  # excludes them from the largest weight
    raw = (len(expected) * expected) ** -0.4
    if context.adapter.distribution == "uniform":
        return reported(f"all weights are {weights.max():.3g}")
    undivided = raw[serials - harness.stored[0]]
    factors = np.median(weights / undivided, axis=1)  # of each minibatch
    kinds = {
        "the largest of the minibatch": 1 / undivided.max(axis=1),
        "the largest of the whole buffer": np.full(len(factors), 1 / raw.max()),
        "nothing": np.ones(len(factors)),
        "the mean of the minibatch": 1 / undivided.mean(axis=1),
    }
    for kind, wanted in kinds.items():
        if np.allclose(factors, wanted, rtol=0.01):
            return reported(
                f"by {kind}: they lie between {weights.min():.3g} and {weights.max():.3g}"
            )
    low, high = factors.min() * raw.max(), factors.max() * raw.max()
    return fails(
        f"by none of the usual: the largest weight of the buffer is {low:.3g}"
        + (f" to {high:.3g}" if high > 1.01 * low else "")
        + ", not 1"
    )


@question(
    "weights-collapse",
    "What does one transition almost without error do to all weights?",
    section="3.4",
    effect="Divided by the largest weight of the whole buffer, all others shrink, and with them "
    "the learning rate, by a factor that nobody chose.",
    needs=("weights-exponent", "weights-scale"),
)
def weights_collapse(context: TestContext) -> Finding:
    harness = context.harness(CAPACITY, beta=1.0).set_errors(lambda serial: 1.0 - serial / 1e4)
    before = np.median(harness.weighted(500)[1])
    harness = context.harness(CAPACITY, beta=1.0)
    harness.set_errors(lambda serial: 1e-6 if serial == 9 else 1.0 - serial / 1e4)
    after = np.median(harness.weighted(500)[1])
    if after > before / 2:
        return reported(f"nothing: the usual weight is {after:.3g}, before {before:.3g}")
    return reported(f"the usual weight falls from {before:.3g} to {after:.2g}")


def fit(harness: BufferHarness, serials: np.ndarray, weights: Floats) -> tuple[float, float]:
    """Slope of log w against log P within minibatches, and the largest residual of a weight."""
    expected = harness.expected()[serials - harness.stored[0]]
    if (expected == 0).any():
        raise Inconclusive("a transition came that had not come in the preparation")
    logs = np.log(expected)
    x = logs - logs.mean(axis=1, keepdims=True)
    y = np.log(weights) - np.log(weights).mean(axis=1, keepdims=True)
    slope = float((x * y).sum() / (x * x).sum()) if x.any() else 0.0
    return slope, float(np.abs(y - slope * x).max())


def item_levels(harness: BufferHarness, serials: np.ndarray, weights: Floats) -> Floats:
    """log w of each stored transition up to a constant, for any divisor of each minibatch."""
    items = (serials - harness.stored[0]).ravel()
    logs = np.log(weights)
    seen = np.bincount(items, minlength=len(harness.stored))
    levels = np.zeros(len(seen))
    for _ in range(50):  # alternate: the divisor of each minibatch, the level of each transition
        divisors = (logs - levels[serials - harness.stored[0]]).mean(axis=1, keepdims=True)
        sums = np.bincount(items, (logs - divisors).ravel(), minlength=len(seen))
        levels, last = sums / np.maximum(seen, 1), levels
        if np.abs(levels - last).max() < 1e-9:
            break
    off = np.abs(logs - divisors - levels[serials - harness.stored[0]]).max()
    if off > 0.01:
        raise Fault(
            f"two minibatches weigh the same transition differently, by {np.expm1(off):.1%}"
        )
    return levels
