"""Ask a buffer all questions, and report."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import per_tutorial.conformance.questions  # noqa: F401  (registers the questions)
from per_tutorial.common.arguments import one_of, whole_number
from per_tutorial.common.provenance import versions
from per_tutorial.conformance.adapter import as_adapter
from per_tutorial.conformance.answers import QUESTIONS, Answer
from per_tutorial.conformance.isolation import answers
from per_tutorial.conformance.report import Report


def examine(
    adapter: Any,
    seed: int = 0,
    *,
    questions: Iterable[str] | None = None,
    isolate: bool = True,
    progress: Callable[[Answer], None] | None = None,
) -> Report:
    """Measure whether a replay buffer does what a correct one does.

    A correct buffer fails in at most one of 10,000 examinations (`false_alarm_rate`).

    Args:
        adapter: how to use the buffer: an `Adapter`, or any class with `make`, `add`, `sample` and
            `update`. A class is called without arguments.
        seed: for all random choices of the examination.
        questions: names of `QUESTIONS`; None: all.
        isolate: ask in a process of its own, with `Adapter.time_limit` for each question, so that a
            buffer that hangs or crashes just fails the question.
        progress: called with each answer as it comes.

    Raises:
        TypeError: the adapter lacks a method, or is an object that lacks an attribute of `Adapter`.
        ValueError: there is no such question.
        ImportError: the buffer's library, or something that it needs, is not installed.
        ExaminationError: the examination itself failed.

    Example:
        >>> from per_tutorial.conformance import examine, find_adapter
        >>> report = examine(find_adapter("proportional"), questions=["handling"], isolate=False)
        >>> report.summary()
        '1 holds'
    """
    adapter = as_adapter(adapter)
    seed = whole_number("seed", seed, minimum=0)
    names = list(QUESTIONS) if questions is None else list(questions)
    for name in names:
        one_of("questions", name, QUESTIONS)
    began, given = time.perf_counter(), []
    for answer in answers(names, adapter, seed, isolate):
        given.append(answer)
        if progress is not None:
            progress(answer)
    return Report(
        adapter.name or type(adapter).__name__,
        versions("numpy", *adapter.packages),
        seed,
        tuple(given),
        time.perf_counter() - began,
    )


def false_alarm_rate() -> float:
    """An upper bound of the probability that a correct buffer fails any question at all.

    Example:
        >>> from per_tutorial.conformance import false_alarm_rate
        >>> false_alarm_rate() <= 1e-4
        True
    """
    return sum(question.false_alarm for question in QUESTIONS.values())
