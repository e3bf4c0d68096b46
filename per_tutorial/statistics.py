"""From runs to conclusions: bootstrap intervals, paired differences, steps to a threshold.

The unit that is drawn again is always the run, never the episode: episodes of one run share a
network and say little more than one of them. Colas et al. (2019), Agarwal et al. (2021) and
Patterson et al. (2024) explain the choices; notebook 03 uses them first.
"""

import warnings
from typing import NamedTuple

import numpy as np

from per_tutorial.checks import float_array, real_number, whole_number


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
        ValueError: fewer than two runs, or a setting out of range.
        TypeError: the values are no numbers.
    """
    values = np.moveaxis(float_array("values", values), axis, -1)
    return _interval((values,), statistic, confidence, resamples, seed)


def paired_difference(a, b, axis=-1, statistic=np.mean, confidence=0.95, resamples=2000, seed=0):
    """The statistic of a − b over paired runs, and its bootstrap interval: an `Estimate`.

    Run k of ``a`` and run k of ``b`` share their seed, so what the seed does to both cancels in
    their difference.

    Args:
        a, b: arrays of the same shape with the runs along ``axis``; the rest as in
            `bootstrap_interval`.
    """
    a, b = float_array("a", a), float_array("b", b)
    if a.shape != b.shape:
        raise ValueError(f"b: paired runs need the shape of a {a.shape}, got {b.shape}")
    differences = a - b
    value = statistic(differences, axis=axis)
    low, high = bootstrap_interval(differences, axis, statistic, confidence, resamples, seed)
    return Estimate(_plain(value), low, high)


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
    gets `inf`, so that the median over runs is right as long as most of them arrive. A mean needs
    the restricted times, ``np.minimum(steps, grid[-1])``.

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
