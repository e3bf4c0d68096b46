"""Every planted bug is found by the check that it names, which names the mistake."""

import re

import pytest

from per_tutorial.conformance import CHECKS, examine
from per_tutorial.conformance.adapters import PlainAdapter
from per_tutorial.conformance.bugs import BUGS


@pytest.mark.parametrize("name", BUGS)
@pytest.mark.slow
def test_the_check_that_a_bug_names_finds_it(name):
    with pytest.raises(AssertionError):
        CHECKS[BUGS[name].found_by](PlainAdapter(BUGS[name]), seed=11)


def test_everything_is_told_of_a_bug():
    assert len(BUGS) >= 30
    assert {bug.found_by for bug in BUGS.values()} == set(CHECKS)  # no check finds nothing
    assert len({bug.mistake for bug in BUGS.values()}) == len(BUGS)
    for name, bug in BUGS.items():
        assert bug.mistake.endswith(".") and bug.wrong, name
        for case in bug.seen:
            assert re.match(r"[\w.-]+/[\w.-]+(#\d+$| \()", case), case


def test_what_the_algorithm_promises_is_checked_by_default():
    """Those that only `everything` finds are not about the algorithm."""
    further = {n for n, bug in BUGS.items() if CHECKS[bug.found_by].kind == "further"}
    assert further == {
        *("stale-write-back", "not-a-number", "errors-written-over"),
        *("windows-cross-truncations", "tail-never-flushed", "kept-arrays", "one-array-for-all"),
        *("seed-ignored", "lossy-checkpoint"),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, others",
    [
        ("alpha-twice", set()),
        ("signed-priority", {"proportions", "epsilon", "updates"}),
        ("newcomers-at-one", set()),
        ("no-weights", set()),
        ("weights-that-sum-to-one", set()),
        ("truncation-as-terminal", set()),
    ],
)
def test_a_bug_is_named_first_and_nothing_unrelated_fails(name, others):
    report = examine(PlainAdapter(BUGS[name]), 3)
    failed = {one.check for one in report.failures}
    assert BUGS[name].found_by in failed and failed <= others | {BUGS[name].found_by}, report


def test_two_independent_faults_are_both_shown():
    class Two(BUGS["alpha-twice"]):
        weights = BUGS["no-weights"].weights

    report = examine(PlainAdapter(Two), checks=["exponent", "weights"])
    assert [one.verdict for one in report.results] == ["failed", "failed"]
    said = " ".join(str(report).split())  # lines are wrapped
    assert "α is applied twice" in said and "weights: with β = 1" in said
