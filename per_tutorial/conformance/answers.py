"""Questions and their possible answers."""

import enum
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple


class Verdict(enum.Enum):
    """The outcome of one question.

    Example:
        >>> from per_tutorial.conformance import Verdict
        >>> [verdict.value for verdict in Verdict]
        ['holds', 'fails', 'not judged', 'inconclusive', 'not offered', 'reported']
    """

    HOLDS = "holds"
    FAILS = "fails"
    NOT_JUDGED = "not judged"  # because a question that it depends on fails
    INCONCLUSIVE = "inconclusive"
    NOT_OFFERED = "not offered"
    REPORTED = "reported"  # correct implementations may differ


class Finding(NamedTuple):
    """The verdict on a question, and what was measured, as a sentence without a full stop."""

    verdict: Verdict
    measured: str

    @property
    def failed(self) -> bool:
        """Whether the verdict is "fails"."""
        return self.verdict is Verdict.FAILS


class Fault(Exception):
    """The buffer did something that no correct one does; the message says what.

    Example:
        >>> from per_tutorial.conformance import Fault
        >>> weight = -0.5
        >>> if weight < 0:
        ...     raise Fault(f"handed out the weight {weight}")
        Traceback (most recent call last):
        per_tutorial.conformance.answers.Fault: handed out the weight -0.5
    """


class BufferRaised(Exception):
    """The buffer or its adapter raised an exception, the `__cause__` of this one."""


class Inconclusive(Exception):
    """The question could not be answered; the message says why."""


class NotOffered(Exception):
    """The buffer or its adapter lacks what the question needs; the message says what."""


class ExaminationError(RuntimeError):
    """The examination itself failed. This says nothing about the buffer.

    Example:
        >>> from per_tutorial.conformance import ExaminationError
        >>> issubclass(ExaminationError, RuntimeError)
        True
    """


Kind = Literal["algorithm", "robustness"]

#: What each kind of question asks.
KINDS: dict[Kind, str] = {
    "algorithm": "does it do what prioritised replay should?",
    "robustness": "does it withstand late updates, NaN and modified arrays?",
}


class Question(NamedTuple):
    """One thing to ask of a buffer.

    Attributes:
        name: in kebab case; reports and tests refer to it.
        asks: the question in words.
        section: of the paper (Schaul et al. 2016), or another source.
        effect: on an agent, if the answer is no.
        kind: one of `KINDS`. A robustness fault shows only if a training does something unusual or
            wrong.
        needs: names of earlier questions. If one of them fails, this one can't be judged.
        false_alarm: an upper bound of the probability that a correct buffer fails; 0: negligible.
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
    """A question with its verdict and measurement.

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


BASIS = "handling"  # If this question fails, the buffer or its adapter doesn't work at all.

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
    """Register a function as one of the `QUESTIONS`. The arguments are those of `Question`."""

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
    """The first failed question that this one depends on, directly or not; None: none failed."""
    for need in QUESTIONS[name].needs:
        if verdicts.get(need) is Verdict.FAILS:
            return need
        cause = cause_of(need, verdicts)
        if cause is not None:
            return cause
    return None


def holds(measured: str) -> Finding:
    """The buffer does what the question asks for."""
    return Finding(Verdict.HOLDS, measured)


def fails(measured: str) -> Finding:
    """The buffer does not do what the question asks for."""
    return Finding(Verdict.FAILS, measured)


def reported(measured: str) -> Finding:
    """What was measured is a choice: correct buffers may differ."""
    return Finding(Verdict.REPORTED, measured)
