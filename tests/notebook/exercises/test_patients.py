"""The exercises of notebook 07: right answers of any form pass, wrong ones hear their mistake."""

import numpy as np
import pytest
from sampling import one_for_each, one_in

from per_tutorial.conformance import Adapter, Drawn
from per_tutorial.notebook.exercises.plain_replay import PlainReplay

# 07.1 ---------------------------------------------------------------------------------------------


def drawn_of(batch, **changes):
    fields = {
        "observations": batch["state"],
        "weights": batch["weight"],
        "keys": batch["number"],
        "actions": batch["action"],
        "rewards": batch["reward"],
        "next_observations": batch["next_state"],
        "terminated": batch["done"],
    }
    return Drawn(**(fields | changes))


def make(self, settings):
    return PlainReplay(settings.capacity, settings.alpha, settings.seed)


def adapter(**methods):
    """A right adapter, but for these methods and attributes."""
    right = {
        "make": make,
        "add": lambda self, buffer, transition: buffer.push(*transition[:5]),
        "sample": lambda self, buffer, n, beta: drawn_of(buffer.draw(n, beta)),
        "update": lambda self, buffer, keys, td_errors: buffer.learned(keys, td_errors),
        "epsilon": 1e-6,
    }
    return type("PlainAdapter", (Adapter,), right | methods)


def with_sample(**changes):
    """An adapter whose `sample` fills some fields wrongly, each given the batch of `draw`."""

    def sample(self, buffer, batch_size, beta):
        batch = buffer.draw(batch_size, beta)
        return drawn_of(batch, **{name: change(batch) for name, change in changes.items()})

    return adapter(sample=sample)


def slots_for_keys(self, buffer, batch_size, beta):
    batch = buffer.draw(batch_size, beta)
    return drawn_of(batch, keys=batch["number"] % buffer.capacity)


def nothing(batch):
    return None


def over(self, buffer, t):
    buffer.push(*t[:4], t.terminated or t.truncated)


def told(change):
    """An adapter that tells something else than the TD errors."""
    return adapter(update=lambda self, buffer, keys, errors: buffer.learned(keys, change(errors)))


class Unrelated:
    """No subclass of `Adapter`, with all that one needs."""

    name, distribution, epsilon, replacement, seeded = "mine", "proportional", 1e-6, True, True
    n_step, time_limit, packages = False, 5.0, ()
    copies_added = copies_drawn = True
    add, sample, update = (adapter().__dict__[name] for name in ("add", "sample", "update"))
    make = make

    def priorities(self, td_errors):
        return np.abs(td_errors) + self.epsilon


class Bare:
    """No subclass of `Adapter`, and no more than its four methods."""

    add, sample, update = (adapter().__dict__[name] for name in ("add", "sample", "update"))
    make = make


def without_epsilon(self, settings):
    buffer = make(self, settings)
    buffer.epsilon = 0.0
    return buffer


# 07.2 to 07.4 -------------------------------------------------------------------------------------


def patient(**methods):
    return type("Patient", (PlainReplay,), methods)


def size(self, td_errors):
    return np.abs(td_errors) + self.epsilon


def largest(self):
    return self.largest


def largest_now(self):
    return self.leaves.max() ** (1 / self.alpha) or 1.0


def share(self):
    leaves = self.leaves[: len(self)]
    return leaves / leaves.sum()


def slots(self, numbers):
    return np.where(numbers >= self.added - self.capacity, numbers % self.capacity, -1)


def first(priority=size, newcomer=largest):
    return patient(priority=priority, newcomer=newcomer)


def second(weights):
    return patient(weights=weights)


def third(probabilities=share, slots_of=slots):
    return patient(probabilities=probabilities, slots_of=slots_of)


def without_newest(self):
    leaves = self.leaves[: len(self)].copy()
    leaves[-1] = 0.0
    return leaves / leaves.sum()


def where_stored(slot, gone=-1, younger=0):
    """`slots_of` with another slot, another sign for what is gone, or another age."""
    return lambda self, numbers: np.where(
        numbers >= self.added - self.capacity + younger, slot(self, numbers), gone
    )


def modulo(self, numbers):
    return numbers % self.capacity


def huber(self, d):
    return np.where(np.abs(d) < 1, d**2 / 2, np.abs(d) - 0.5) + self.epsilon


RIGHT = [
    ("07.1", adapter()),
    ("07.1", adapter()()),
    ("07.1", told(np.abs)),
    ("07.1", Unrelated),
    ("07.2", first()),
    ("07.2", first(lambda self, d: np.sqrt(d**2) + self.epsilon)),
    ("07.2", first(lambda self, d: np.array([abs(one) + 1e-6 for one in d]))),
    ("07.3", second(lambda self, P, beta: (P / P.min()) ** -beta)),
    ("07.3", second(lambda self, P, beta: np.exp(-beta * (np.log(P) - np.log(P.min()))))),
    ("07.3", second(lambda self, P, beta: [(p / min(P)) ** -beta for p in P])),
    ("07.4", third()),
    ("07.4", third(slots_of=where_stored(modulo))),
    ("07.4", third(lambda self: (self.leaves / self.leaves.sum())[: len(self)])),
]

# Refused at once.
REFUSED = [
    ("07.1", adapter(make=lambda self, settings: PlainReplay), "returns the class"),
    ("07.1", adapter(make=lambda self, s: PlainReplay(64, s.alpha, s.seed)), "has 64 slots"),
    ("07.1", adapter(make=lambda self, s: None), "should return a `PlainReplay`"),
    ("07.1", adapter(add=lambda self, buffer, t: None), "nothing is stored"),
    ("07.1", 3, "no method `make`"),
    ("07.1", adapter(epsilon=0.0), "the ε that `PlainReplay` adds"),
    ("07.1", adapter(epsilon=...), "the ε that `PlainReplay` adds"),
    ("07.1", adapter(epsilon="1e-6"), "the ε that `PlainReplay` adds"),
    ("07.1", adapter(make=without_epsilon), "`make` changes ε"),
    ("07.1", adapter(make=lambda self, s: PlainReplay(s.capacity, s.seed, s.alpha)),
     "in the order"),
    ("07.1", adapter(make=lambda self, s: (make(self, s), {})), "yours returns a tuple"),
    ("07.1", Bare, "`class PlainAdapter(Adapter)`"),
    ("07.2", PlainReplay, "that is the healthy buffer"),
    ("07.2", patient(), "`priority` is borrowed"),
    ("07.2", patient(priority=size), "`newcomer` is borrowed"),
    ("07.2", first(lambda self, d: PlainReplay.priority(self, d)), "`priority` is borrowed"),
    ("07.3", second(PlainReplay.weights), "`weights` is borrowed"),
    ("07.4", third(lambda self: super(type(self), self).probabilities()), "is borrowed"),
    ("07.2", size, "the class is asked for"),
    ("07.2", patient(draw=lambda self, n, beta: {}), "`draw` is healthy"),
]  # fmt: skip

# Examined.
WRONG = [
    ("07.1", adapter(make=lambda self, s: PlainReplay(s.capacity, s.alpha)), "`settings.seed`"),
    ("07.1", adapter(make=lambda self, s: PlainReplay(s.capacity, seed=s.seed)), "settings.alpha"),
    ("07.1", adapter(add=over), "pass `terminated` alone"),
    ("07.1", adapter(add=lambda self, buffer, t: buffer.push(*t)), "takes five things"),
    (
        "07.1",
        adapter(add=lambda self, b, t: b.push(t[0], t[1], t[2], t[0], t[4])),
        "the order of `push`",
    ),
    ("07.1", adapter(sample=lambda self, buffer, n, beta: buffer.draw(n, beta)), "a `Drawn`"),
    ("07.1", adapter(sample=lambda self, b, n, beta: drawn_of(b.draw(n, 0.4))), "`beta` is not"),
    ("07.1", adapter(sample=slots_for_keys), "no longer the slot"),
    ("07.1", with_sample(weights=nothing), "calls them `weight`"),
    ("07.1", with_sample(keys=nothing), "`keys` as well"),
    ("07.1", with_sample(actions=nothing, rewards=nothing, next_observations=nothing,
                         terminated=nothing), "should hold `actions`"),
    ("07.1", with_sample(observations=lambda batch: batch["next_state"]), "calls `state`"),
    ("07.1", told(lambda errors: np.maximum(errors, 0.0)), "negative TD errors get lost"),
    ("07.1", told(np.square), "not their squares"),
    ("07.1", told(lambda errors: np.abs(errors) ** 0.6), "applies α by itself"),
    ("07.1", adapter(update=lambda self, buffer, keys, errors: None), "does `update` reach"),
    ("07.1", adapter(update=lambda self, b, keys, e: b.update(keys, e)), "a call does not fit"),
    ("07.1", adapter(sample=lambda self, b, n, beta: drawn_of(b.draw(n, 0.0))), "`beta` is not"),
    ("07.1", adapter(sample=lambda self, b, n, beta: drawn_of(b.draw(n, 1.0))), "`beta` is not"),
    ("07.2", first(lambda self, d: d**2 + self.epsilon, lambda self: self.epsilon), "still wait"),
    ("07.2", first(newcomer=lambda self: self.epsilon), "newcomers still wait"),
    ("07.2", first(newcomer=lambda self: 1.0), "are drawn less often"),
    ("07.2", first(newcomer=lambda self: self.largest**self.alpha), "are drawn less often"),
    ("07.2", first(newcomer=lambda self: 2 * self.largest), "are drawn more often"),
    ("07.2", first(newcomer=lambda self: self.leaves.max()), "the very first newcomer"),
    ("07.2", first(lambda self, d: d**2 + self.epsilon), "still a square"),
    ("07.2", first(huber), "that is the Huber loss"),
    ("07.2", first(lambda self, d: d + self.epsilon), "the absolute value is missing"),
    ("07.2", first(lambda self, d: np.maximum(d, self.epsilon)), "the absolute value is missing"),
    ("07.2", first(lambda self, d: size(self, d) ** self.alpha), "α is applied twice"),
    ("07.2", first(lambda self, d: np.abs(d)), "ε is missing"),
    ("07.2", first(lambda self, d: np.ones(len(d))), "should grow with |δ|"),
    ("07.2", first(lambda self, d: np.abs(d).max()), "it stops with an error"),
    ("07.2", first(lambda self, d: [abs(one) + 1e-6 for one in d]), "should return an array"),
    ("07.2", first(lambda self, d: None), "should return an array"),
    ("07.2", first(newcomer=largest_now), "the leaves only know"),
    ("07.3", second(lambda self, P, beta: (P * self.leaves.sum() / self.leaves.min()) ** -beta
                    / len(P)), "empty slots have no smallest"),
    ("07.3", second(lambda self, P, beta: (P / P.min()) ** -beta / len(P)), "by nothing else"),
    ("07.3", second(lambda self, P, beta: (P * self.leaves.sum()
                    / self.leaves[: len(self)].min()) ** -beta), "not of the whole buffer"),
    ("07.3", second(lambda self, P, beta: (len(self) * P) ** -beta), "divide by the largest"),
    ("07.3", second(lambda self, P, beta: (P / P.max()) ** beta), "the sign of β"),
    ("07.3", second(lambda self, P, beta: np.ones(len(P))), "all the same"),
    ("07.3", second(lambda self, P, beta: P.min() / P), "Is β the exponent"),
    ("07.3", second(lambda self, P, beta: (P / P.min()) ** -0.4), "β is always the same"),
    ("07.3", second(lambda self, P, beta: P**-beta / np.sum(P**-beta)), "by nothing else"),
    ("07.3", second(lambda self, P, beta: None), "`weights` returns nothing"),
    ("07.3", second(lambda self, P, beta: ((P / P.min()) ** -beta)[:, None]),
     "for each transition"),
    ("07.4", third(without_newest), "the newest is still left out"),
    ("07.4", third(slots_of=modulo), "that replaced its own"),
    ("07.4", third(slots_of=where_stored(modulo, gone=0)), "that replaced its own"),
    ("07.4", third(slots_of=where_stored(modulo, younger=1)), "Which is the oldest one"),
    ("07.4", third(slots_of=where_stored(modulo, younger=-1)), "numbers 0 and 1 are gone"),
    ("07.4", third(slots_of=where_stored(lambda self, numbers: numbers)), "it stops with an error"),
    ("07.4", third(slots_of=lambda self, numbers: slots(self, numbers).tolist()),
     "should return an array"),
    ("07.4", third(slots_of=lambda self, numbers: None), "should return an array"),
    ("07.4", third(slots_of=lambda self, numbers: np.full(len(numbers), -1)),
     "no priority arrives"),
    ("07.4", third(slots_of=lambda self, n: modulo(self, n)[n >= self.added - self.capacity]),
     "a slot for each number"),
    ("07.4", third(lambda self: self.leaves / self.leaves.sum()), "`len(self)` numbers"),
    ("07.4", third(lambda self: self.leaves[: len(self)]), "whose sum is 1"),
    ("07.4", third(lambda self: share(self) ** 0.6 / np.sum(share(self) ** 0.6)),
     "α is applied twice"),
    ("07.4", third(lambda self: np.full(len(self), 1 / len(self))), "all are equally likely"),
]  # fmt: skip


# Each of the following is a whole examination.


@pytest.mark.slow
@pytest.mark.parametrize(("name", "answer"), one_for_each(lambda row: row[0], RIGHT))
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "answer", "mistake"), one_in(3, WRONG))
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words


@pytest.mark.parametrize(("name", "answer", "mistake"), REFUSED)
def test_what_cannot_be_examined_hears_why(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words


def test_an_adapter_of_dots_is_not_solved(said):
    right, words = said("07.1", adapter(make=lambda self, settings: ...))
    assert not right
    assert "not solved yet" in words


def test_an_untouched_patient_is_not_solved_and_hears_no_diagnosis(said):
    def square(self, td_errors):
        return td_errors**2 + self.epsilon

    def smallest(self):
        return self.epsilon

    def by_the_minimum(self, P, beta):
        smallest = self.leaves.min() / self.leaves.sum()  # a comment changes nothing
        return (P / smallest) ** -beta / len(P)

    untouched = [
        ("07.2", first(square, smallest)),
        ("07.3", second(by_the_minimum)),
        ("07.4", third(without_newest, modulo)),
    ]
    for name, patient in untouched:
        asked = "not solved yet. Repair the class and run the cell again.\n"
        assert said(name, patient) == (False, f"✗ {name}: {asked}")
