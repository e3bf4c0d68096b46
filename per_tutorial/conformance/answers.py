"""Questions, and what can come out of one."""

import enum
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple


class Verdict(enum.Enum):
    """What an examination says about one question.

    Example:
        >>> from per_tutorial.conformance import Verdict
        >>> [verdict.value for verdict in Verdict]
        ['holds', 'fails', 'not judged', 'inconclusive', 'not offered', 'reported']
    """

    HOLDS = "holds"
    FAILS = "fails"
    NOT_JUDGED = "not judged"  # it did not hold, and neither did a question that it depends on
    INCONCLUSIVE = "inconclusive"
    NOT_OFFERED = "not offered"
    REPORTED = "reported"  # where implementations may honestly differ


class Finding(NamedTuple):
    """What a question found: the verdict, and what was measured, a sentence without a stop."""

    verdict: Verdict
    measured: str

    @property
    def failed(self) -> bool:
        """Whether the verdict is "fails"."""
        return self.verdict is Verdict.FAILS


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


class BufferRaised(Exception):
    """The buffer, or its adapter, raised the exception that is the cause of this one."""


class Inconclusive(Exception):
    """The question could not be answered; the text says why."""


class NotOffered(Exception):
    """The buffer, or its adapter, doesn't offer what the question needs; the text says what."""


class ExaminationError(RuntimeError):
    """The examination itself failed. This says nothing about the buffer.

    Example:
        >>> from per_tutorial.conformance import ExaminationError
        >>> issubclass(ExaminationError, RuntimeError)
        True
    """


Kind = Literal["algorithm", "robustness"]

#: What each kind of question asks, in words.
KINDS: dict[Kind, str] = {
    "algorithm": "does it do what prioritised replay should?",
    "robustness": "does it bear late updates, NaN, arrays that are written over?",
}


class Question(NamedTuple):
    """One thing to ask of a buffer.

    Attributes:
        name: in kebab case, by which reports and tests refer to it.
        asks: the question in words.
        section: of the paper (Schaul et al. 2016), or what else it comes from.
        effect: what it does to an agent if the answer is no.
        kind: one of `KINDS`. A fault in robustness shows only in a training that does something
            unusual or wrong.
        needs: names of earlier questions. Where one of them fails, this one can't be judged.
        false_alarm: an upper bound of the probability that a correct buffer fails; 0: no chance in
            it.
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
    kind: Kind
    needs: tuple[str, ...]
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


BASIS = "handling"  # Where this question fails, the buffer or its adapter doesn't work at all.

#: All questions: name → `Question`, in the order in which they are asked.
#:
#: >>> len(QUESTIONS) > 20
#: True
#: >>> QUESTIONS["sign"].false_alarm < 1e-4
#: True
QUESTIONS: dict[str, Question] = {}


def question(
    name: str,
    asks: str,
    *,
    section: str,
    effect: str,
    kind: Kind = "algorithm",
    needs: tuple[str, ...] = (),
    false_alarm: float = 0.0,
) -> Callable[[Callable[[Any], Finding]], Callable[[Any], Finding]]:
    """Make a function one of the `QUESTIONS`. The arguments are those of `Question`."""

    def register(ask: Callable[[Any], Finding]) -> Callable[[Any], Finding]:
        if name in QUESTIONS:
            raise ValueError(f"name: there is a question {name!r} already")
        later = set(needs) - set(QUESTIONS)
        if later:
            raise ValueError(f"needs: {name!r} must come after {', '.join(sorted(later))}")
        QUESTIONS[name] = Question(name, asks, section, effect, kind, needs, false_alarm, ask)
        return ask

    return register


def cause_of(name: str, verdicts: Mapping[str, Verdict]) -> str | None:
    """The first question that failed of those that this one depends on, directly or not."""
    for need in QUESTIONS[name].needs:
        if verdicts.get(need) is Verdict.FAILS:
            return need
        cause = cause_of(need, verdicts)
        if cause is not None:
            return cause
    return None


def holds(measured: str) -> Finding:
    """All is as it should be."""
    return Finding(Verdict.HOLDS, measured)


def fails(measured: str) -> Finding:
    """It is not."""
    return Finding(Verdict.FAILS, measured)


def reported(measured: str) -> Finding:
    """It is one way or another, and both are right."""
    return Finding(Verdict.REPORTED, measured)
