"""From runs to conclusions: intervals, paired differences, failures, steps to a threshold.

The unit that is drawn again is always the run, never the episode: episodes of one run share a
network and say little more than one of them. Colas et al. (2019), Agarwal et al. (2021) and
Patterson et al. (2024) explain the choices; notebook 03 uses them first.
"""

import warnings
from typing import NamedTuple

import numpy as np

from per_tutorial.common.arguments import float_array, real_number, whole_number


class Estimate(NamedTuple):
    """A number and its confidence interval."""

    value: float
    low: float
    high: float


def bootstrap_interval(values, axis=-1, statistic=np.mean, confidence=0.95, resamples=2000, seed=0):
    """The percentile bootstrap interval of a statistic over runs: (low, high).

    The percentile method rather than BCa, because it stays defined where BCa is not: where all runs
    agree (every learning curve that reaches the score limit does, and the interval is then a point)
    and for medians. At 30 runs it covers the mean of normal data about 94 times in 100 at a
    confidence of 0.95.

    Args:
        values: array with the runs along ``axis``, at least two.
        statistic: function with an ``axis`` argument, such as `np.mean` or `np.median`.
        confidence: in (0, 0.9999].
        resamples: samples drawn with replacement from the runs; the same ones at every place of the
            other axes, so that the band around a curve is smooth.
        seed: of the draws; the same seed, the same interval.

    Returns:
        Two arrays of the shape of ``values`` without ``axis`` (floats if that is ()); NaN where a
        value is NaN.

    Raises:
        ValueError: fewer than two runs, an infinite value, or a setting out of range.
        TypeError: the values are no numbers.
    """
    values = np.moveaxis(_never_infinite("values", values), axis, -1)
    return _interval((values,), statistic, confidence, resamples, seed)


def estimate(values, axis=-1, statistic=np.mean, **options):
    """A statistic over runs and its bootstrap interval: an `Estimate`.

    Args:
        values, axis, statistic, options: as in `bootstrap_interval`.
    """
    values = float_array("values", values)
    interval = bootstrap_interval(values, axis, statistic, **options)
    return Estimate(_plain(statistic(values, axis=axis)), *interval)


def interquartile_mean(values, axis=-1):
    """The mean of the middle half: the lowest and the highest quarter of the runs are left out.

    Robust like the median, as long as less than a quarter of the runs fail, and less noisy, since it
    hears more than one or two of the others (Agarwal et al. 2021). Where the number of runs is no multiple of four,
    fewer are left out rather than more: ⌊runs / 4⌋ at each end.

    Args:
        values: array with the runs along ``axis``.

    Returns:
        An array of the shape of ``values`` without ``axis`` (a float if that is ()); NaN where a
        value is NaN.
    """
    from scipy.stats import trim_mean

    values = float_array("values", values)
    # Not left to trim_mean: older versions sort NaN behind all numbers and trim it away.
    return _plain(np.where(np.isnan(values).any(axis), np.nan, trim_mean(values, 0.25, axis)))


def summary(values, **options):
    """Mean, median and interquartile mean over runs: {name: `Estimate`}.

    Three, because each can mislead: a few failed runs drag the mean away from what is typical, and
    leave no trace in the other two. The `failure_rate` belongs beside them.

    Args:
        values, options: as in `estimate`.
    """
    statistics = {"mean": np.mean, "median": np.median, "IQM": interquartile_mean}
    return {
        name: estimate(values, statistic=statistic, **options)
        for name, statistic in statistics.items()
    }


def failure_rate(values, threshold, confidence=0.95):
    """The share of runs below a threshold and its Wilson interval: an `Estimate`.

    Not a bootstrap interval: where no run failed, every resample says so as well, and the interval
    would be [0, 0]. Wilson's still tells what the runs cannot exclude: [0, 0.11] for 30 of them.

    Args:
        values: (runs,) results, more is better; NaN counts as below.
        threshold: a run fails when it stays below that.
        confidence: in (0, 0.9999].

    Raises:
        ValueError: no runs, or not one number for each.
    """
    from scipy.stats import binomtest

    values = float_array("values", values)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"values: must have the shape (runs,), got {values.shape}")
    confidence = real_number("confidence", confidence, high=0.9999, above=0)
    failures = binomtest(int((~(values >= threshold)).sum()), len(values))
    low, high = failures.proportion_ci(confidence, method="wilson")
    return Estimate(failures.statistic, float(low), float(high))


def paired_difference(a, b, axis=-1, statistic=np.mean, **options):
    """The statistic of a − b over paired runs, and its bootstrap interval: an `Estimate`.

    Run k of ``a`` and run k of ``b`` share their seed, so what the seed does to both cancels in
    their difference. Of medians take heed: this is the median of the differences, which need not be
    the difference of the medians.

    Args:
        a, b: arrays of the same shape with the runs along ``axis``.
        axis, statistic, options: as in `bootstrap_interval`.
    """
    a, b = _never_infinite("a", a), _never_infinite("b", b)
    if a.shape != b.shape:
        raise ValueError(f"b: paired runs need the shape of a {a.shape}, got {b.shape}")
    return estimate(a - b, axis, statistic, **options)


def probability_of_improvement(a, b, confidence=0.95, resamples=2000, seed=0):
    """How likely a run of ``a`` is to beat a run of ``b``: P(a > b) + ½ P(a = b), an `Estimate`.

    Every run of the one is compared with every run of the other (Agarwal et al. 2021), so pairs play
    no part: the interval draws the runs of both separately.

    Args:
        a, b: (runs,) results, more is better; their numbers of runs may differ.
    """

    def share_of_wins(a, b, axis=-1):
        a, b = a[..., :, None], b[..., None, :]
        return ((a > b) + 0.5 * (a == b)).mean(axis=(-2, -1))

    a, b = float_array("a", a), float_array("b", b)
    interval = _interval((a, b), share_of_wins, confidence, resamples, seed)
    return Estimate(float(share_of_wins(a, b)), *interval)


def steps_to_threshold(curve, grid, threshold):
    """The first step at which each run's curve reaches the threshold: (runs,) floats.

    A run that never does is *censored*: all we know is that it would need more steps than it had. It
    gets `inf`. The runs of a study all have the same budget, so no run is lost sight of before
    another arrives, and ``np.median(steps)`` is right as it is: a number where more than half of
    the runs arrive, otherwise `inf`, to be read as "more than ``grid[-1]``".

    Whatever averages or subtracts (`estimate`, `paired_difference`) needs the restricted times,
    ``np.minimum(steps, grid[-1])``. Where more than half of the runs arrive, their median is the
    same, and an end of its interval at ``grid[-1]`` reads "that or more"; their mean is a lower
    bound. `probability_of_improvement` only compares and takes ``-steps`` as they are: two runs that
    never arrive tie.

    Args:
        curve: (len(grid), runs), such as `History.learning_curve` gives; NaN counts as below.
        grid: increasing steps.
        threshold: the curve has arrived when it is at least that.
    """
    curve, grid = float_array("curve", curve), float_array("grid", grid)
    if curve.ndim != 2 or grid.shape != curve.shape[:1]:
        raise ValueError(f"grid: must have the shape {curve.shape[:1]}, got {grid.shape}")
    arrived = curve >= threshold
    return np.where(arrived.any(axis=0), grid[arrived.argmax(axis=0)], np.inf)


def _never_infinite(name, values):
    """The values as floats. Of infinite ones neither a difference nor a mean says anything, and
    versions of SciPy disagree on a percentile between a number and infinity."""
    values = float_array(name, values)
    if np.isinf(values).any():
        raise ValueError(
            f"{name}: must not be infinite; of steps to a threshold, give np.minimum(steps, budget)"
        )
    return values


def _interval(samples, statistic, confidence, resamples, seed):
    """Percentile interval of a statistic of independent samples (..., runs)."""
    from scipy.stats import bootstrap  # takes longer to load than all the rest

    runs = min(sample.shape[-1] for sample in samples)
    if runs < 2:
        raise ValueError(f"values: at least two runs are needed for an interval, got {runs}")
    with warnings.catch_warnings(action="ignore"):  # of NaN, which the interval shows
        interval = bootstrap(
            samples,
            statistic,
            vectorized=True,
            axis=-1,
            confidence_level=real_number("confidence", confidence, high=0.9999, above=0),
            n_resamples=whole_number("resamples", resamples),
            batch=100,  # of a curve, all resamples at once would be hundreds of megabytes
            method="percentile",
            rng=np.random.default_rng(seed),
        ).confidence_interval
    return _plain(interval.low), _plain(interval.high)


def _plain(value):
    return float(value) if np.ndim(value) == 0 else value
