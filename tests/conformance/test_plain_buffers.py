"""Plain classes, as a stranger would write them: unusual and right, or with a mistake.

No class here is a subclass of the package's, and none is asked anything else than all questions.
"""

import numpy as np
import pytest
from sampling import one_for_each
from unusual_buffers import (
    EPSILON,
    CumulativeSums,
    KeepsReferences,
    MaximumOfLastBatch,
    NewAtTheMean,
    OneArrayForAll,
    WeightsOfTheMemory,
)

from per_tutorial.conformance import Verdict, examine
from per_tutorial.conformance.questions import numerics


class Memory(CumulativeSums):
    """`CumulativeSums`, but it skips stale updates and refuses errors that are not finite."""

    def __init__(self, capacity, alpha, seed):
        super().__init__(capacity, alpha, seed)
        self.numbers, self.added = np.full(capacity, -1), 0

    def store(self, i, transition):
        super().store(i, transition)
        self.numbers[i] = self.added
        self.added += 1

    def gather(self, column, indices):  # faster than the tool's, which always stacks row by row
        return super().gather(column, indices) if column.dtype == object else column[indices]

    def hand_out(self, indices, weights):
        return super().hand_out(indices, weights)._replace(keys=(indices, self.numbers[indices]))

    def update(self, keys, td_errors):
        if not np.isfinite(td_errors).all():
            raise ValueError("errors must be finite")
        slots, numbers = keys
        stored = self.numbers[slots] == numbers
        if stored.any():
            super().update(slots[stored], td_errors[stored])

    def probabilities(self, indices):
        return self.tree[self.leaves + indices] / self.tree[1]


class Handling:
    """How to handle a `Memory`. It is no `Adapter`, only a class with the four methods."""

    memory, epsilon = Memory, EPSILON

    def make(self, settings):
        return self.memory(settings.capacity, settings.alpha, settings.seed)

    def add(self, buffer, transition):
        buffer.add(transition)

    def sample(self, buffer, batch_size, beta):
        return buffer.sample(batch_size, beta)

    def update(self, buffer, keys, td_errors):
        buffer.update(keys, td_errors)


def handled(documented=(), **methods):
    """A `Handling` whose memory has other methods, some of them ``documented``."""
    attributes = {"memory": type("Changed", (Memory,), methods), **dict.fromkeys(documented, False)}
    return type("Handled", (Handling,), attributes)


def undivided(self, indices, beta):
    return (self.size * self.probabilities(indices)) ** -beta


CORRECT = {
    "cumulative sums and a search": (Handling, set()),
    "weights over the memory, newcomers at the mean, arrays that are kept, as documented": (
        handled(
            ["copies_added"],
            weights=WeightsOfTheMemory.weights,
            new_leaf=NewAtTheMean.new_leaf,
            column=KeepsReferences.column,
        ),
        # the paper's newcomers are at the largest; the mean is a choice
        {"newcomers-largest", "newcomers-last-update", "arrays-added"},
    ),
    "weights divided by nothing, minibatches in the same arrays, as documented": (
        handled(["copies_drawn"], weights=undivided, gather=OneArrayForAll.gather),
        {"arrays-drawn"},
    ),
}
CHOICES = {"newcomers-largest", "newcomers-last-update", "arrays-added", "arrays-drawn"}


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_buffer_gets_no_failure_however_it_is_written(name, monkeypatch):
    monkeypatch.setattr(numerics, "UPDATES", 20_000)
    adapter, choices = CORRECT[name]
    report = examine(adapter)
    assert report.passed, str(report)
    assert not any(answer.verdict is Verdict.NOT_JUDGED for answer in report.answers)
    reported = {a.question.name for a in report.answers if a.verdict is Verdict.REPORTED}
    assert reported & CHOICES == choices


# Mistakes that the questions ask for directly ----------------------------------------------------


def without_position(position):
    def update(self, keys, td_errors):
        places = np.arange(len(td_errors))
        kept = places != (position if position >= 0 else len(td_errors) + position)
        Memory.update(self, [each[kept] for each in keys], td_errors[kept])

    return update


def largest_decays(factor):
    def remember(self, priorities):
        self.max_priority = max(self.max_priority * factor, priorities.max())

    return remember


def over_the_sum(self, indices, beta):
    weights = Memory.weights(self, indices, beta)
    return weights / weights.sum()


def over_the_batch_size(self, indices, beta):
    return Memory.weights(self, indices, beta) / len(indices)


def of_all_slots(self, indices, beta):  # N counts empty slots, too
    return (self.capacity * self.probabilities(indices)) ** -beta


def as_stored(self, column, indices):  # lists of the arrays that are stored
    return [column[i] for i in indices]


MISTAKES = {
    "the first of an update is lost": ({"update": without_position(0)}, "update-positions"),
    "one in the middle is lost": ({"update": without_position(3)}, "update-positions"),
    "the last is lost": ({"update": without_position(-1)}, "update-positions"),
    "the largest priority decays": ({"remember": largest_decays(0.999)}, "newcomers-memory"),
    "it decays slowly": ({"remember": largest_decays(0.9998)}, "newcomers-memory"),
    "the largest is the last minibatch's": (
        {"remember": MaximumOfLastBatch.remember},
        "newcomers-last-update",
    ),
    "arrays are kept without a copy": ({"column": KeepsReferences.column}, "arrays-added"),
    "minibatches share their arrays": ({"gather": OneArrayForAll.gather}, "arrays-drawn"),
    "minibatches hold the arrays that are stored": ({"gather": as_stored}, "arrays-drawn"),
    "weights divided by their sum": ({"weights": over_the_sum}, "weights-scale"),
    "weights divided by the batch size": ({"weights": over_the_batch_size}, "weights-scale"),
    "N counts empty slots": ({"weights": of_all_slots}, "weights-scale"),
    "new transitions at one": ({"new_leaf": lambda self: 1.0}, "newcomers-largest"),
    "new transitions at half of the largest": (
        {"new_leaf": lambda self: (self.max_priority / 2) ** self.alpha},
        "newcomers-largest",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", one_for_each(lambda name: MISTAKES[name][1], MISTAKES))
def test_a_mistake_is_named_by_one_failure(name, monkeypatch):
    monkeypatch.setattr(numerics, "UPDATES", 20_000)
    methods, question = MISTAKES[name]
    report = examine(handled(**methods))
    assert [answer.question.name for answer in report.failures] == [question], str(report)
    for answer in report.answers:
        if answer.verdict is Verdict.NOT_JUDGED:
            assert answer.measured.startswith(f"because {question} fails (")
