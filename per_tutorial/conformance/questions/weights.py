"""Importance-sampling weights: w_i = (1/N · 1/P(i))^β / max_j w_j (section 3.4)."""

import numpy as np

from per_tutorial.conformance.answers import (
    Fault,
    Finding,
    Untold,
    fails,
    holds,
    question,
    reported,
)
from per_tutorial.conformance.chance import FALSE_ALARM, worst_misfit
from per_tutorial.conformance.exam import CAPACITY, Exam, refusals
from per_tutorial.conformance.questions.distribution import mixed_error
from per_tutorial.conformance.trial import Trial
from per_tutorial.replay.contracts import Floats

SECTION = "3.4"
# Some libraries keep weights in single precision, and take logarithms and powers in it.
EXPONENT_TOLERANCE, RELATIVE_TOLERANCE = 0.002, 0.002


@question(
    "weights-exponent",
    "Are weights (N · P(i))^−β, as one compares transitions of a minibatch?",
    section=SECTION,
    effect="Updates are biased in another way than β says; annealing β does not end at no bias.",
)
def weights_exponent(exam: Exam) -> Finding:
    for beta in (0.4, 1.0):
        trial = exam.trial(CAPACITY, beta=beta).set_errors(mixed_error)
        serials, weights = trial.weighted(1000)
        slope, off = fit(trial, serials, weights)
        wanted = 0.0 if exam.adapter.law == "uniform" else -beta
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
    false_alarm=FALSE_ALARM,
)
def weights_undo(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY, exact=True, beta=1.0).set_errors(mixed_error)
    if trial.settings.batch_size == 1:
        # Divided by the largest of its minibatch, the weight of a minibatch of one says nothing.
        raise Untold("it draws without replacement, and a minibatch of one has the weight 1")
    serials, weights = trial.weighted(20_000)
    counts = trial.count(serials)
    if (counts == 0).any():
        return fails(
            f"transition {trial.stored[counts == 0][0]} never came in {counts.sum()} draws"
        )
    levels = np.exp(item_levels(trial, serials, weights))  # w of each transition, up to a factor
    levels[~trial.is_known] = np.inf
    implied = 1 / levels / (1 / levels).sum()
    levels[~trial.is_known] = 0.0
    # f is 1 for transitions drawn more often than the median one, else 0: its mean is a half.
    share = counts * levels / (counts * levels).sum()
    often = implied > np.median(implied)
    value = share[often].sum() / often.mean() if often.any() else 1.0
    worst = worst_misfit(counts, implied)
    if worst is None:
        return holds(f"E[w · f] is {value:.3f} of the mean of f, which marks what is drawn often")
    return fails(
        f"E[w · f] is {value:.3f} of the mean of f: transition {trial.stored[worst]} came in "
        f"{counts[worst] / counts.sum():.2%} of draws, its weight stands for {implied[worst]:.2%}"
    )


@question(
    "weights-beta-zero",
    "With β = 0, are all weights equal?",
    section=SECTION,
    effect="Switching the correction off leaves some of it.",
)
def weights_beta_zero(exam: Exam) -> Finding:
    with refusals("β = 0"):
        trial = exam.trial(CAPACITY, beta=0.0)
        trial.sample()
    trial.set_errors(mixed_error)
    _, weights = trial.weighted(200)
    low, high = weights.min(), weights.max()
    sentence = f"weights between {low:.4g} and {high:.4g}"
    return holds(sentence) if high - low <= 1e-5 * high else fails(sentence)


@question(
    "weights-part-full",
    "Are weights positive and finite before the buffer is full?",
    section=SECTION,
    effect="All weights are 0, so nothing is learned until the buffer is full; or NaN reaches the network.",
)
def weights_part_full(exam: Exam) -> Finding:
    for size, batch in ((1, 1), (5, 4), (33, 32)):
        trial = exam.trial(size, batch_size=batch)
        trial.weighted(batch)
        trial.set_errors(mixed_error)
        _, weights = trial.weighted(20 * batch)
        if weights.max() < 1e-3:
            return fails(
                f"with {size} stored of {CAPACITY}, the largest weight is {weights.max():.2g}"
            )
    return holds("with 1, 5 and 33 stored of 64")


@question(
    "weights-normalisation",
    "What are weights divided by?",
    section="3.4, “for stability reasons”",
    effect="The minibatch's largest, or that of the whole buffer: a choice. Another divisor changes the "
    "learning rate: one that is too large stops learning, one too small lets updates explode.",
)
def weights_normalisation(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY, beta=0.4).set_errors(mixed_error)
    serials, weights = trial.weighted(1000)
    expected = np.maximum(trial.expected(), 1e-12)
    expected[~trial.is_known] = 1.0  # has no part in the largest weight
    raw = (len(expected) * expected) ** -0.4
    factors = np.median(weights / raw[serials - trial.stored[0]], axis=1)  # of each minibatch
    if exam.adapter.law == "uniform":
        return reported(f"all weights are {weights.max():.3g}")
    inverse = raw[serials - trial.stored[0]]
    kinds = {
        "the largest of the minibatch": 1 / inverse.max(axis=1),
        "the largest of the whole buffer": np.full(len(factors), 1 / raw.max()),
        "nothing": np.ones(len(factors)),
        "the mean of the minibatch": 1 / inverse.mean(axis=1),
        "the sum of the minibatch": 1 / inverse.sum(axis=1),
    }
    for kind, wanted in kinds.items():
        if np.allclose(factors, wanted, rtol=0.01):
            return reported(
                f"by {kind}: they lie between {weights.min():.3g} and {weights.max():.3g}"
            )
    low, high = factors.min() * raw.max(), factors.max() * raw.max()
    return fails(
        f"by none of the usual: the largest weight of the buffer comes to {low:.3g}"
        + (f" up to {high:.3g}" if high > 1.01 * low else "")
        + ", not to 1"
    )


@question(
    "weights-collapse",
    "What does one transition almost without error do to all weights?",
    section="3.4",
    effect="Divided by the largest weight of the whole buffer, all others shrink, and with them the "
    "learning rate, by a factor that nobody chose.",
)
def weights_collapse(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY, beta=1.0).set_errors(lambda serial: 1.0 - serial / 1e4)
    before = np.median(trial.weighted(500)[1])
    trial = exam.trial(CAPACITY, beta=1.0)
    trial.set_errors(lambda serial: 1e-6 if serial == 9 else 1.0 - serial / 1e4)
    after = np.median(trial.weighted(500)[1])
    if after > before / 2:
        return reported(f"nothing: the usual weight is {after:.3g}, before {before:.3g}")
    return reported(f"the usual weight falls from {before:.3g} to {after:.2g}")


def fit(trial: Trial, serials: np.ndarray, weights: Floats) -> tuple[float, float]:
    """Slope of log w against log P within minibatches, and by how much single weights miss it."""
    expected = trial.expected()[serials - trial.stored[0]]
    if (expected == 0).any():
        raise Untold("a transition came that had not come in the preparation")
    logs = np.log(expected)
    x = logs - logs.mean(axis=1, keepdims=True)
    y = np.log(weights) - np.log(weights).mean(axis=1, keepdims=True)
    slope = float((x * y).sum() / (x * x).sum()) if x.any() else 0.0
    return slope, float(np.abs(y - slope * x).max())


def item_levels(trial: Trial, serials: np.ndarray, weights: Floats) -> Floats:
    """log w of each stored transition up to a constant, whatever minibatches were divided by."""
    items = (serials - trial.stored[0]).ravel()
    logs = np.log(weights)
    seen = np.bincount(items, minlength=len(trial.stored))
    levels = np.zeros(len(seen))
    for _ in range(50):  # in turns: the divisor of each minibatch, and the level of each transition
        divisors = (logs - levels[serials - trial.stored[0]]).mean(axis=1, keepdims=True)
        sums = np.bincount(items, (logs - divisors).ravel(), minlength=len(seen))
        levels, last = sums / np.maximum(seen, 1), levels
        if np.abs(levels - last).max() < 1e-9:
            break
    off = np.abs(logs - divisors - levels[serials - trial.stored[0]]).max()
    if off > 0.01:
        raise Fault(
            f"two minibatches weigh the same transition differently, by {np.expm1(off):.1%}"
        )
    return levels
