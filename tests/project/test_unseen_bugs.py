"""The page on unseen bugs is about the tool's buffers, and its plain buffer is correct."""

import json

import pytest
from unseen_bugs import BUFFERS, BUGS, CORRECT, END, PAGE, RESULTS, START, Handling, table

from per_tutorial.conformance import examine

# How many bugs were found by questions that were not written for them. Later questions, which were,
# do not change the counts.
CAUGHT, NAMED = 17, 13
MISSED = {
    "MaximumOfLastBatch": "newcomers-last-update",
    "KeepsReferences": "arrays-added",
    "OneArrayForAll": "arrays-drawn",
}
FAST = ["handling", "one-transition", "reach", "weights-beta-zero", "contents", "truncation"]


def test_every_buffer_is_examined_and_judged():
    entries = json.loads(RESULTS.read_text(encoding="utf-8"))["buffers"]
    assert [entry["name"] for entry in entries] == list(BUFFERS)
    for entry in entries:
        buffer = BUFFERS[entry["name"]]
        assert entry["correct"] == buffer.correct
        assert entry["expected"] == buffer.expected
        assert entry["named_rightly"] in ((None,) if buffer.correct else (True, False))
        assert entry["caught"] or not entry["named_rightly"]
    assert len(BUGS) == 20


def test_the_first_count_stays_and_what_was_found_later_is_apart():
    entries = json.loads(RESULTS.read_text(encoding="utf-8"))["buffers"]
    bugs = {entry["name"]: entry for entry in entries if not entry["correct"]}
    assert sum(entry["caught"] for entry in bugs.values()) == CAUGHT
    assert sum(bool(entry["named_rightly"]) for entry in bugs.values()) == NAMED
    assert {name for name, entry in bugs.items() if not entry["caught"]} == set(MISSED)
    for name, question in MISSED.items():
        assert bugs[name]["failures"].count(question) == 0
        assert bugs[name]["later"] == [question]
    assert all(not entry["later"] for entry in entries if entry["name"] not in MISSED)
    page = PAGE.read_text(encoding="utf-8")
    found = page.partition(f"{START}\n")[2].partition(f"\n{END}")[0]
    assert found == table(entries)
    said = f"{CAUGHT} of 20 are caught in all, and {NAMED} of them are named rightly."
    prose = " ".join(page.split())
    assert said in prose and "written *after* these bugs were seen" in prose


@pytest.mark.slow
@pytest.mark.parametrize("name", MISSED)
def test_a_bug_that_was_missed_has_a_question_now(name):
    needed = ["newcomers-largest", "contents", MISSED[name]]
    found = examine(Handling(name), questions=needed, isolate=False)
    assert [answer.question.name for answer in found.failures] == [MISSED[name]]
    correct = examine(Handling("Buffer"), questions=needed, isolate=False)
    assert not correct.failures


@pytest.mark.parametrize("name", [buffer.__name__ for buffer in CORRECT])
def test_correct_buffers_fail_none_of_the_fast_questions(name):
    assert not examine(Handling(name), questions=FAST, isolate=False).failures


def test_a_bug_fails_a_fast_question():
    report = examine(Handling("TruncatedIsTerminated"), questions=FAST, isolate=False)
    assert [answer.question.name for answer in report.failures] == ["truncation"]
