"""Notebook 07, broken replay: an adapter and three patients, compared with what is healthy."""

import numpy as np

from per_tutorial.conformance import Adapter, Drawn, Settings, Transition
from per_tutorial.notebook.checking import EXERCISES, Exercise, Unsolved, Wrong, is_stub
from per_tutorial.notebook.exercises.plain_replay import PlainReplay

FIELDS = ["observations", "weights", "actions", "rewards", "next_observations", "terminated"]


class PlainAdapter(Adapter):
    epsilon = 1e-6

    def make(self, settings):
        return PlainReplay(settings.capacity, settings.alpha, settings.seed)

    def add(self, buffer, transition):
        buffer.push(*transition[:5])

    def sample(self, buffer, batch_size, beta):
        drawn = buffer.draw(batch_size, beta)
        fields = ("state", "weight", "number", "action", "reward", "next_state", "done")
        return Drawn(*(drawn[name] for name in fields))

    def update(self, buffer, keys, td_errors):
        buffer.learned(keys, td_errors)


def through(adapter):
    """What comes out of a buffer that is used through an adapter."""

    def used(capacity, alpha, seed, beta):
        user = adapter()
        buffer = user.make(Settings(capacity=capacity, alpha=alpha, seed=seed))
        if is_stub(buffer):
            raise Unsolved
        if not isinstance(buffer, PlainReplay):
            raise Wrong(f"`make` should return a `PlainReplay`, not a {type(buffer).__name__}.")
        for k in range(10):  # more than there are slots; every other one meets a time limit
            state, after = np.full(2, k, np.float32), np.full(2, k + 1, np.float32)
            user.add(buffer, Transition(state, k % 3, 0.5 * k, after, k % 4 == 0, k % 2 == 1))
        for _ in range(2):  # the weights differ from the second minibatch on
            drawn = user.sample(buffer, 4, beta)
            fields = [getattr(drawn, name, None) for name in FIELDS]
            if any(field is None for field in [*fields, getattr(drawn, "keys", None)]):
                raise Wrong(f"`sample` should return a `Drawn` with `keys`, {', '.join(FIELDS)}.")
            user.update(buffer, drawn.keys, np.array([0.5, -2.0, 0.1, -0.4]))
        settings = [buffer.capacity, buffer.alpha, buffer.epsilon, user.epsilon]
        return settings, *fields, buffer.leaves

    return used


def changed(**methods):
    """The right adapter, but for these methods and attributes."""
    return type("Changed", (PlainAdapter,), methods)


EXERCISES["07.1"] = Exercise(
    right=PlainAdapter, tried=through,
    parts=["[capacity, α, ε of the buffer, ε of the adapter]", *FIELDS, "p^α of each slot"],
    cases=[(4, 0.6, 0, 1.0), (6, 0.4, 3, 0.5)],
    hints=[
        (changed(add=lambda self, b, t: b.push(*t[:4], t.terminated or t.truncated)),
         "`done` means that nothing follows. After a time limit something would have."),
        (changed(sample=lambda self, b, n, beta: PlainAdapter.sample(self, b, n, 0.4)),
         "`beta` is not passed on to `draw`."),
        (changed(update=lambda self, b, keys, errors: b.learned(keys % b.capacity, errors)),
         "`keys` should be what `draw` calls `number`: once the ring wraps, it is not the slot."),
        (changed(epsilon=Adapter.epsilon), "`epsilon` should be what `PlainReplay` adds to |δ|."),
    ])  # fmt: skip


# The patients: their methods are called, and compared with those of the healthy buffer ------------


class BrokenReplay(PlainReplay):
    """The patients' methods as the cells of the exercises have them."""

    def priority(self, td_errors):
        return td_errors**2 + self.epsilon

    def newcomer(self):
        return self.epsilon

    def weights(self, P, beta):
        smallest = self.leaves.min() / self.leaves.sum()
        return (P / smallest) ** -beta / len(P)

    def probabilities(self):
        leaves = self.leaves[: len(self)].copy()
        leaves[-1] = 0.0
        return leaves / leaves.sum()

    def slots_of(self, numbers):
        return numbers % self.capacity


def first(patient):
    def used(largest, td_errors):
        buffer = patient(4)
        buffer.largest, buffer.added = largest, len(td_errors)
        results = buffer.priority(td_errors), buffer.newcomer()
        buffer.learned(np.arange(len(td_errors)), td_errors)  # stops if it can't be used there
        return results

    return used


def second(patient):
    def used(leaves, slots, beta):
        buffer = patient(len(leaves))
        buffer.leaves, buffer.added = leaves, np.count_nonzero(leaves)
        return buffer.weights(leaves[slots] / leaves.sum(), beta)

    return used


def third(patient):
    def used(leaves, added, numbers):
        buffer = patient(len(leaves))
        buffer.leaves, buffer.added = leaves.copy(), added
        results = buffer.probabilities(), buffer.slots_of(numbers)
        buffer.learned(numbers, np.ones(len(numbers)))  # stops if it can't be used there
        return results

    return used


def patient(**methods):
    """A healthy buffer, but for these methods."""
    return type("Patient", (PlainReplay,), methods)


PLACES = np.array([3.0, 0.5, 2.0, 1.0])

EXERCISES["07.2"] = Exercise(
    right=PlainReplay, tried=first, begins_as=BrokenReplay,
    parts=["the priorities", "the newcomer's priority"],
    cases=[(1.0, np.array([0.5, -2.0, 0.0])), (7.0, np.array([3.0, -0.1]))],
    hints=[
        (patient(newcomer=BrokenReplay.newcomer),
         "Newcomers still wait: they should get the largest priority so far."),
        (patient(priority=BrokenReplay.priority), "The priority is still a square."),
        (patient(priority=lambda self, d: d + self.epsilon),
         "The absolute value is missing: a bad surprise is a surprise, too."),
        (patient(priority=lambda self, d: (np.abs(d) + self.epsilon) ** self.alpha),
         "α is applied twice: `learned` raises the priority to α by itself."),
    ])  # fmt: skip

EXERCISES["07.3"] = Exercise(
    right=PlainReplay, tried=second, begins_as=BrokenReplay,
    cases=[(PLACES, np.array([0, 2]), 1.0), (PLACES, np.array([3, 0, 2]), 0.4),
           (PLACES * [1, 1, 1, 0], np.array([0, 2, 1]), 0.4), (PLACES, np.array([1, 2]), 0.0)],
    hints=[
        (patient(weights=lambda self, P, beta: (P / P.min()) ** -beta / len(P)),
         "The largest should be 1: divide by the largest, and by nothing else."),
        (patient(weights=lambda self, P, beta: (
            P * self.leaves.sum() / self.leaves[: len(self)].min()) ** -beta),
         "Divide by the largest weight of the minibatch, not of the whole buffer."),
        (patient(weights=lambda self, P, beta: (P / P.max()) ** beta),
         "The sign of β is wrong: what is drawn more often should weigh less."),
    ])  # fmt: skip

EXERCISES["07.4"] = Exercise(
    right=PlainReplay, tried=third, begins_as=BrokenReplay,
    parts=["the probabilities", "the slots"],
    cases=[(PLACES, 4, np.arange(4)), (PLACES, 6, np.arange(6)), (PLACES, 9, np.array([8, 4, 5])),
           (PLACES * [1, 0, 0, 0], 1, np.array([0]))],
    hints=[
        (patient(slots_of=BrokenReplay.slots_of),
         "A late priority still goes to the transition that replaced its own: return −1."),
        (patient(probabilities=BrokenReplay.probabilities), "The newest is still left out."),
        (patient(slots_of=lambda self, n: np.where(
            n > self.added - self.capacity, n % self.capacity, -1)),
         "Some that are still stored get −1. Which is the oldest one?"),
    ])  # fmt: skip
