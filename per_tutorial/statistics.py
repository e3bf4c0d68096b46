"""From runs to conclusions: one rule for evidence, and the numbers around it.

**The rule.** Two arms are compared over pairs of runs that share a seed, by a metric declared
before they ran. A difference is *shown* if its paired t interval, at confidence 1 − 0.05/m,
excludes zero; m comparisons that were declared together are judged together (Bonferroni). Otherwise
it is *not shown*. If the same comparison was run several times, its pairs are pooled over all.

Runs are compared, never episodes: the episodes of one run share a network, so that even many of
them say little more than one. Colas et al. (2019), Agarwal et al. (2021) and Patterson et al.
(2024) explain the choices.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import float_array, real_number, whole_number

LEVEL = 0.05  # how often a family without any difference may show one
CONFIDENCE = 1 - LEVEL
ROUNDING = 1e-9  # differences below this share of the scores are rounding

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number and its confidence interval; f"{estimate:+.1f}" gives "+1.5 [0.2, 2.8]"."""

    value: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        low, high = (format(limit, spec.replace("+", "")).strip() for limit in self[1:])
        return f"{format(self.value, spec)} [{low}, {high}]"


# The rule ----------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """What the rule says about one difference."""

    difference: Estimate  # its interval is at the level of its family
    shown: bool


def compare(pairs: Sequence[tuple[ArrayLike, ArrayLike]], m: int | None = None) -> list[Comparison]:
    """Judge comparisons that were declared together: a `Comparison` for each.

    Args:
        pairs: (a, b) of each, (runs,) results, paired by their seeds.
        m: how many comparisons the family has; None: as many as there are pairs.

    Raises:
        ValueError: fewer than two runs, an infinite result, arms that differ in their number of
            runs, or a family that is smaller than the number of pairs.
    """
    m = len(pairs) if m is None else whole_number("m", m, minimum=len(pairs))
    judged = []
    for a, b in pairs:
        differences = differences_of(a, b)
        largest = np.maximum(np.abs(a), np.abs(b))
        differences = np.where(np.abs(differences) < ROUNDING * largest, 0.0, differences)
        difference = t_interval(differences, 1 - LEVEL / m)
        judged.append(Comparison(difference, bool(difference.low > 0 or difference.high < 0)))
    return judged


def t_interval(values: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of runs and its t interval, mean ± t(runs − 1) · s/√runs; NaN if a run is NaN."""
    from scipy.stats import t

    values = _runs("values", values, 2)
    confidence = real_number("confidence", confidence, above=0, high=0.999999)
    mean, error = float(values.mean()), float(values.std(ddof=1)) / sqrt(len(values))
    half = float(t.ppf((1 + confidence) / 2, len(values) - 1)) * error
    return Estimate(mean, mean - half, mean + half)


# One sample --------------------------------------------------------------------------------------


def failure_rate(values: ArrayLike, threshold: float) -> Estimate:
    """The share of runs below a threshold and its 95 % Wilson interval: an `Estimate`.

    Wilson's interval shows what the runs cannot exclude, even if none failed: [0, 0.11] for 30.

    Args:
        values: (runs,) results, more is better; NaN counts as below.
        threshold: a run below it has failed.
    """
    from scipy.stats import binomtest

    values = _runs("values", values)
    failures = binomtest(int((~(values >= threshold)).sum()), len(values))
    low, high = failures.proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(failures.statistic, float(low), float(high))


# Checks ------------------------------------------------------------------------------------------


def differences_of(a: ArrayLike, b: ArrayLike) -> Floats:
    """a − b of paired runs, checked."""
    a, b = float_array("a", a), float_array("b", b)
    for name, values in (("a", a), ("b", b)):
        if np.isinf(values).any():  # they have no mean and no difference
            raise ValueError(
                f"{name}: must not be infinite; pass np.minimum(steps, budget) for steps to a "
                "threshold"
            )
    if a.shape != b.shape:
        raise ValueError(f"b: paired runs need the shape of a {a.shape}, got {b.shape}")
    return a - b


def _runs(name: str, values: ArrayLike, least: int = 1) -> Floats:
    """The values as (runs,) floats, at least so many."""
    values = float_array(name, values)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"{name}: must have the shape (runs,), got {values.shape}")
    if len(values) < least:
        raise ValueError(f"{name}: an interval needs at least {least} runs, got {len(values)}")
    return values
