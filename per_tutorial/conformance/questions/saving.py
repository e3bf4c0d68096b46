"""What a saved file keeps."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from per_tutorial.conformance.answers import Finding, NotOffered, fails, holds, question, reported
from per_tutorial.conformance.chance import FALSE_ALARM
from per_tutorial.conformance.context import CAPACITY, TestContext
from per_tutorial.conformance.harness import BufferHarness
from per_tutorial.conformance.questions.distribution import compare, mixed_error
from per_tutorial.conformance.questions.life_cycle import contents_fault
from per_tutorial.conformance.questions.new_transitions import judge_new, kinds_of_new

SECTION = "not in the paper"


@question(
    "saved-contents",
    "Does a loaded buffer hold the same transitions, and write on in the right place?",
    section=SECTION,
    effect="A resumed training starts over with what it knows, or overwrites its newest "
    "experience.",
    needs=("contents", "reach"),
)
def saved_contents(context: TestContext) -> Finding:
    context.offered("save", "load")
    harness = context.harness(CAPACITY + 21)
    with saved(harness) as path:
        load(harness, path)
        for added in (0, 5):  # `counts` raises a Fault unless the five replaced the oldest
            missing = harness.stored[harness.add(added).counts(2000) == 0]
            if len(missing):
                return fails(f"after loading, transition {missing[0]} never comes")
        try:
            found = contents_fault(harness, 20)
        except NotOffered:
            found = None
        return fails(f"after loading, {found}") if found else holds("64 of 64, and 5 added later")


@question(
    "saved-priorities",
    "Does it keep the priorities?",
    section=SECTION,
    effect="After resuming, replay is uniform until every transition was replayed again.",
    needs=("proportions-full", "sum-after-outliers", "weights-normalisation"),
    false_alarm=FALSE_ALARM,
)
def saved_priorities(context: TestContext) -> Finding:
    context.offered("save", "load")
    harness = context.harness(CAPACITY, exact=True).set_errors(mixed_error)
    with saved(harness) as path:
        load(harness, path)
        return compare(harness, 20_000)


@question(
    "saved-largest",
    "Does it keep the largest priority seen, for new transitions?",
    section="Algorithm 1, line 6",
    effect="After resuming, new experience is given 1 and waits behind all that was larger.",
    needs=("newcomers-largest", "saved-priorities"),
    false_alarm=FALSE_ALARM,
)
def saved_largest(context: TestContext) -> Finding:
    context.offered("save", "load")
    harness = context.harness(CAPACITY - 8, exact=True)
    harness.set_errors(lambda serial: 10.0 if serial % 2 else 3.0)
    with saved(harness) as path:
        load(harness, path)
        kinds, ratio = kinds_of_new(harness)
        return judge_new(
            kinds, f"one added after loading is {ratio:.2f} times as likely as the largest"
        )


@question(
    "saved-generator",
    "Does it keep the random generator?",
    section=SECTION,
    effect="A choice. If it does, a resumed training is the one that was never interrupted.",
    needs=("saved-priorities",),
)
def saved_generator(context: TestContext) -> Finding:
    context.offered("save", "load")
    harness = context.harness(CAPACITY).set_errors(mixed_error)
    with saved(harness) as path:
        original = harness.draw(300)
        load(harness, path)
        if np.array_equal(original, harness.draw(300)):
            return reported("yes: the loaded buffer draws what the first one drew")
        return reported("no: the loaded buffer draws something else")


@contextmanager
def saved(harness: BufferHarness) -> Iterator[str]:
    """Save the buffer to a temporary file; yields its path."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "buffer")
        harness.call("save", harness.buffer, path)
        yield path


def load(harness: BufferHarness, path: str) -> None:
    """Load a new buffer from a file into the harness; some libraries return it."""
    fresh = harness.call("make", harness.settings)
    returned = harness.call("load", fresh, path)
    harness.buffer = fresh if returned is None else returned
