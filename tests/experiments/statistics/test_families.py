"""Families of comparisons: corrected for their number, and judged by three tests."""

import numpy as np
import pytest

from per_tutorial.experiments.statistics.estimates import (
    bootstrap_interval,
    holm,
    paired_difference,
    paired_t_test,
    signed_rank_test,
    verdict,
)
from per_tutorial.experiments.statistics.families import agreement


@pytest.fixture
def rng():
    return np.random.default_rng(1)


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


def test_the_bootstrap_of_a_family_of_one_is_the_interval(rng):
    sample = rng.normal(size=40)
    for limit, below in ((0.02, True), (-0.02, False)):
        moved = sample - bootstrap_interval(sample)[0] + limit
        (judged,) = agreement([(moved, np.zeros(40))])
        assert (judged.p_values[0] < 0.05) == below


def test_where_the_tests_disagree_a_family_says_so():
    a = np.r_[np.full(13, 0.1), np.full(12, -0.2), np.full(5, 4.0)]
    (judged,) = agreement([(a, np.zeros(30))])
    assert judged.verdict == "borderline"
    assert judged.p == signed_rank_test(a, np.zeros(30))


def test_a_missing_run_tells_nothing_apart():
    (judged,) = agreement([([1.0, np.nan, 2.0], np.zeros(3))])
    assert judged.verdict == "not told apart" and np.isnan(judged.p)
    assert agreement([]) == []
    with pytest.raises(ValueError, match=r"pairs: must have the shape \(runs,\)"):
        agreement([(np.zeros((2, 3)), np.zeros((2, 3)))])
    with pytest.raises(ValueError, match=r"pairs: must have equally many runs, got \[3, 4\]"):
        agreement([(np.ones(3), np.zeros(3)), (np.ones(4), np.zeros(4))])
