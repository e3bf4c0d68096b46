"""Every planted bug is found by the check that it names, and an agent's bugs do what they say."""

import re

import numpy as np
import pytest

from per_tutorial.conformance import CHECKS, examine
from per_tutorial.conformance.adapters.ours import PlainAdapter
from per_tutorial.conformance.bugs import BUGS, planted
from per_tutorial.conformance.plain import Plain


@pytest.mark.parametrize("name", BUGS)
def test_the_check_that_a_bug_names_finds_it(name):
    with pytest.raises(AssertionError):
        CHECKS[BUGS[name].found_by](PlainAdapter(BUGS[name]), seed=11)


def test_everything_is_told_of_a_bug():
    assert len(BUGS) >= 35
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
        *("stale-write-back", "not-a-number", "empty-sampled", "errors-written-over"),
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
    report = examine(PlainAdapter(BUGS[name]), 3, isolate=False)
    failed = {one.check for one in report.failures}
    assert BUGS[name].found_by in failed and failed <= others | {BUGS[name].found_by}, report


def test_two_independent_faults_are_both_shown():
    class Two(BUGS["alpha-twice"]):
        weights = BUGS["no-weights"].weights

    report = examine(PlainAdapter(Two), checks=["exponent", "weights"], isolate=False)
    assert [one.verdict for one in report.results] == ["failed", "failed"]
    said = " ".join(str(report).split())  # lines are wrapped
    assert "α is applied twice" in said and "weights: with β = 1" in said


def test_a_planted_bug_replaces_one_method_and_registers_itself():
    @planted("newcomer", "newcomers", "owner/repository#1")
    def bug_of_this_test(self):
        """A new transition gets nothing."""
        return 0.0

    bug = BUGS.pop("bug-of-this-test")
    assert issubclass(bug, Plain) and bug(4, (1,)).newcomer() == 0.0
    assert (bug.found_by, bug.seen, bug.wrong) == (
        "newcomers",
        ("owner/repository#1",),
        "return 0.0",
    )


# Agents -------------------------------------------------------------------------------------------


def updates_of(kind):
    from per_tutorial.dqn.config import DQNConfig
    from per_tutorial.replay.contracts import Batch

    learner = kind(DQNConfig(hidden=(8,), batch_size=5, loss="squared"), (3,), 2, seeds=[1])
    rng = np.random.default_rng(0)
    batch = Batch(
        rng.normal(size=(1, 5, 3)).astype(np.float32),
        rng.integers(2, size=(1, 5)),
        3 * rng.normal(size=(1, 5)).astype(np.float32),
        rng.normal(size=(1, 5, 3)).astype(np.float32),
        rng.random((1, 5)) < 0.3,
        rng.uniform(0.1, 1.0, (1, 5)).astype(np.float32),
        np.arange(5)[None],
    )
    return batch, learner.update(batch)


def test_the_bugs_of_agents_do_what_they_say():
    from per_tutorial.conformance.agent_bugs import AGENT_BUGS
    from per_tutorial.dqn.learner import DQNLearner

    batch, real = updates_of(DQNLearner)
    each = real.td_errors.astype(float) ** 2 / 2
    _, wrong = updates_of(AGENT_BUGS["loss-broadcast"])  # the mean of a table of two factors
    np.testing.assert_allclose(wrong.losses, batch.weights.mean() * each.mean(), rtol=1e-5)
    assert not np.allclose(wrong.losses, real.losses, rtol=0.01)
    _, squared = updates_of(AGENT_BUGS["weighted-squared-priority"])
    expected = batch.weights.astype(float) * real.td_errors.astype(float) ** 2
    np.testing.assert_allclose(squared.td_errors, expected, rtol=1e-6)
    np.testing.assert_array_equal(squared.losses, real.losses)
