"""From runs to conclusions: one rule for evidence, and the numbers around it.

**The rule.** Two arms are compared over pairs of runs that share a seed, by a metric declared
before they ran. A difference is *shown* if its paired t interval leaves out zero, at the level of
its family: 1 − 0.05/m for m comparisons that were declared together (Bonferroni). Otherwise it is
*not shown*. If the same comparison was run several times, its pairs are pooled over all tries.

Runs are compared, never episodes: the episodes of one run share a network, so that even many of
them say little more than one. Colas et al. (2019), Agarwal et al. (2021) and Patterson et al.
(2024) explain the choices.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import float_array, real_number, whole_number

LEVEL = 0.05  # how often a family without any difference may show one
CONFIDENCE = 1 - LEVEL
ROUNDING = 1e-9  # differences below this share of the scores are rounding
RESAMPLES = 100_000  # limits then vary between seeds by less than 1 % of the interval's width
CHUNK = 10_000  # resamples at a time

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number and its confidence interval; for curves, three arrays of the same shape."""

    value: Any
    low: Any
    high: Any


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


def failure_rate(values: ArrayLike, threshold: float, confidence: float = CONFIDENCE) -> Estimate:
    """The share of runs below a threshold and its Wilson interval: an `Estimate`.

    Wilson's interval shows what the runs cannot exclude, even if none failed: [0, 0.11] for 30.

    Args:
        values: (runs,) results, more is better; NaN counts as below.
        threshold: a run below it has failed.
        confidence: in (0, 0.9999].
    """
    from scipy.stats import binomtest

    values = _runs("values", float_array("values", values))
    confidence = real_number("confidence", confidence, high=0.9999, above=0)
    failures = binomtest(int((~(values >= threshold)).sum()), len(values))
    low, high = failures.proportion_ci(confidence, method="wilson")
    return Estimate(failures.statistic, float(low), float(high))


def bootstrap_interval(
    values: ArrayLike,
    axis: int = -1,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Any, Any]:
    """The percentile bootstrap interval of the mean over runs, for bands: (low, high).

    Args:
        values: array with the runs along ``axis``, at least two.
        confidence: in (0, 0.9999].
        resamples: number of resamples. The other axes share the draws, so that the band around a
            curve is smooth.
        seed: of the draws; the same seed gives the same interval.

    Returns:
        Two arrays of the shape of ``values`` without ``axis`` (floats if that is ()); NaN where a
        value is NaN.
    """
    values = np.moveaxis(_finite("values", values), axis, -1)
    runs = values.shape[-1]
    if runs < 2:
        raise ValueError(f"values: an interval needs at least two runs, got {runs}")
    confidence = real_number("confidence", confidence, high=0.9999, above=0)
    resamples = whole_number("resamples", resamples)
    rng, means = np.random.default_rng(seed), np.empty((*values.shape[:-1], resamples))
    for start in range(0, resamples, CHUNK):
        drawn = rng.integers(0, runs, (min(CHUNK, resamples - start), runs))
        # How often each run was drawn: with that, all means are one matrix product.
        cells = drawn + runs * np.arange(len(drawn))[:, None]
        counts = np.bincount(cells.ravel(), minlength=drawn.size).reshape(drawn.shape)
        with np.errstate(invalid="ignore"):  # NaN shows in the result
            part = values @ counts.astype(np.float64).T / runs
        means[..., start : start + len(drawn)] = part
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, (tail, 1 - tail), axis=-1)
    return _plain(low), _plain(high)


def estimate(values: ArrayLike, axis: int = -1, **options: Any) -> Estimate:
    """The mean over runs and its `bootstrap_interval`, with the same arguments."""
    values = float_array("values", values)
    interval = bootstrap_interval(values, axis, **options)
    return Estimate(_plain(values.mean(axis=axis)), *interval)


# Checks ------------------------------------------------------------------------------------------


def _finite(name: str, values: ArrayLike) -> Floats:
    """The values as floats. Infinite ones, which have no mean and no difference, are refused."""
    values = float_array(name, values)
    if np.isinf(values).any():
        raise ValueError(
            f"{name}: must not be infinite; pass np.minimum(steps, budget) for steps to a threshold"
        )
    return values


def differences_of(a: ArrayLike, b: ArrayLike) -> Floats:
    """a − b of paired runs, checked."""
    a, b = _finite("a", a), _finite("b", b)
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


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value
