"""The one rule for evidence, and intervals against what is known of them."""

import subprocess
import sys

import numpy as np
import pytest

from per_tutorial.statistics import LEVEL, Estimate, compare, failure_rate, t_interval

ZERO = np.zeros(30)


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
    pairs = [(rng.normal(0.4, 1, 30), ZERO) for _ in range(5)]
    for pair, one in zip(pairs, compare(pairs), strict=True):
        assert one.difference == t_interval(pair[0], 1 - LEVEL / 5)
        assert [one] == compare([pair], m=5)
        narrow = compare([pair])[0].difference
        assert one.difference.low < narrow.low < narrow.high < one.difference.high
    weak = np.linspace(-1, 1, 30) + 0.3
    assert compare([(weak, ZERO)])[0].shown
    assert not compare([(weak, ZERO)], m=20)[0].shown
    assert compare([]) == []


@pytest.mark.slow
def test_a_family_without_differences_shows_one_in_twenty_times(rng):
    some = []
    for _ in range(1500):
        family = compare([(rng.normal(size=10), rng.normal(size=10)) for _ in range(4)])
        some.append(any(one.shown for one in family))
    assert 0.03 < np.mean(some) < 0.07


def test_rounding_shows_nothing_and_equal_differences_are_a_point():
    a = np.array([0.1 + 0.2, 100.3, 7.7])
    assert compare([(a * (1 + 1e-14), a), (a, a)]) == [((0.0, 0.0, 0.0), False)] * 2
    assert compare([(a + 2, a)])[0].shown


def test_what_the_rule_refuses_and_what_a_missing_run_does():
    for pair, m, said in (
        (([1.0, 2.0], [1.0, 2.0, 3.0]), None, "b: paired runs need the shape"),
        (([1.0], [2.0]), None, "an interval needs at least 2 runs, got 1"),
        (([1.0, 2.0], [1.0, 2.0]), 0, "m: must be at least 1, got 0"),
        (([1.0, np.inf], [1.0, np.inf]), None, "must not be infinite.*np.minimum"),
    ):
        with pytest.raises(ValueError, match=said):
            compare([pair], m)
    (one,) = compare([([5.0, np.nan, 6.0], np.zeros(3))])
    assert not one.shown and np.isnan(one.difference).all()


def test_an_estimate_is_written_with_its_interval():
    one = Estimate(1234.56, -0.25, 2469.5)
    assert f"{one:+,.1f}" == "+1,234.6 [-0.2, 2,469.5]"
    assert f"{one:9.0f}|" == "     1235 [-0, 2470]|"


# One sample -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("failures", "runs"), [(0, 30), (3, 30), (30, 30), (1, 2)])
def test_the_failure_rate_and_its_interval_are_wilsons(failures, runs):
    scores = np.repeat([0.0, 1.0], [failures, runs - failures])
    value, low, high = failure_rate(scores, 0.5)
    z = 1.959964
    middle = (failures + z**2 / 2) / (runs + z**2)
    half = z / (runs + z**2) * np.sqrt(failures * (runs - failures) / runs + z**2 / 4)
    assert value == failures / runs
    assert (low, high) == pytest.approx((middle - half, middle + half), abs=1e-6)
    # the threshold itself is no failure, a missing score is one
    assert failure_rate([195.0, 194.9, 200.0, np.nan], 195).value == 0.5


def test_the_module_loads_without_scipy_and_torch():
    code = "import per_tutorial.statistics, sys; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert {"scipy.stats", "torch", "matplotlib"}.isdisjoint(shown.stdout.split())
