"""Notebook 07, broken replay: a bug to name, and two patients beside the plain buffer."""

import numpy as np

from per_tutorial.conformance.plain import Plain
from per_tutorial.notebook.checking import EXERCISES, Exercise


def changed(**methods):
    """The plain buffer with these methods in place of its own."""
    return type("Changed", (Plain,), methods)


def too_small(self, probabilities, beta):
    return (probabilities / self.probabilities.min()) ** -beta / len(probabilities)


def without_the_newest(self):
    masses = self.priorities[: len(self)] ** self.alpha
    masses[-1] = 0.0
    return masses


def of_anyone(self, indices):
    return indices % self.capacity


def holding(patient, priorities, added):
    """A patient with these priorities in its slots."""
    buffer = patient(len(priorities), (1,), alpha=1.0)
    buffer.priorities, buffer.added = priorities.copy(), added
    return buffer


def keeps(*methods):
    """Ask for these methods in the class: without them it inherits right ones."""

    def missing(patient):
        gone = [method for method in methods if method not in vars(patient)]
        return f"`{gone[0]}` is deleted: repair it in the class." if gone else None

    return missing


def weighing(patient):
    def used(priorities, slots, beta):
        buffer = holding(patient, priorities, np.count_nonzero(priorities))
        return buffer.weights(priorities[slots] / priorities.sum(), beta)

    return used


def placing(patient):
    def used(priorities, added, indices):
        buffer = holding(patient, priorities, added)
        buffer.alpha = 0.6
        results = buffer.masses(), buffer.slots_of(indices)
        buffer.update_priorities(indices, np.ones(len(indices)))  # stops if it can't be used
        return results

    return used


PRIORITIES = np.array([3.0, 0.5, 2.0, 1.0])

EXERCISES["07.1"] = Exercise(
    right=2,
    hints=[
        (1, "A square would double the slope above 1, too."),
        (3, "Clipped errors are all alike above 1, so the marks would lie flat there."),
        (4, "A root would halve the slope everywhere."),
    ])  # fmt: skip

EXERCISES["07.2"] = Exercise(
    right=Plain, tried=weighing, also=keeps("weights"), begins_as=changed(weights=too_small),
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
    right=Plain, tried=placing, also=keeps("masses", "slots_of"),
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
