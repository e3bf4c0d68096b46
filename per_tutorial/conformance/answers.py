"""Questions, and what can come out of one."""

import enum
from collections.abc import Callable
from typing import Any, NamedTuple


class Verdict(enum.Enum):
    """What an examination says about one question.

    Example:
        >>> from per_tutorial.conformance import Verdict
        >>> [verdict.value for verdict in Verdict]
        ['holds', 'fails', "can't be told", 'not offered', 'reported']
    """

    HOLDS = "holds"
    FAILS = "fails"
    UNTOLD = "can't be told"
    NOT_OFFERED = "not offered"
    REPORTED = "reported"  # where implementations may honestly differ


class Finding(NamedTuple):
    """What a question found out: the verdict, and what was measured, as a sentence without a stop."""

    verdict: Verdict
    measured: str


class Fault(Exception):
    """The buffer did something that no correct one does; the text says what.

    Example:
        >>> from per_tutorial.conformance import Fault
        >>> weight = -0.5
        >>> if weight < 0:
        ...     raise Fault(f"handed out the weight {weight}")
        Traceback (most recent call last):
        per_tutorial.conformance.answers.Fault: handed out the weight -0.5
    """


class Untold(Exception):
    """The question could not be answered; the text says why."""


class NotOffered(Exception):
    """The buffer, or its adapter, doesn't offer what the question needs; the text says what."""


class Question(NamedTuple):
    """One thing to ask of a buffer.

    Attributes:
        name: in kebab case, by which reports and tests refer to it.
        asks: the question in words.
        section: of the paper (Schaul et al. 2016), or what else it comes from.
        effect: what it does to an agent if the answer is no.
        false_alarm: an upper bound of the probability that a correct buffer fails; 0: no chance in it.
        ask: the function that answers it.

    Example:
        >>> from per_tutorial.conformance import QUESTIONS
        >>> question = QUESTIONS["sign"]
        >>> question.asks, question.section
        ('Do −δ and +δ count the same?', '3.3, p = |δ| + ε')
    """

    name: str
    asks: str
    section: str
    effect: str
    false_alarm: float
    ask: Callable[[Any], Finding]


class Answer(NamedTuple):
    """A question and what came out.

    Example:
        >>> from per_tutorial.conformance import examine, find_adapter
        >>> report = examine(find_adapter("uniform"), questions=["handling"], isolate=False)
        >>> answer = report.answers[0]
        >>> answer.question.name, answer.verdict.value
        ('handling', 'holds')
    """

    question: Question
    verdict: Verdict
    measured: str


#: All questions: name → `Question`, in the order in which they are asked.
#:
#: >>> len(QUESTIONS) > 20
#: True
#: >>> QUESTIONS["sign"].false_alarm < 1e-4
#: True
QUESTIONS: dict[str, Question] = {}


def question(
    name: str, asks: str, *, section: str, effect: str, false_alarm: float = 0.0
) -> Callable[[Callable[[Any], Finding]], Callable[[Any], Finding]]:
    """Make a function one of the `QUESTIONS`. The arguments are those of `Question`."""

    def register(ask: Callable[[Any], Finding]) -> Callable[[Any], Finding]:
        if name in QUESTIONS:
            raise ValueError(f"name: there is a question {name!r} already")
        QUESTIONS[name] = Question(name, asks, section, effect, false_alarm, ask)
        return ask

    return register


def holds(measured: str) -> Finding:
    """All is as it should be."""
    return Finding(Verdict.HOLDS, measured)


def fails(measured: str) -> Finding:
    """It is not."""
    return Finding(Verdict.FAILS, measured)


def reported(measured: str) -> Finding:
    """It is one way or another, and both are right."""
    return Finding(Verdict.REPORTED, measured)
