"""What happens if something is wrong with what a buffer is given."""

import numpy as np

from per_tutorial.conformance.answers import Fault, Finding, fails, holds, question, reported
from per_tutorial.conformance.chance import FALSE_ALARM
from per_tutorial.conformance.exam import CAPACITY, Exam, described
from per_tutorial.conformance.questions.distribution import compare, mixed_error

SECTION = "not in the paper"


@question(
    "nan-errors",
    "Is a TD error that is NaN kept out of the priorities?",
    section=SECTION,
    effect="One NaN makes the total NaN: from then on every draw returns the same slot, in silence.",
    false_alarm=FALSE_ALARM,
)
def nan_errors(exam: Exam) -> Finding:
    return after_bad_errors(exam, np.nan)


@question(
    "infinite-errors",
    "And one that is infinite?",
    section=SECTION,
    effect="The total is infinite: one transition is replayed for ever, and weights are 0 or NaN.",
    false_alarm=FALSE_ALARM,
)
def infinite_errors(exam: Exam) -> Finding:
    return after_bad_errors(exam, np.inf)


@question(
    "empty",
    "Does an empty buffer refuse to be sampled?",
    section=SECTION,
    effect="The agent learns from transitions that never were.",
)
def empty(exam: Exam) -> Finding:
    trial = exam.trial(0, batch_size=1)
    try:
        trial.sample()
    except Fault as fault:
        return fails(f"from an empty buffer, {fault}")
    except Exception as error:
        return holds(f"{described(error)}")
    return fails("it returned a transition")


@question(
    "large-minibatch",
    "What if a minibatch is larger than what is stored?",
    section=SECTION,
    effect="None, as long as all that comes back was stored.",
)
def large_minibatch(exam: Exam) -> Finding:
    trial = exam.trial(5)
    try:
        trial.sample()
    except Fault:
        raise
    except Exception as error:
        return reported(f"it refuses: {described(error)}")
    return reported("it returns transitions several times")


def after_bad_errors(exam: Exam, bad: float) -> Finding:
    """Send one bad error along, and see what becomes of the draws."""
    trial = exam.trial(CAPACITY, exact=True).set_errors(mixed_error)
    drawn, serials, _ = trial.sample()
    errors = np.array([mixed_error(serial) for serial in serials.tolist()])
    errors[len(errors) // 2] = bad
    try:
        exam.adapter.update(trial.buffer, drawn.keys, errors)
    except Exception as error:
        finding = compare(trial, 20_000)  # what it refuses, it must not have begun to write
        said = f"it refuses, {described(error)}"
        if finding.verdict.name == "FAILS":
            return fails(f"{said}; but afterwards {finding.measured}")
        return holds(said)
    if exam.adapter.law == "uniform":
        trial.counts(200)
        return holds("it takes it, and draws go on as before")
    try:
        _, _, weights = trial.sample()
        if weights is not None and not np.isfinite(weights).all():
            return fails(
                f"it takes it, and then {(~np.isfinite(weights)).mean():.0%} of weights are NaN"
            )
        trial.set_errors(mixed_error)
        finding = compare(trial, 20_000)
    except Exception as error:
        return fails(f"it takes it, and then drawing fails: {described(error)}")
    if finding.verdict.name == "FAILS":
        return fails(f"it takes it, and never recovers: {finding.measured}")
    return reported("it takes it, and draws are right again once all errors were updated")
