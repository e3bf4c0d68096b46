"""Statistical tests on counts of draws, with an upper bound of their false-alarm rate.

Some buffers draw a minibatch independently, others draw once in each of `batch` ranges of equal
probability (stratified, appendix B.2.1). Either way, a count is a sum of independent Bernoulli
draws whose probabilities add up to n · P(i). By Hoeffding (1956), such a sum is far from its mean
at most as often as a binomial count. So exact binomial tails are valid for both kinds.
"""

import math

import numpy as np
from numpy.typing import NDArray

from per_tutorial.replay.contracts import Floats

# The default for one statistical question.
FALSE_ALARM = 1e-6


def tail(counts: NDArray, draws: int, probabilities: Floats) -> Floats:
    """Two-sided p-values of counts, (items,).

    They are twice the binomial tail on the count's side of the mean, and at most 1.
    """
    pairs = zip(counts.tolist(), np.clip(probabilities, 0.0, 1.0).tolist(), strict=True)
    return np.array([min(1.0, 2 * _one_tail(count, draws, p)) for count, p in pairs])


def _one_tail(count: int, draws: int, p: float) -> float:
    """P(X ≤ count) of a binomial X with ``draws`` and ``p``; P(X ≥ count) above its mean."""
    q = 1.0 - p
    if count > draws * p:
        count, p, q = draws - count, q, p  # the upper tail of X is the lower one of draws − X
    if p == 0.0 or q == 0.0:
        return float(count >= draws * p)
    # P(X = count), then down towards P(X = 0) by ratios of neighbours, until terms vanish.
    choices = math.lgamma(draws + 1) - math.lgamma(count + 1) - math.lgamma(draws - count + 1)
    term = math.exp(choices + count * math.log(p) + (draws - count) * math.log(q))
    total = 0.0
    while total + term > total:
        total += term
        term *= count * q / ((draws - count + 1) * p)
        count -= 1
    return total


def worst_misfit(
    counts: NDArray, probabilities: Floats, false_alarm: float = FALSE_ALARM
) -> int | None:
    """The item whose count fits its probability least, or None if all fit.

    Args:
        counts: (items,) how often each was drawn; their sum is the number of draws.
        probabilities: (items,) the correct ones.
        false_alarm: the probability that correct ones are rejected, over all items (Bonferroni).
    """
    chances = tail(counts, int(counts.sum()), probabilities)
    worst = int(chances.argmin())
    return worst if chances[worst] < false_alarm / len(counts) else None


def worst_group(
    counts: NDArray, probabilities: Floats, false_alarm: float = FALSE_ALARM
) -> tuple[str, NDArray] | None:
    """The group that fits least, by name and items, or None if all fit.

    Groups are the oldest and the least likely quarter, half and three quarters of the items. They
    show faults that are small in each item.
    """
    orders = {
        "oldest": np.arange(len(counts)),
        "least likely": np.argsort(probabilities, kind="stable"),
    }
    groups = [
        (f"{name} {word}", order[: round(len(counts) * part)])
        for name, order in orders.items()
        for word, part in (("quarter", 0.25), ("half", 0.5), ("three quarters", 0.75))
    ]
    shares = np.array([probabilities[group].sum() for _, group in groups])
    chances = tail(np.array([counts[g].sum() for _, g in groups]), int(counts.sum()), shares)
    worst = int(chances.argmin())
    return groups[worst] if chances[worst] < false_alarm / len(groups) else None


def share_misfits(count: int, draws: int, low: float, high: float) -> bool:
    """Whether a share of draws is outside [low, high] by more than chance explains."""
    if low * draws <= count <= high * draws:
        return False
    bound = low if count < low * draws else high
    return bool(tail(np.array([count]), draws, np.array([bound]))[0] < FALSE_ALARM)


def exponent_of(logs: Floats, counts: NDArray) -> float:
    """The maximum-likelihood a, within ±5, of P(i) ∝ exp(a · logs[i]), given the counts."""
    seen = float(counts @ logs) / counts.sum()
    low, high = -5.0, 5.0
    for _ in range(60):  # bisection: the mean of logs rises with the exponent
        middle = (low + high) / 2
        if _moments(logs, middle)[0] < seen:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def draws_for_exponent(logs: Floats, exponent: float, within: float) -> int:
    """Draws for which `exponent_of` is off by ``within`` with probability `FALSE_ALARM` at most.

    It follows from Bernstein's inequality for the mean of ``logs``, whose derivative with respect
    to the exponent is their variance, and is valid for stratified draws as well.
    """
    mean, variance = _moments(logs, exponent)
    # The mean moves by different distances towards the two edges: take the smaller one.
    edges = [abs(_moments(logs, exponent + side * within)[0] - mean) for side in (-1, 1)]
    distance, largest = min(edges), float(np.abs(logs - mean).max())
    needed = 2 * (variance + largest * distance / 3) / distance**2
    return math.ceil(needed * math.log(2 / FALSE_ALARM))


def _moments(logs: Floats, exponent: float) -> tuple[float, float]:
    """Mean and variance of ``logs`` under P(i) ∝ exp(exponent · logs[i])."""
    masses = np.exp(exponent * logs - (exponent * logs).max())
    masses /= masses.sum()
    mean = float(masses @ logs)
    return mean, float(masses @ (logs - mean) ** 2)
