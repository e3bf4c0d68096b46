"""From runs to conclusions: intervals, paired differences, verdicts, failures, thresholds.

Runs are resampled, never episodes: the episodes of one run share a network, so that even many of
them say little more than one. Colas et al. (2019), Agarwal et al. (2021) and Patterson et al.
(2024) explain the choices; notebook 03 uses them first.
"""

import warnings
from collections.abc import Callable
from math import sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import float_array, real_number, whole_number
from per_tutorial.experiments.statistics.bootstrap import (
    resampled_means,
    resampled_shares,
    resampled_statistic,
)

RESAMPLES = 100_000  # limits then vary between seeds by less than 1 % of the interval's width
CONFIDENCE = 0.95  # of verdicts and, by default, of intervals
BAND_RESAMPLES = 10_000  # for bands around curves of medians and the like: 100,000 take seconds

Statistic = Callable[..., Any]  # takes an array and an axis, such as np.mean
Verdict = Literal["clear", "borderline", "not told apart"]


class Estimate(NamedTuple):
    """A number and its confidence interval; for curves, three arrays of the same shape."""

    value: Any
    low: Any
    high: Any


# One sample --------------------------------------------------------------------------------------


def bootstrap_interval(
    values: ArrayLike,
    axis: int = -1,
    statistic: Statistic = np.mean,
    confidence: float = CONFIDENCE,
    resamples: int | None = None,
    seed: int = 0,
) -> tuple[Any, Any]:
    """The percentile bootstrap interval of a statistic over runs: (low, high).

    It uses the percentile method, because BCa is undefined for medians and where all runs agree.
    (They do where learning curves reach the score limit; the interval is then a point.) With 30
    runs of normal data it covers the mean about 94 times in 100 at a confidence of 0.95.

    Args:
        values: array with the runs along ``axis``, at least two.
        statistic: function with an ``axis`` argument, such as `np.mean` or `np.median`.
        confidence: in (0, 0.9999].
        resamples: number of resamples. The other axes share the draws, so that the band around a
            curve is smooth. None for 100,000, or 10,000 if there are other axes and the statistic
            is not `np.mean`.
        seed: of the draws; the same seed gives the same interval.

    Returns:
        Two arrays of the shape of ``values`` without ``axis`` (floats if that is ()); NaN where a
        value is NaN.

    Raises:
        ValueError: fewer than two runs, an infinite value, or a setting out of range.
        TypeError: the values are not numbers.
    """
    values = np.moveaxis(never_infinite("values", values), axis, -1)
    at_least_two(values.shape[-1])
    fast = values.ndim == 1 or statistic is np.mean
    if resamples is None:
        resamples = RESAMPLES if fast else BAND_RESAMPLES
    resamples = whole_number("resamples", resamples)
    if statistic is np.mean:
        results = resampled_means(values, resamples, seed)
    else:
        results = resampled_statistic(values, statistic, resamples, seed)
    return percentiles(results, confidence)


def estimate(
    values: ArrayLike, axis: int = -1, statistic: Statistic = np.mean, **options: Any
) -> Estimate:
    """A statistic over runs and its bootstrap interval: an `Estimate`.

    Args:
        values, axis, statistic, options: as in `bootstrap_interval`.
    """
    values = float_array("values", values)
    interval = bootstrap_interval(values, axis, statistic, **options)
    return Estimate(_plain(statistic(values, axis=axis)), *interval)


def interquartile_mean(values: ArrayLike, axis: int = -1) -> Any:
    """The mean of the middle half of the runs: ⌊runs / 4⌋ are left out at each end.

    While less than a quarter of the runs fail, it is as robust as the median, and less noisy
    because more than one or two runs count (Agarwal et al. 2021).

    Args:
        values: array with the runs along ``axis``.

    Returns:
        An array of the shape of ``values`` without ``axis`` (a float if that is ()); NaN where a
        value is NaN.
    """
    from scipy.stats import trim_mean

    values = float_array("values", values)
    # NaN is handled here, because older versions of trim_mean sort it last and trim it away.
    return _plain(np.where(np.isnan(values).any(axis), np.nan, trim_mean(values, 0.25, axis)))


def summary(values: ArrayLike, **options: Any) -> dict[str, Estimate]:
    """Mean, median and interquartile mean over runs: {name: `Estimate`}.

    Each alone can mislead: a few failed runs pull the mean away from typical runs, and leave no
    trace in the other two. Report the `failure_rate` beside them.

    Args:
        values, options: as in `estimate`.
    """
    statistics: dict[str, Statistic]
    statistics = {"mean": np.mean, "median": np.median, "IQM": interquartile_mean}
    return {
        name: estimate(values, statistic=statistic, **options)
        for name, statistic in statistics.items()
    }


def failure_rate(values: ArrayLike, threshold: float, confidence: float = CONFIDENCE) -> Estimate:
    """The share of runs below a threshold and its Wilson interval: an `Estimate`.

    If no run failed, no resample has a failure either, and a bootstrap interval would be [0, 0].
    Wilson's shows what the runs cannot exclude: [0, 0.11] for 30 runs.

    Args:
        values: (runs,) results, more is better; NaN counts as below.
        threshold: a run below it has failed.
        confidence: in (0, 0.9999].

    Raises:
        ValueError: no runs, or not one number per run.
    """
    from scipy.stats import binomtest

    values = one_number_a_run("values", float_array("values", values))
    confidence = real_number("confidence", confidence, high=0.9999, above=0)
    failures = binomtest(int((~(values >= threshold)).sum()), len(values))
    low, high = failures.proportion_ci(confidence, method="wilson")
    return Estimate(failures.statistic, float(low), float(high))


# Two samples -------------------------------------------------------------------------------------


def paired_difference(
    a: ArrayLike, b: ArrayLike, axis: int = -1, statistic: Statistic = np.mean, **options: Any
) -> Estimate:
    """The statistic of a − b over paired runs, and its bootstrap interval: an `Estimate`.

    Run k of ``a`` and run k of ``b`` share their seed, so its effect on both cancels in their
    difference. With `np.median`, this is the median of the differences, which need not be the
    difference of the medians.

    Args:
        a, b: arrays of the same shape with the runs along ``axis``.
        axis, statistic, options: as in `bootstrap_interval`.
    """
    return estimate(differences_of(a, b), axis, statistic, **options)


def verdict(a: ArrayLike, b: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> Verdict:
    """Whether the mean `paired_difference` of two arms is clear.

    - "clear": its 95 % interval excludes zero, and `paired_t_test` and `signed_rank_test` both find
      p below 0.05.
    - "not told apart": none of the three sees a difference.
    - "borderline": the three disagree, or a limit of the interval is nearer to zero than its own
      Monte Carlo error, so that another bootstrap seed might decide otherwise.

    This judges one comparison alone. For several that were declared together, use
    `families.agreement`.

    The Monte Carlo error of a limit is two standard errors. The share of resamples below a limit is
    binomial; two standard errors of that share on either side give the range of the true limit.

    Args:
        a, b: (runs,) results, paired by their seeds.
        resamples, seed: as in `bootstrap_interval`.
    """
    differences = one_number_a_run("a, b", differences_of(a, b))
    at_least_two(len(differences))
    resamples = whole_number("resamples", resamples)
    means = resampled_means(differences, resamples, seed)
    low, high = percentiles(means)
    tail = (1 - CONFIDENCE) / 2
    margin = 2 * sqrt(tail * (1 - tail) / resamples)
    for limit, share in ((low, tail), (high, 1 - tail)):
        below, above = np.quantile(means, np.clip((share - margin, share + margin), 0, 1))
        if abs(limit) < (above - below) / 2:
            return "borderline"
    tests = (paired_t_test(a, b), signed_rank_test(a, b))
    return agreed([low > 0 or high < 0, *(p < 1 - CONFIDENCE for p in tests)])


def agreed(sees_a_difference: ArrayLike) -> Verdict:
    """The verdict of several tests, given whether each sees a difference."""
    seen = np.asarray(sees_a_difference)
    return "clear" if seen.all() else "borderline" if seen.any() else "not told apart"


def paired_t_test(a: ArrayLike, b: ArrayLike) -> float:
    """The p-value of Student's two-sided t-test that the mean of a − b is zero.

    Args:
        a, b: (runs,) results, paired by their seeds.
    """
    from scipy.stats import ttest_1samp

    differences = one_number_a_run("a, b", differences_of(a, b))
    if not differences.any():  # the test would divide 0 by 0
        return 1.0
    with warnings.catch_warnings(action="ignore"):  # if all differences are equal
        return float(ttest_1samp(differences, 0.0).pvalue)


def signed_rank_test(a: ArrayLike, b: ArrayLike) -> float:
    """The p-value of Wilcoxon's two-sided signed-rank test of a − b: only order and sign count.

    Args:
        a, b: (runs,) results, paired by their seeds.
    """
    from scipy.stats import wilcoxon

    differences = one_number_a_run("a, b", differences_of(a, b))
    if not differences.any():
        return 1.0
    with warnings.catch_warnings(action="ignore"):  # if few differences are not 0, or some are tied
        return float(wilcoxon(differences).pvalue)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """p-values corrected for their number by the method of Holm (1979).

    Twenty comparisons without any true difference give, on average, one p < 0.05 by chance. After
    this correction the probability of *any* is at most 5 %, however they depend on each other.

    Args:
        p_values: (comparisons,), in [0, 1]; NaN stays NaN and counts as a comparison.

    Returns:
        (comparisons,) corrected p-values, in the same order.
    """
    p_values = float_array("p_values", p_values)
    if p_values.ndim != 1 or ((p_values < 0) | (p_values > 1)).any():
        raise ValueError(f"p_values: must be (comparisons,) numbers in [0, 1], got {p_values}")
    order = np.argsort(p_values)
    # The smallest is multiplied by their number, the next by one less, …: monotone, at most 1.
    weighted = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(np.maximum.accumulate(weighted), 1)
    return corrected


def probability_of_improvement(
    a: ArrayLike, b: ArrayLike, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """How likely a run of ``a`` is to beat a run of ``b``: P(a > b) + ½ P(a = b), an `Estimate`.

    Every run of ``a`` is compared with every run of ``b`` (Agarwal et al. 2021). Pairs play no
    part, so the interval resamples both arms separately.

    Args:
        a, b: (runs,) results, more is better; their numbers of runs may differ.
        resamples, seed: as in `bootstrap_interval`.
    """
    a = one_number_a_run("a", float_array("a", a))
    b = one_number_a_run("b", float_array("b", b))
    at_least_two(min(len(a), len(b)))
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    shares = resampled_shares(wins, whole_number("resamples", resamples), seed)
    return Estimate(float(wins.mean()), *percentiles(shares))


# Censored times ----------------------------------------------------------------------------------


def steps_to_threshold(curve: ArrayLike, grid: ArrayLike, threshold: float) -> NDArray[np.float64]:
    """The first step at which each run's curve reaches the threshold: (runs,) floats.

    A run that never does is *censored*: it would need more steps than it had, and gets `inf`. All
    runs of a study have the same budget, so ``np.median(steps)`` is valid: a number if more than
    half of the runs arrive, otherwise `inf`, which means "more than ``grid[-1]``".

    Functions that average or subtract (`estimate`, `paired_difference`) need the restricted times,
    ``np.minimum(steps, grid[-1])``. If more than half of the runs arrive, the median stays the
    same, and a limit of its interval at ``grid[-1]`` means "that or more". The restricted mean is a
    lower bound. `probability_of_improvement` only compares, so it takes ``-steps`` directly: two
    runs that never arrive tie.

    Args:
        curve: (len(grid), runs), as `History.learning_curve` returns it; NaN counts as below.
        grid: increasing steps.
        threshold: a run arrives where its curve is at least this.
    """
    curve, grid = float_array("curve", curve), float_array("grid", grid)
    if curve.ndim != 2 or grid.shape != curve.shape[:1]:
        raise ValueError(f"grid: must have the shape {curve.shape[:1]}, got {grid.shape}")
    arrived = curve >= threshold
    return np.where(arrived.any(axis=0), grid[arrived.argmax(axis=0)], np.inf)


# Checks ------------------------------------------------------------------------------------------


def never_infinite(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """The values as floats. Infinite ones, which have no mean and no difference, are refused."""
    values = float_array(name, values)
    if np.isinf(values).any():
        raise ValueError(
            f"{name}: must not be infinite; for steps to a threshold, "
            "pass np.minimum(steps, budget)"
        )
    return values


def differences_of(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """a − b of paired runs, checked."""
    a, b = never_infinite("a", a), never_infinite("b", b)
    if a.shape != b.shape:
        raise ValueError(f"b: paired runs need the shape of a {a.shape}, got {b.shape}")
    return a - b


def one_number_a_run(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    if values.ndim != 1 or not values.size:
        raise ValueError(f"{name}: must have the shape (runs,), got {values.shape}")
    return values


def at_least_two(runs: int) -> None:
    if runs < 2:
        raise ValueError(f"values: at least two runs are needed for an interval, got {runs}")


def percentiles(results: NDArray[np.float64], confidence: float = CONFIDENCE) -> tuple[Any, Any]:
    """The interval that holds the share ``confidence`` of the results (..., resamples)."""
    confidence = real_number("confidence", confidence, high=0.9999, above=0)
    tail = (1 - confidence) / 2
    low, high = np.quantile(results, (tail, 1 - tail), axis=-1)
    return _plain(low), _plain(high)


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value
