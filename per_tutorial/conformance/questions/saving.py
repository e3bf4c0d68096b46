"""What a saved file keeps."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from per_tutorial.conformance.answers import (
    Fault,
    Finding,
    NotOffered,
    fails,
    holds,
    question,
    reported,
)
from per_tutorial.conformance.chance import FALSE_ALARM, share_misfits
from per_tutorial.conformance.exam import CAPACITY, Exam
from per_tutorial.conformance.questions.distribution import compare, mixed_error
from per_tutorial.conformance.questions.life_cycle import contents_fault
from per_tutorial.conformance.questions.newcomers import newcomers_share, relative
from per_tutorial.conformance.trial import Trial

SECTION = "not in the paper"


@question(
    "saved-contents",
    "Does a loaded buffer hold the same transitions, and write on in the right place?",
    section=SECTION,
    effect="A resumed training starts over with what it knows, or overwrites its newest experience.",
)
def saved_contents(exam: Exam) -> Finding:
    with loaded(exam, exam.trial(CAPACITY + 21)) as trial:
        before = trial.counts(2000)
        if (before == 0).any():
            raise_missing(trial, before)
        trial.add(5)
        after = trial.counts(
            2000
        )  # raises a Fault if one is drawn that the five must have replaced
        if (after == 0).any():
            raise_missing(trial, after)
        found = None
        try:
            found = contents_fault(trial, 20)
        except NotOffered:
            pass
        return (
            fails(f"after loading, {found}") if found else holds("64 of 64, and five added later")
        )


@question(
    "saved-priorities",
    "Does it keep the priorities?",
    section=SECTION,
    effect="After resuming, replay is uniform until every transition was replayed again.",
    false_alarm=FALSE_ALARM,
)
def saved_priorities(exam: Exam) -> Finding:
    with loaded(exam, exam.trial(CAPACITY, exact=True).set_errors(mixed_error)) as trial:
        return compare(trial, 20_000)


@question(
    "saved-largest",
    "Does it keep the largest priority seen, for newcomers?",
    section="Algorithm 1, line 6",
    effect="After resuming, new experience is given 1 and waits behind all that was larger.",
    false_alarm=FALSE_ALARM,
)
def saved_largest(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY - 8, exact=True)
    trial.set_errors(lambda serial: 10.0 if serial % 2 else 3.0)
    with loaded(exam, trial):
        known = trial.priorities()
        counts = trial.add(8).counts(20_000)
        low, high = newcomers_share(trial, known, known.max())
        new = int(counts[-8:].sum())
        ratio = relative(new / counts.sum(), (low + high) / 2)
        sentence = f"a newcomer after loading is {ratio:.2f} times as likely as the largest"
        return (
            fails(sentence) if share_misfits(new, int(counts.sum()), low, high) else holds(sentence)
        )


@question(
    "saved-generator",
    "Does it keep the random generator?",
    section=SECTION,
    effect="A choice. If it does, a resumed training is the one that was never interrupted.",
)
def saved_generator(exam: Exam) -> Finding:
    trial = exam.trial(CAPACITY).set_errors(mixed_error)
    with saved(exam, trial) as path:
        original = trial.draw(300).serials
        load(exam, trial, path)
        if np.array_equal(original, trial.draw(300).serials):
            return reported("yes: the loaded buffer draws what the first one drew")
        return reported("no: the loaded buffer draws something else")


@contextmanager
def saved(exam: Exam, trial: Trial) -> Iterator[str]:
    """The path that a trial's buffer was saved to."""
    exam.require("save", "load")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "buffer")
        exam.adapter.save(trial.buffer, path)  # type: ignore[attr-defined]
        yield path


@contextmanager
def loaded(exam: Exam, trial: Trial) -> Iterator[Trial]:
    """The same trial, its buffer saved and loaded into a new one."""
    with saved(exam, trial) as path:
        load(exam, trial, path)
        yield trial


def load(exam: Exam, trial: Trial, path: str) -> None:
    """Give a trial a new buffer, loaded from a file. Some libraries return it, others fill it."""
    fresh = exam.adapter.make(trial.settings)
    returned = exam.adapter.load(fresh, path)  # type: ignore[attr-defined]
    trial.buffer = fresh if returned is None else returned


def raise_missing(trial: Trial, counts: np.ndarray) -> None:
    """A Fault that names a stored transition which was not drawn."""
    raise Fault(f"after loading, transition {trial.stored[counts == 0][0]} never comes")
