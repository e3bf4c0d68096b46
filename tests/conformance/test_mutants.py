"""Every known bug of a buffer is caught, by the question that names it.

The tests of the known bugs show that each part has its bug. Here it is the examination that is tried: it
must find all of them among all its questions, and must not need to be told where to look.
"""

import pytest

from per_tutorial.conformance import QUESTIONS, Verdict, examine
from per_tutorial.experiments.known_bugs import KNOWN_BUGS
from per_tutorial.experiments.known_bugs.examined import BugAdapter

IN_BUFFERS = [name for name, bug in KNOWN_BUGS.items() if bug.in_buffer]

# Questions that take longest; what they find is tried in the known bugs' own tests.
LONG = {"sum-after-updates", "sum-after-outliers"}


def test_the_list_has_twenty_five_buffers_with_a_bug():
    assert len(IN_BUFFERS) >= 25
    assert {KNOWN_BUGS[name].found_by for name in IN_BUFFERS} <= set(QUESTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_BUFFERS)
@pytest.mark.parametrize("seed", [11, 12])
def test_the_question_that_names_a_bug_finds_it_with_any_seed(name, seed):
    bug = KNOWN_BUGS[name]
    report = examine(BugAdapter(bug), seed, questions=[bug.found_by], isolate=False)
    wanted = Verdict.REPORTED if bug.choice else Verdict.FAILS
    assert report.answers[0].verdict is wanted, str(report)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", IN_BUFFERS)
def test_an_examination_as_a_whole_fails_a_bug_and_spares_a_choice(name):
    bug = KNOWN_BUGS[name]
    asked = [each for each in QUESTIONS if each not in LONG - {bug.found_by}]
    report = examine(BugAdapter(bug), questions=asked)
    if bug.choice:
        assert report.failures == [], str(report)
    else:
        assert bug.found_by in {answer.question.name for answer in report.failures}, str(report)
