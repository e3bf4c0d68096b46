"""Notebook 07, broken replay: three patients, compared with the plain buffer."""

import numpy as np

from per_tutorial.conformance.plain import Plain
from per_tutorial.notebook.checking import EXERCISES, Exercise


def changed(**methods):
    """The plain buffer with these methods in place of its own."""
    return type("Changed", (Plain,), methods)


def square(self, td_errors):
    return td_errors**2 + self.epsilon


def smallest(self):
    return self.epsilon


def too_small(self, probabilities, beta):
    return (probabilities / self.probabilities.min()) ** -beta / len(probabilities)


def without_the_newest(self):
    masses = self.priorities[: len(self)] ** self.alpha
    masses[-1] = 0.0
    return masses


def of_anyone(self, ids):
    return ids % self.capacity


def holding(patient, priorities, added):
    """A patient with these priorities in its slots."""
    buffer = patient(len(priorities), (1,), alpha=1.0)
    buffer.priorities, buffer.added = priorities.copy(), added
    return buffer


def first(patient):
    def used(largest, td_errors):
        buffer = holding(patient, np.ones(4), len(td_errors))
        buffer.largest = largest
        results = buffer.priority(td_errors), buffer.newcomer()
        buffer.update_priorities(np.arange(len(td_errors)), td_errors)  # stops if it can't be used
        return results

    return used


def second(patient):
    def used(priorities, slots, beta):
        buffer = holding(patient, priorities, np.count_nonzero(priorities))
        return buffer.weights(priorities[slots] / priorities.sum(), beta)

    return used


def third(patient):
    def used(priorities, added, ids):
        buffer = holding(patient, priorities, added)
        buffer.alpha = 0.6
        results = buffer.masses(), buffer.slots_of(ids)
        buffer.update_priorities(ids, np.ones(len(ids)))  # stops if it can't be used
        return results

    return used


PRIORITIES = np.array([3.0, 0.5, 2.0, 1.0])

EXERCISES["07.1"] = Exercise(
    right=Plain, tried=first, begins_as=changed(priority=square, newcomer=smallest),
    parts=["the priorities", "the newcomer's priority"],
    cases=[(1.0, np.array([0.5, -2.0, 0.0])), (7.0, np.array([3.0, -0.1]))],
    hints=[
        (changed(newcomer=smallest),
         "Newcomers still wait: they should get the largest priority so far."),
        (changed(priority=square), "The priority is still a square."),
        (changed(priority=lambda self, d: d + self.epsilon),
         "The absolute value is missing: a bad surprise is a surprise, too."),
        (changed(priority=lambda self, d: (np.abs(d) + self.epsilon) ** 0.6),
         "α is applied twice: `masses` raises the priority to α by itself."),
    ])  # fmt: skip

EXERCISES["07.2"] = Exercise(
    right=Plain, tried=second, begins_as=changed(weights=too_small),
    cases=[(PRIORITIES, np.array([0, 2]), 1.0), (PRIORITIES, np.array([3, 0, 2]), 0.4),
           (PRIORITIES * [1, 1, 1, 0], np.array([0, 2, 1]), 0.4),
           (PRIORITIES, np.array([1, 2]), 0.0)],
    hints=[
        (changed(weights=lambda self, P, beta: (P / P.min()) ** -beta / len(P)),
         "The largest should be 1: divide by the largest, and by nothing else."),
        (changed(weights=lambda self, P, beta: (
            P / self.probabilities[: len(self)].min()) ** -beta),
         "Divide by the largest weight of the minibatch, not of the whole buffer."),
        (changed(weights=lambda self, P, beta: (P / P.max()) ** beta),
         "The sign of β is wrong: what is drawn more often should weigh less."),
    ])  # fmt: skip

EXERCISES["07.3"] = Exercise(
    right=Plain, tried=third,
    begins_as=changed(masses=without_the_newest, slots_of=of_anyone),
    parts=["p^α of the stored", "the slots"],
    cases=[(PRIORITIES, 4, np.arange(4)), (PRIORITIES, 6, np.arange(6)),
           (PRIORITIES, 9, np.array([8, 4, 5])), (PRIORITIES * [1, 0, 0, 0], 1, np.array([0]))],
    hints=[
        (changed(slots_of=of_anyone),
         "A late priority still goes to the transition that replaced its own: return −1."),
        (changed(masses=without_the_newest), "The newest is still left out."),
        (changed(slots_of=lambda self, n: np.where(
            n > self.added - self.capacity, n % self.capacity, -1)),
         "Some that are still stored get −1. Which is the oldest one?"),
    ])  # fmt: skip
