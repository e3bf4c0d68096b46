"""Intervals against what is known of them."""

import subprocess
import sys

import numpy as np
import pytest

from per_tutorial.statistics import (
    bootstrap_interval,
    paired_difference,
    probability_of_improvement,
    steps_to_threshold,
)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


# Intervals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_covers_the_mean_as_often_as_it_says(rng, confidence):
    covered = []
    for seed in range(10):  # 2,000 experiments of thirty runs; 200 at a time share their draws
        samples = rng.normal(5.0, 2.0, size=(200, 30))
        low, high = bootstrap_interval(samples, confidence=confidence, seed=seed)
        covered.append((low <= 5.0) & (high >= 5.0))
    covered = np.mean(covered)
    # The percentile method lacks Student's factor: at 30 runs it is a little too narrow.
    assert confidence - 0.04 < covered < confidence


def test_the_interval_is_as_wide_as_theory_says(rng):
    sample = rng.normal(size=400)
    low, high = bootstrap_interval(sample, resamples=4000)
    assert high - low == pytest.approx(2 * 1.96 * sample.std() / np.sqrt(400), rel=0.06)
    assert low < sample.mean() < high


def test_runs_that_agree_make_a_point():
    assert bootstrap_interval(np.full(10, 200.0)) == (200.0, 200.0)


def test_the_median_of_runs_is_one_of_their_values_or_between_two(rng):
    sample = rng.normal(size=31)
    low, high = bootstrap_interval(sample, statistic=np.median)
    assert sample.min() < low < np.median(sample) < high < sample.max()


def test_the_axis_of_the_runs_is_free(rng):
    curve = rng.normal(size=(7, 30))
    low, high = bootstrap_interval(curve)
    assert low.shape == high.shape == (7,)
    np.testing.assert_allclose(bootstrap_interval(curve.T, axis=0), (low, high))
    assert bootstrap_interval(curve[3]) == pytest.approx((low[3], high[3]))


def test_the_same_seed_gives_the_same_interval(rng):
    sample = rng.normal(size=20)
    assert bootstrap_interval(sample, seed=3) == bootstrap_interval(sample, seed=3)
    assert bootstrap_interval(sample, seed=3) != bootstrap_interval(sample, seed=4)


def test_a_missing_value_is_not_hidden(rng):
    curve = rng.normal(size=(3, 10))
    curve[1, 4] = np.nan
    low, high = bootstrap_interval(curve)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [1.0]}, "values: at least two runs"),
        ({"values": []}, "values: at least two runs"),
        ({"values": [1.0, 2.0], "confidence": 1.0}, "confidence"),
        ({"values": [1.0, 2.0], "confidence": 0.0}, "confidence"),
        ({"values": [1.0, 2.0], "resamples": 0}, "resamples"),
    ],
)
def test_what_no_interval_can_be_made_of(arguments, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(**arguments)


# Pairs ------------------------------------------------------------------------------------------


def test_pairing_removes_what_the_seed_does_to_both(rng):
    seed_effect = rng.normal(0, 100, size=30)
    a = seed_effect + 5 + rng.normal(size=30)
    b = seed_effect + rng.normal(size=30)
    value, low, high = paired_difference(a, b)
    assert value == pytest.approx(np.mean(a - b))
    assert 4 < low < 5 < high < 6
    unpaired = np.subtract(*bootstrap_interval(a)[::-1])
    assert high - low < unpaired / 20


def test_an_arm_does_not_differ_from_itself(rng):
    a = rng.normal(size=30)
    assert paired_difference(a, a) == (0.0, 0.0, 0.0)
    assert probability_of_improvement(a, a).value == 0.5


def test_the_difference_of_curves_is_a_curve(rng):
    a, b = rng.normal(size=(2, 5, 12))
    difference = paired_difference(a, b)
    np.testing.assert_allclose(difference.value, (a - b).mean(axis=1))
    assert difference.low.shape == (5,)
    across = paired_difference(a.T, b.T, axis=0)
    np.testing.assert_allclose(across.high, difference.high)


def test_probability_of_improvement_counts_all_pairs():
    # Of 3 · 3 comparisons a wins 6 and ties 2.
    a, b = [1, 2, 4], [1, 2, 0]
    assert probability_of_improvement(a, b).value == pytest.approx(7 / 9)
    better = probability_of_improvement(np.arange(10) + 100, np.arange(10))
    assert better == (1.0, 1.0, 1.0)
    worse = probability_of_improvement(np.arange(10), np.arange(10) + 100)
    assert worse == (0.0, 0.0, 0.0)


def test_probability_of_improvement_of_normal_runs(rng):
    # For N(1, 1) against N(0, 1): Φ(1/√2) = 0.760.
    value, low, high = probability_of_improvement(rng.normal(1, 1, 300), rng.normal(0, 1, 300))
    assert low < 0.760 < high
    assert high - low < 0.1
    assert low < value < high


def test_probability_of_improvement_covers_what_it_should(rng):
    covered = []
    for seed in range(200):
        a, b = rng.normal(1, 1, 30), rng.normal(0, 1, 20)
        _, low, high = probability_of_improvement(a, b, resamples=500, seed=seed)
        covered.append(low < 0.760 < high)
    assert 0.87 < np.mean(covered) <= 1


def test_runs_without_a_partner():
    with pytest.raises(ValueError, match=r"b: paired runs need the shape of a \(3,\), got \(2,\)"):
        paired_difference([1.0, 2.0, 3.0], [1.0, 2.0])


# Thresholds -------------------------------------------------------------------------------------


def test_steps_to_a_threshold():
    nan = np.nan
    never = [nan, nan, 2.0, 3.0]
    falls_back = [0.0, 5.0, 4.0, 6.0]
    from_the_start = [9.0, 9.0, 9.0, 9.0]
    curve = np.transpose([never, falls_back, from_the_start])
    steps = steps_to_threshold(curve, [10, 20, 30, 40], 5.0)
    assert steps.tolist() == [np.inf, 20.0, 10.0]
    assert np.median(steps) == 20.0


def test_a_median_of_mostly_censored_runs_is_censored():
    steps = steps_to_threshold(np.zeros((4, 5)), np.arange(4), 1.0)
    assert np.median(steps) == np.inf


def test_a_curve_and_its_grid_belong_together():
    with pytest.raises(ValueError, match=r"grid: must have the shape \(4,\), got \(3,\)"):
        steps_to_threshold(np.zeros((4, 5)), [1, 2, 3], 1.0)


# Loading ----------------------------------------------------------------------------------------


def test_the_module_loads_without_scipy_and_torch():
    code = "import per_tutorial.statistics, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert {"scipy.stats", "torch", "matplotlib"}.isdisjoint(loaded)
