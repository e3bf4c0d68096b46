"""Plain classes, as a stranger would write them: unusual and right, or with a mistake.

No class here is a subclass of the package's, and none is asked anything else than all questions.
"""

import numpy as np
import pytest
from sampling import one_for_each

from per_tutorial.conformance import Drawn, Verdict, examine
from per_tutorial.conformance.questions import numerics


class Memory:
    """A ring in arrays. Draws are searched in the cumulative sums of all priorities: no tree."""

    epsilon = 1e-3

    def __init__(self, capacity, alpha, seed):
        self.rows = [None] * capacity
        self.numbers = np.full(capacity, -1)
        self.priorities = np.zeros(capacity)
        self.alpha, self.rng = alpha, np.random.default_rng(seed)
        self.added, self.largest = 0, 1.0

    def push(self, row):
        slot = self.added % len(self.rows)
        priority = self.of_a_new_one()
        self.rows[slot], self.numbers[slot] = self.kept(row), self.added
        self.priorities[slot] = priority
        self.added += 1

    def kept(self, row):
        return [np.array(field) for field in row]

    def of_a_new_one(self):
        return self.largest

    def columns(self, rows):
        return [np.array(field) for field in zip(*rows, strict=True)]

    def draw(self, count, beta):
        size = min(self.added, len(self.rows))
        if size == 0:
            raise ValueError("nothing is stored")
        masses = self.priorities[:size] ** self.alpha
        sums = np.cumsum(masses)
        slots = np.searchsorted(sums, self.rng.random(count) * sums[-1], side="right")
        return slots, self.weights(masses / sums[-1], slots, beta)

    def weights(self, P, slots, beta):
        return (P[slots] / P[slots].min()) ** -beta

    def learn(self, slots, numbers, errors):
        if not np.isfinite(errors).all():
            raise ValueError("errors must be finite")
        for slot, number, error in zip(slots, numbers, errors, strict=True):
            if self.numbers[slot] == number:
                self.priorities[slot] = abs(error) + self.epsilon
                self.largest = max(self.largest, self.priorities[slot])


class CumulativeSums:
    """How to handle a `Memory`. It is no `Adapter`, only a class with the four methods."""

    memory, epsilon = Memory, Memory.epsilon

    def make(self, settings):
        return self.memory(settings.capacity, settings.alpha, settings.seed)

    def add(self, buffer, transition):
        buffer.push(transition)

    def sample(self, buffer, batch_size, beta):
        slots, weights = buffer.draw(batch_size, beta)
        fields = buffer.columns([buffer.rows[slot] for slot in slots])
        observations, actions, rewards, following, terminated, _ = fields
        keys = slots, buffer.numbers[slots]
        return Drawn(observations, weights, keys, actions, rewards, following, terminated)

    def update(self, buffer, keys, td_errors):
        buffer.learn(*keys, td_errors)


def handled(documented=(), **methods):
    """A `CumulativeSums` whose memory has other methods, some of them ``documented``."""
    attributes = {"memory": type("Changed", (Memory,), methods), **dict.fromkeys(documented, False)}
    return type("Handled", (CumulativeSums,), attributes)


def over_the_memory(self, P, slots, beta):
    return (P[slots] / P.min()) ** -beta


def undivided(self, P, slots, beta):
    return (len(P) * P[slots]) ** -beta


def at_the_mean(self):
    return self.priorities[: self.added].mean() if self.added else 1.0


def as_given(self, row):
    return row


def in_the_same_arrays(self, rows):
    columns = Memory.columns(self, rows)
    arrays = self.__dict__.setdefault("arrays", {}).setdefault(len(rows), columns)
    for array, column in zip(arrays, columns, strict=True):
        array[...] = column
    return arrays


def as_stored(self, rows):  # lists of the arrays that are stored
    return [list(field) for field in zip(*rows, strict=True)]


CORRECT = {
    "cumulative sums and a search": (CumulativeSums, set()),
    "weights over the memory, newcomers at the mean, arrays that are kept, as documented": (
        handled(["copies_added"], weights=over_the_memory, of_a_new_one=at_the_mean, kept=as_given),
        # the paper's newcomers are at the largest; the mean is a choice
        {"newcomers-largest", "newcomers-last-update", "arrays-added"},
    ),
    "weights divided by nothing, minibatches in the same arrays, as documented": (
        handled(["copies_drawn"], weights=undivided, columns=in_the_same_arrays),
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
    def learn(self, slots, numbers, errors):
        places = np.arange(len(slots))
        kept = places != (position if position >= 0 else len(slots) + position)
        Memory.learn(self, slots[kept], numbers[kept], errors[kept])

    return learn


def largest_decays(factor):
    def learn(self, slots, numbers, errors):
        self.largest *= factor
        Memory.learn(self, slots, numbers, errors)

    return learn


def largest_of_the_last(self, slots, numbers, errors):
    Memory.learn(self, slots, numbers, errors)
    self.largest = np.abs(errors).max() + self.epsilon


def over_the_sum(self, P, slots, beta):
    weights = Memory.weights(self, P, slots, beta)
    return weights / weights.sum()


def over_the_batch_size(self, P, slots, beta):
    return Memory.weights(self, P, slots, beta) / len(slots)


def of_all_slots(self, P, slots, beta):  # N counts empty slots, too
    return (len(self.rows) * P[slots]) ** -beta


MISTAKES = {
    "the first of an update is lost": ({"learn": without_position(0)}, "update-positions"),
    "one in the middle is lost": ({"learn": without_position(3)}, "update-positions"),
    "the last is lost": ({"learn": without_position(-1)}, "update-positions"),
    "the largest priority decays": ({"learn": largest_decays(0.999)}, "newcomers-memory"),
    "it decays slowly": ({"learn": largest_decays(0.9998)}, "newcomers-memory"),
    "the largest is the last minibatch's": (
        {"learn": largest_of_the_last},
        "newcomers-last-update",
    ),
    "arrays are kept without a copy": ({"kept": as_given}, "arrays-added"),
    "minibatches share their arrays": ({"columns": in_the_same_arrays}, "arrays-drawn"),
    "minibatches hold the arrays that are stored": ({"columns": as_stored}, "arrays-drawn"),
    "weights divided by their sum": ({"weights": over_the_sum}, "weights-scale"),
    "weights divided by the batch size": ({"weights": over_the_batch_size}, "weights-scale"),
    "N counts empty slots": ({"weights": of_all_slots}, "weights-scale"),
    "new transitions at one": ({"of_a_new_one": lambda self: 1.0}, "newcomers-largest"),
    "new transitions at half of the largest": (
        {"of_a_new_one": lambda self: self.largest / 2},
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
