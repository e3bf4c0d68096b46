"""Every known bug that lives in a buffer is found by the question that is named for it.

The known bugs' own tests show that each has its bug. Here it is the examination that is tried: it
must find them among all its questions, and blame nothing else.
"""

import pytest
from sampling import one_in

from per_tutorial.conformance import QUESTIONS, Verdict, examine
from per_tutorial.conformance.questions import numerics
from per_tutorial.experiments.known_bugs import KNOWN_BUGS
from per_tutorial.experiments.known_bugs.examined import BugAdapter

IN_BUFFERS = [name for name, bug in KNOWN_BUGS.items() if bug.in_buffer]


def test_there_are_twenty_five_buffers_with_a_bug():
    assert len(IN_BUFFERS) >= 25
    assert {KNOWN_BUGS[name].found_by for name in IN_BUFFERS} <= set(QUESTIONS)


@pytest.mark.parametrize("name", IN_BUFFERS)
def test_the_question_that_is_named_for_a_bug_finds_it(name):
    bug = KNOWN_BUGS[name]
    report = examine(BugAdapter(bug), 11, questions=[bug.found_by], isolate=False)
    wanted = Verdict.REPORTED if bug.choice else Verdict.FAILS
    assert report.answers[0].verdict is wanted, str(report)


def test_a_question_is_not_judged_where_one_that_it_depends_on_failed():
    adapter = BugAdapter(KNOWN_BUGS["newcomers-at-one"])
    names = ["handling", "newcomers-largest", "saved-largest"]
    report = examine(adapter, questions=names)
    assert [answer.verdict.value for answer in report.answers] == ["holds", "fails", "not judged"]
    assert report["saved-largest"].measured.startswith("because newcomers-largest fails (one added")
    assert report.summary() == "1 holds, 1 fails, 1 not judged"
    assert report.as_dict()["answers"]["saved-largest"][0] == "not judged"
    assert "not judged" in str(report) and "not judged" in report._repr_html_()
    assert not report.passed
    alone = examine(adapter, questions=["saved-largest"])
    assert alone["saved-largest"].verdict is Verdict.FAILS


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(5, IN_BUFFERS))
def test_an_examination_as_a_whole_fails_a_bug_by_one_question_and_spares_a_choice(
    name, monkeypatch
):
    monkeypatch.setattr(numerics, "UPDATES", 100_000)
    bug = KNOWN_BUGS[name]
    report = examine(BugAdapter(bug), 12, isolate=False)
    wanted = [] if bug.choice else [bug.found_by]
    assert [answer.question.name for answer in report.failures] == wanted, str(report)
