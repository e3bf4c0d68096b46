"""The binomial tails of the examination are those of SciPy, which it does without."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import binom

from per_tutorial.conformance import false_alarm_rate
from per_tutorial.conformance.chance import share_misfits, tail

COUNTS = {
    "few": (np.arange(9), 8, 0.3),
    "rare": (np.arange(12), 20_000, 1e-4),
    "never": (np.arange(3), 50, 0.0),
    "always": (np.arange(48, 51), 50, 1.0),
    "usual": (np.arange(100, 600, 7), 20_000, 1 / 64),
    "half": (np.arange(9000, 11_000, 37), 20_000, 0.5),
    "nearly all": (np.arange(19_900, 20_001, 3), 20_000, 0.999),
    "many": (np.arange(82_000, 84_000, 101), 1_000_000, 0.083),
}


@pytest.mark.parametrize("case", COUNTS)
def test_tails_are_those_of_scipy(case):
    counts, draws, p = COUNTS[case]
    below = counts <= draws * p
    low, high = binom.cdf(counts, draws, p), binom.sf(counts - 1, draws, p)
    wanted = np.minimum(1.0, 2 * np.where(below, low, high))
    found = tail(counts, draws, np.full(len(counts), p))
    seen = wanted > 1e-280  # below, SciPy's own results are subnormal or 0
    np.testing.assert_allclose(found[seen], wanted[seen], rtol=1e-6)
    assert (found[~seen] < 1e-270).all()


def test_a_share_between_its_bounds_never_misfits():
    assert not share_misfits(50, 100, 0.4, 0.6)
    assert not share_misfits(39, 100, 0.4, 0.6)
    assert share_misfits(10, 100, 0.4, 0.6) and share_misfits(90, 100, 0.4, 0.6)


def test_tails_hold_the_rate_of_false_alarms_that_they_promise():
    rng = np.random.default_rng(0)
    counts = rng.binomial(500, 0.03, size=20_000)
    chances = tail(counts, 500, np.full(len(counts), 0.03))
    for level in (0.1, 0.01, 0.001):
        assert (chances < level).mean() <= level + 4 * np.sqrt(level / len(counts))


def test_the_questions_together_raise_a_false_alarm_in_one_of_ten_thousand_examinations_at_most():
    assert 0 < false_alarm_rate() <= 1e-4


WITHOUT = """
import sys
for name in ("scipy", "torch", "gymnasium", "matplotlib"):
    sys.modules[name] = None
from per_tutorial.conformance import examine, find_adapter
questions = ["proportions-full", "weights-undo", "newcomers-largest", "stale-updates"]
print(examine(find_adapter("proportional"), questions=questions).summary())
"""


@pytest.mark.slow
def test_the_examination_runs_with_numpy_and_numba_alone():
    command = [sys.executable, "-c", WITHOUT]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "4 holds\n"
