"""The one rule for evidence, intervals against what is known of them, and the pages' verdicts."""

import subprocess
import sys

import numpy as np
import pytest

from per_tutorial.statistics import (
    BAND_RESAMPLES,
    LEVEL,
    RESAMPLES,
    agreement,
    bootstrap_interval,
    compare,
    estimate,
    failure_rate,
    holm,
    paired_difference,
    paired_t_test,
    signed_rank_test,
    steps_to_threshold,
    t_interval,
    verdict,
)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


# The rule ---------------------------------------------------------------------------------------


def test_a_difference_is_shown_if_its_t_interval_leaves_out_zero():
    """By hand: differences 1, 2, 3 have the mean 2, s = 1, and t(2) = 4.3027 at 0.975."""
    (one,) = compare([([1.0, 3.0, 6.0], [0.0, 1.0, 3.0])])
    half = 4.302653 / np.sqrt(3)
    assert one.difference == pytest.approx((2, 2 - half, 2 + half), rel=1e-6)
    assert not one.shown
    for sign in (1, -1):
        (one,) = compare([(sign * np.array([3.9, 4.0, 4.1]), np.zeros(3))])
        assert one.shown and np.sign(one.difference.low) == np.sign(one.difference.high) == sign


def test_the_level_is_that_of_the_family(rng):
    pairs = [(rng.normal(0.4, 1, 30), np.zeros(30)) for _ in range(5)]
    for pair, one in zip(pairs, compare(pairs), strict=True):
        assert one.difference == t_interval(pair[0], 1 - LEVEL / 5)
        assert [one] == compare([pair], m=5)
        narrow = compare([pair])[0].difference
        assert one.difference.low < narrow.low < narrow.high < one.difference.high
    weak = np.linspace(-1, 1, 30) + 0.3
    assert compare([(weak, np.zeros(30))])[0].shown
    assert not compare([(weak, np.zeros(30))], m=20)[0].shown
    assert compare([]) == []


@pytest.mark.slow
def test_a_family_without_differences_shows_one_in_twenty_times(rng):
    """It covers as often as it says, where the bootstrap of ten pairs is a fifth too narrow."""
    some = []
    for _ in range(1500):
        family = compare([(rng.normal(size=10), rng.normal(size=10)) for _ in range(4)])
        some.append(any(one.shown for one in family))
    assert 0.03 < np.mean(some) < 0.07


def test_rounding_shows_nothing_and_equal_differences_are_a_point():
    a = np.array([0.1 + 0.2, 100.3, 7.7])
    (one,) = compare([(a * (1 + 1e-14), a)])
    assert one == ((0.0, 0.0, 0.0), False)
    assert compare([(a + 2, a)])[0].shown
    assert compare([(a, a)])[0] == ((0.0, 0.0, 0.0), False)


def test_what_the_rule_refuses_and_what_a_missing_run_does():
    with pytest.raises(ValueError, match="b: paired runs need the shape"):
        compare([([1.0, 2.0], [1.0, 2.0, 3.0])])
    with pytest.raises(ValueError, match="an interval needs at least 2 runs, got 1"):
        compare([([1.0], [2.0])])
    with pytest.raises(ValueError, match="m: must be at least 2, got 1"):
        compare([([1.0, 2.0], [1.0, 2.0])] * 2, m=1)
    with pytest.raises(ValueError, match="must not be infinite"):
        compare([([1.0, np.inf], [1.0, 2.0])])
    (one,) = compare([([5.0, np.nan, 6.0], np.zeros(3))])
    assert not one.shown and np.isnan(one.difference).all()


# Intervals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_covers_the_mean_as_often_as_it_says(rng, confidence):
    covered = []
    for seed in range(10):  # 2,000 experiments of thirty runs; 200 at a time share their draws
        samples = rng.normal(5.0, 2.0, size=(200, 30))
        low, high = bootstrap_interval(samples, confidence=confidence, resamples=2000, seed=seed)
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


def test_the_number_of_resamples_is_large_unless_that_takes_long(rng):
    runs, curve = rng.normal(size=30), rng.normal(size=(3, 30))
    for values, statistic, resamples in (
        (runs, np.mean, RESAMPLES),
        (curve, np.mean, RESAMPLES),
        (runs, np.median, RESAMPLES),
        (curve, np.median, BAND_RESAMPLES),
    ):
        interval = bootstrap_interval(values, statistic=statistic)
        expected = bootstrap_interval(values, statistic=statistic, resamples=resamples)
        np.testing.assert_array_equal(interval, expected)


def test_the_limits_hardly_move_from_seed_to_seed(rng):
    sample = rng.normal(size=30)
    limits = np.array([bootstrap_interval(sample, seed=seed) for seed in range(10)])
    assert (np.ptp(limits, axis=0) < 0.01 * np.ptp(limits, axis=1).mean()).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [1.0]}, "values: an interval needs at least two"),
        ({"values": []}, "values: an interval needs at least two"),
        ({"values": [1.0, np.inf]}, "values: must not be infinite"),
        ({"values": [1.0, 2.0], "confidence": 1.0}, "confidence"),
        ({"values": [1.0, 2.0], "confidence": 0.0}, "confidence"),
        ({"values": [1.0, 2.0], "resamples": 0}, "resamples"),
    ],
)
def test_what_no_interval_can_be_made_of(arguments, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(**arguments)


# Estimates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_an_estimate_is_the_statistic_and_its_interval(rng, statistic):
    curve = rng.normal(size=(5, 20))
    value, low, high = estimate(curve, statistic=statistic, seed=3, resamples=500)
    np.testing.assert_array_equal(value, statistic(curve, axis=1))
    interval = bootstrap_interval(curve, statistic=statistic, seed=3, resamples=500)
    np.testing.assert_array_equal((low, high), interval)
    single = estimate(curve.T[:, 2], statistic=statistic, seed=3, resamples=500)
    assert single == pytest.approx((value[2], low[2], high[2]))
    assert {type(number) for number in single} == {float}


# Failures ---------------------------------------------------------------------------------------


def test_the_failure_rate_counts_what_stays_below():
    rate = failure_rate([195.0, 194.9, 200.0, np.nan], 195)
    assert rate.value == 0.5  # the threshold itself is no failure, a missing score is one
    assert 0 < rate.low < 0.5 < rate.high < 1


@pytest.mark.parametrize(("failures", "runs"), [(0, 30), (3, 30), (30, 30), (1, 2)])
def test_the_interval_of_the_failure_rate_is_wilsons(failures, runs):
    scores = np.repeat([0.0, 1.0], [failures, runs - failures])
    value, low, high = failure_rate(scores, 0.5)
    z = 1.959964
    middle = (failures + z**2 / 2) / (runs + z**2)
    half = z / (runs + z**2) * np.sqrt(failures * (runs - failures) / runs + z**2 / 4)
    assert value == failures / runs
    assert (low, high) == pytest.approx((middle - half, middle + half), abs=1e-6)
    assert failure_rate(scores, 0.5, confidence=0.5).high < high or failures == runs


def test_the_interval_of_a_rate_covers_it(rng):
    failures = rng.binomial(30, 0.1, size=1000)
    covered = []
    for count in failures:
        _, low, high = failure_rate(np.arange(30), count)  # so many are below
        covered.append(low <= 0.1 <= high)
    assert 0.92 < np.mean(covered) <= 0.99


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": []}, r"values: must have the shape \(runs,\), got \(0,\)"),
        ({"values": np.zeros((2, 3))}, r"values: must have the shape \(runs,\), got \(2, 3\)"),
        ({"values": [1.0], "confidence": 1.0}, "confidence"),
    ],
)
def test_what_has_no_failure_rate(arguments, message):
    with pytest.raises(ValueError, match=message):
        failure_rate(threshold=0.5, **arguments)


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


def test_the_difference_of_curves_is_a_curve(rng):
    a, b = rng.normal(size=(2, 5, 12))
    difference = paired_difference(a, b)
    np.testing.assert_allclose(difference.value, (a - b).mean(axis=1))
    assert difference.low.shape == (5,)
    across = paired_difference(a.T, b.T, axis=0)
    np.testing.assert_allclose(across.high, difference.high)


# Verdicts ---------------------------------------------------------------------------------------


def shifted_to(limit, sample, **options):
    """The sample, moved so that the lower limit of its interval becomes ``limit``."""
    return sample - bootstrap_interval(sample, **options)[0] + limit


def test_a_verdict_says_whether_the_interval_holds_zero(rng):
    noise, zero = rng.normal(size=30), np.zeros(30)
    assert verdict(noise + 5, zero) == "clear"
    assert verdict(zero, noise + 5) == "clear"
    assert verdict(noise - noise.mean(), zero) == "not told apart"
    assert verdict(noise, noise) == "not told apart"
    assert verdict(noise + 5, noise) == "clear"  # each difference is 5: the interval is a point


@pytest.mark.parametrize("side", [1, -1])
def test_a_limit_nearer_to_zero_than_its_error_is_borderline(rng, side, monkeypatch):
    # Enough runs for the t-test to agree, and few resamples, so that the error is large.
    monkeypatch.setattr("per_tutorial.statistics.signed_rank_test", paired_t_test)  # ranks are not asked here
    sample, zero, options = rng.normal(size=200), np.zeros(200), {"resamples": 4000}
    error = 2 * np.std([bootstrap_interval(sample, seed=seed, **options)[0] for seed in range(40)])
    for distance, expected in (
        (2, "clear"),
        (0.5, "borderline"),
        (-0.5, "borderline"),
        (-2, "not told apart"),
    ):
        moved = shifted_to(distance * error, sample, **options)
        assert verdict(side * moved, zero, **options) == expected


def test_an_interval_that_the_t_test_contradicts_is_borderline(rng):
    # Of ten runs the bootstrap's interval is too narrow: it leaves out zero, the test does not.
    sample, zero = rng.normal(size=10), np.zeros(10)
    near, far = shifted_to(0.01, sample), shifted_to(0.5, sample)
    assert paired_t_test(near, zero) > 0.05 > paired_t_test(far, zero)
    assert verdict(near, zero) == "borderline"
    assert verdict(far, zero) == "clear"


def test_what_gets_no_verdict():
    for a in ([], np.zeros((2, 3))):
        with pytest.raises(ValueError, match=r"a, b: must have the shape \(runs,\)"):
            verdict(a, a)
    with pytest.raises(ValueError, match="at least 2 runs"):
        verdict([1.0], [2.0])
    with pytest.raises(ValueError, match="resamples: must be at least 1"):
        verdict([1.0, 2.0], [2.0, 1.0], resamples=0)
    assert verdict([1.0, np.nan], [0.0, 0.0]) == "not told apart"  # no interval leaves out zero


def test_a_verdict_needs_the_signed_ranks_too():
    # One run in six lost as much as three won: the mean is away from zero, the ranks hardly are.
    a = np.r_[np.full(9, 0.1), np.full(9, -0.1), np.full(12, 1.0)]
    assert verdict(a, np.zeros(30)) == "clear"
    a = np.r_[np.full(13, 0.1), np.full(12, -0.2), np.full(5, 4.0)]
    assert paired_t_test(a, np.zeros(30)) < 0.05 < signed_rank_test(a, np.zeros(30))
    assert bootstrap_interval(a)[0] > 0
    assert verdict(a, np.zeros(30)) == "borderline"


def test_the_signed_rank_test_counts_signs(rng):
    a = rng.uniform(1, 2, size=8)
    assert signed_rank_test(a, np.zeros(8)) == pytest.approx(2 / 2**8)  # all 8 of one sign
    assert signed_rank_test(a**9, np.zeros(8)) == signed_rank_test(np.zeros(8), a)
    assert signed_rank_test(a, a) == 1.0


def test_the_paired_t_test_is_students(rng):
    a, b = rng.normal(size=(2, 12)) + [[0.5], [0]]
    difference = a - b
    t = difference.mean() / (difference.std(ddof=1) / np.sqrt(12))
    draws = rng.standard_t(11, size=1_000_000)
    assert paired_t_test(a, b) == pytest.approx((abs(draws) > abs(t)).mean(), abs=0.003)
    assert paired_t_test(b, a) == paired_t_test(a, b)
    assert paired_t_test(a, a) == 1.0
    assert paired_t_test(a + 1, a) == pytest.approx(0.0, abs=1e-30)


def rejected(p_values, level):
    """Holm's method as it is told: the smallest p against level / m, the next against level / (m −
    1), and so on until one is too large."""
    left = sorted(range(len(p_values)), key=lambda k: p_values[k])
    found = set()
    while left and p_values[left[0]] <= level / len(left):
        found.add(left.pop(0))
    return found


def test_corrected_p_values_reject_what_holm_rejects(rng):
    for _ in range(200):
        p_values = rng.choice([0.0, 0.001, 0.004, 0.01, 0.02, 0.03, 0.3, 1.0], size=6)
        corrected = holm(p_values)
        assert (corrected >= p_values).all() and (corrected <= 1).all()
        for level in (0.009, 0.05, 0.11, 0.5):
            assert set(np.flatnonzero(corrected <= level)) == rejected(p_values, level)


def test_corrected_p_values_by_hand():
    np.testing.assert_allclose(holm([0.02, 0.01, 0.5]), [0.04, 0.03, 0.5])
    np.testing.assert_allclose(holm([0.01, 0.011]), [0.02, 0.02])  # never below a smaller one
    assert holm([0.7, 0.8]).tolist() == [1.0, 1.0]
    assert holm([0.3]).tolist() == [0.3]
    assert holm([]).tolist() == []
    np.testing.assert_array_equal(holm([np.nan, 0.02]), [np.nan, 0.04])


@pytest.mark.parametrize("p_values", [[0.5, 1.1], [-0.1], [[0.1]]])
def test_what_are_no_p_values(p_values):
    with pytest.raises(ValueError, match="p_values: must be"):
        holm(p_values)


def test_runs_without_a_partner():
    with pytest.raises(ValueError, match=r"b: paired runs need the shape of a \(3,\), got \(2,\)"):
        paired_difference([1.0, 2.0, 3.0], [1.0, 2.0])


def test_differences_of_censored_steps_need_restricted_ones():
    steps = [10.0, np.inf, 30.0]
    with pytest.raises(ValueError, match="b: must not be infinite.*minimum"):
        paired_difference([10.0, 20.0, 30.0], steps)
    with pytest.raises(ValueError, match="a: must not be infinite"):
        paired_difference(steps, steps)  # where both are, not even the difference is defined
    assert paired_difference([10.0, 20.0, 30.0], np.minimum(steps, 40.0)).value == -20 / 3


# Families, as the pages judge them --------------------------------------------------------------


def test_a_family_is_corrected_and_must_agree(rng):
    zero = np.zeros(30)
    clear, nothing = rng.normal(1.5, 1, size=30), rng.normal(size=30)
    nothing -= nothing.mean()
    weak = nothing / nothing.std() + 0.45  # clear by itself, and not among forty
    assert verdict(weak, zero) == "clear"
    assert [each.verdict for each in agreement([(weak, zero)])] == ["clear"]
    family = agreement([(clear, zero), (weak, zero), *[(nothing, zero)] * 38])
    assert [each.verdict for each in family] == ["clear", *["not told apart"] * 39]
    assert family[0].difference == pytest.approx(paired_difference(clear, zero))
    assert family[0].p == max(family[0].p_values)
    for test, p in zip((paired_t_test, signed_rank_test), family[0].p_values[1:], strict=True):
        alone = [test(clear, zero), test(weak, zero), *[test(nothing, zero)] * 38]
        assert p == pytest.approx(holm(alone)[0])


def test_where_the_tests_disagree_or_a_run_is_missing_a_family_says_so():
    a = np.r_[np.full(13, 0.1), np.full(12, -0.2), np.full(5, 4.0)]
    (judged,) = agreement([(a, np.zeros(30))])
    assert judged.verdict == "borderline"
    assert judged.p == signed_rank_test(a, np.zeros(30))
    (judged,) = agreement([([1.0, np.nan, 2.0], np.zeros(3))])
    assert judged.verdict == "not told apart" and np.isnan(judged.p)
    assert agreement([]) == []
    with pytest.raises(ValueError, match=r"pairs: must have equally many runs, got \[3, 4\]"):
        agreement([(np.ones(3), np.zeros(3)), (np.ones(4), np.zeros(4))])


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


def test_restricted_steps_have_the_same_median_where_most_arrive(rng):
    steps = rng.uniform(0, 100, size=31)
    budget = np.sort(steps)[20]  # 21 of 31 arrive
    censored = np.where(steps <= budget, steps, np.inf)
    restricted = estimate(np.minimum(censored, budget), statistic=np.median)
    assert restricted.value == np.median(censored) == np.median(steps)
    assert restricted.low < restricted.value < restricted.high <= budget


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
