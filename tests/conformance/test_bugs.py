"""Every planted bug is found by the check that it names, which names the mistake."""

import re

import numpy as np
import pytest

from per_tutorial.conformance import CHECKS, examine
from per_tutorial.conformance.adapters import PlainAdapter
from per_tutorial.conformance.bugs import BUGS
from per_tutorial.conformance.plain import Plain


@pytest.mark.parametrize("name", BUGS)
@pytest.mark.slow
def test_the_check_that_a_bug_names_finds_it(name):
    with pytest.raises(AssertionError):
        CHECKS[BUGS[name].found_by](PlainAdapter(BUGS[name]))


class ShallowTree(Plain):
    """The search takes log2(capacity) steps, rounded down: right for powers of two."""

    def find(self, prefix_sums, masses):
        leaves = 1 << (self.capacity - 1).bit_length()
        sums = np.concatenate([np.zeros(leaves), masses, np.zeros(leaves - len(masses))])
        for node in reversed(range(1, leaves)):
            sums[node] = sums[2 * node] + sums[2 * node + 1]
        nodes, rest = np.ones(len(prefix_sums), int), np.array(prefix_sums)
        for _ in range(int(np.log2(self.capacity))):
            right = rest >= sums[2 * nodes]
            rest -= np.where(right, sums[2 * nodes], 0)
            nodes = 2 * nodes + right
        return np.clip(nodes - leaves, 0, len(masses) - 1)


class LastTwoLost(Plain):
    def update_priorities(self, indices, td_errors):
        super().update_priorities(indices[:-2], td_errors[:-2])


class SizeOfReward(Plain):
    def add(self, observation, action, reward, *rest):
        super().add(observation, action, abs(reward), *rest)


@pytest.mark.slow
@pytest.mark.parametrize(
    "check, buffer",
    [("reach", ShallowTree), ("updates", LastTwoLost), ("contents", SizeOfReward)],
)
def test_a_bug_that_hides_from_small_minibatches_and_round_numbers_is_found(check, buffer):
    with pytest.raises(AssertionError):
        CHECKS[check](PlainAdapter(buffer))


def test_everything_is_told_of_a_bug():
    assert len(BUGS) >= 25
    assert {bug.found_by for bug in BUGS.values()} == set(CHECKS)  # no check finds nothing
    assert len({bug.__doc__ for bug in BUGS.values()}) == len(BUGS)
    for name, bug in BUGS.items():
        assert bug.__doc__.endswith(".") and bug.wrong, name
        for case in bug.seen:
            assert re.match(r"[\w.-]+/[\w.-]+(#\d+$| \()", case), case


def test_what_the_algorithm_promises_is_checked_by_default():
    """Those that only `everything` finds are not about the algorithm."""
    further = {n for n, bug in BUGS.items() if CHECKS[bug.found_by].kind == "further"}
    assert further == {
        *("stale-write-back", "not-a-number"),
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
