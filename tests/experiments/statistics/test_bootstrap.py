"""Resamples against SciPy's, and against the statistic of the runs that were drawn."""

import time

import numpy as np
import pytest
from scipy.stats import bootstrap

from per_tutorial.experiments.statistics import bootstrap as module
from per_tutorial.experiments.statistics.bootstrap import (
    resampled_means,
    resampled_shares,
    resampled_statistic,
)
from per_tutorial.experiments.statistics.estimates import (
    bootstrap_interval,
    estimate,
    interquartile_mean,
    probability_of_improvement,
)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def scipys(samples, statistic, seed, **options):
    """SciPy's percentile bootstrap of 25,000 resamples with the draws of our seed."""
    return bootstrap(
        samples,
        statistic,
        vectorized=True,
        axis=-1,
        n_resamples=25_000,
        method="percentile",
        rng=np.random.default_rng(seed),
        **options,
    )


@pytest.mark.parametrize("statistic", [np.mean, np.median, interquartile_mean])
def test_a_seed_gives_scipys_resamples_and_interval(rng, statistic):
    runs = rng.normal(size=30)
    theirs = scipys((runs,), statistic, seed=4)
    if statistic is np.mean:
        ours = resampled_means(runs, 25_000, seed=4)
    else:
        ours = resampled_statistic(runs, statistic, 25_000, seed=4)
    np.testing.assert_allclose(ours, theirs.bootstrap_distribution, rtol=1e-12, atol=1e-14)
    interval = bootstrap_interval(runs, statistic=statistic, resamples=25_000, seed=4)
    assert interval == pytest.approx(tuple(theirs.confidence_interval), rel=1e-12)


def test_shares_of_wins_are_scipys(rng):
    a, b = rng.integers(0, 9, size=12), rng.integers(0, 9, size=7)

    def share(a, b, axis=-1):
        a, b = a[..., :, None], b[..., None, :]
        return ((a > b) + 0.5 * (a == b)).mean(axis=(-2, -1))

    theirs = scipys((a, b), share, seed=4, batch=module.CHUNK)
    ours = probability_of_improvement(a, b, resamples=25_000, seed=4)
    assert ours == pytest.approx((share(a, b), *theirs.confidence_interval), rel=1e-12)
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    np.testing.assert_allclose(
        resampled_shares(wins, 25_000, seed=4), theirs.bootstrap_distribution, rtol=1e-12
    )


def test_the_size_of_the_chunks_does_not_matter(rng, monkeypatch):
    curve = rng.normal(size=(4, 9))
    means = resampled_means(curve, 1000, seed=2)
    medians = resampled_statistic(curve, np.median, 1000, seed=2)
    monkeypatch.setattr(module, "CHUNK", 7)
    monkeypatch.setattr(module, "CHUNK_NUMBERS", 50)
    np.testing.assert_allclose(resampled_means(curve, 1000, seed=2), means, rtol=1e-12)
    np.testing.assert_array_equal(resampled_statistic(curve, np.median, 1000, seed=2), medians)


def test_all_points_of_a_curve_share_their_draws(rng):
    runs = rng.normal(size=12)
    curve = np.array([runs, 2 * runs, runs + 3])
    means = resampled_means(curve, 500, seed=0)
    np.testing.assert_allclose(means[1], 2 * means[0])
    np.testing.assert_allclose(means[2], means[0] + 3)


def fastest(function, *arguments):
    """Processor seconds of the fastest of a few calls: what other processes do does not count."""
    seconds = []
    for _ in range(5):
        start = time.process_time()
        function(*arguments)
        seconds.append(time.process_time() - start)
    return min(seconds)


@pytest.mark.slow
def test_a_hundred_thousand_resamples_cost_little(rng):
    assert fastest(estimate, rng.normal(size=30)) < 0.1  # 0.02 on an ordinary processor
    assert fastest(estimate, rng.normal(size=(100, 30))) < 1.5  # 0.2
