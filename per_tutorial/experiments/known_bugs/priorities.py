"""Priorities that do not follow the size of the TD error."""

import numpy as np

from per_tutorial.experiments.known_bugs.bug import Bug
from per_tutorial.replay.contracts import Floats, Slots
from per_tutorial.replay.samplers.proportional import ProportionalSampler, write_sums
from per_tutorial.replay.trees import set_minima

OF_ERRORS = "priorities[run, k] = abs(td_errors[run, k]) + epsilon"
OF_NEWCOMERS = "priorities = self.largest_priority[:, None]"
POWER = "powers = priorities**self.alpha"


class SquaredPriority(ProportionalSampler):
    """p = δ² + ε."""

    def update(self, slots: Slots, td_errors: Floats) -> None:
        self._write(slots, td_errors**2 + self.priority_epsilon)


class HuberPriority(ProportionalSampler):
    """p = Huber(δ) + ε."""

    def update(self, slots: Slots, td_errors: Floats) -> None:
        size = np.abs(td_errors)
        huber = np.where(size < 1, size**2 / 2, size - 0.5)
        self._write(slots, huber + self.priority_epsilon)


class SignedPriority(ProportionalSampler):
    """p = δ, at least ε."""

    def update(self, slots: Slots, td_errors: Floats) -> None:
        self._write(slots, np.maximum(td_errors, self.priority_epsilon))


class NoEpsilon(ProportionalSampler):
    """p = |δ|."""

    def update(self, slots: Slots, td_errors: Floats) -> None:
        self._write(slots, np.abs(td_errors))


class EpsilonTwice(ProportionalSampler):
    """p = |δ| + 2ε."""

    def update(self, slots: Slots, td_errors: Floats) -> None:
        super().update(slots, np.abs(td_errors) + self.priority_epsilon)


class AlphaTwice(ProportionalSampler):
    """Leaves hold (p^α)^α."""

    def _write(self, slots: Slots, priorities: Floats) -> None:
        super()._write(slots, priorities**self.alpha)


class AlphaTwiceForNewcomers(ProportionalSampler):
    """The leaves of new transitions hold (p^α)^α."""

    def add(self, slots: Slots) -> None:
        largest = self.largest_priority[:, None] ** self.alpha
        self._write(slots, np.repeat(largest, slots.shape[1], axis=1))


class StarvedNewcomers(ProportionalSampler):
    """A new transition gets ε."""

    def add(self, slots: Slots) -> None:
        self._write(slots, np.full(slots.shape, self.priority_epsilon))


class NewcomersAtOne(ProportionalSampler):
    """A new transition gets 1, however large priorities have become."""

    def add(self, slots: Slots) -> None:
        self._write(slots, np.ones(slots.shape))


class CurrentMaximum(ProportionalSampler):
    """A new transition gets the largest priority that is stored now."""

    def add(self, slots: Slots) -> None:
        largest = self.sums.get(np.tile(np.arange(self.capacity), (self.runs, 1))).max(axis=1)
        if self.alpha > 0:
            self.largest_priority[largest > 0] = largest[largest > 0] ** (1 / self.alpha)
        super().add(slots)


class MixedUnits(ProportionalSampler):
    """The sum tree holds p^α, the min tree p."""

    def _write(self, slots: Slots, priorities: Floats) -> None:
        sums, largest, values = self.sums, self.largest_priority, priorities**self.alpha
        write_sums(sums.nodes, sums.first_root, slots, values, priorities, largest)
        if self.minima is not None:
            set_minima(self.minima.nodes, sums.first_root, slots, priorities)


KNOWN_BUGS = (
    Bug(
        name="squared-priority",
        mistake="The priority is δ² where |δ| was meant, which doubles α.",
        wrong="self._write(slots, td_errors**2 + self.priority_epsilon)",
        right=OF_ERRORS,
        seen=("higgsfield/RL-Adventure#13", "Shmuma/ptan#36"),
        found_by="exponent-small-errors",
        sampler=SquaredPriority,
    ),
    Bug(
        name="huber-priority",
        mistake="The priority is the Huber loss, which is ½δ² below 1: small errors get twice the "
        "α.",
        wrong="huber = np.where(size < 1, size**2 / 2, size - 0.5)",
        right=OF_ERRORS,
        found_by="exponent-small-errors",
        sampler=HuberPriority,
    ),
    Bug(
        name="signed-priority",
        mistake="The absolute value is missing: what was worse than expected counts as if it were "
        "known.",
        wrong="self._write(slots, np.maximum(td_errors, self.priority_epsilon))",
        right=OF_ERRORS,
        found_by="sign",
        sampler=SignedPriority,
    ),
    Bug(
        name="no-epsilon",
        mistake="Without ε a transition whose error was once 0 is never replayed again.",
        wrong="self._write(slots, np.abs(td_errors))",
        right=OF_ERRORS,
        found_by="zero-errors",
        sampler=NoEpsilon,
    ),
    Bug(
        name="epsilon-twice",
        mistake="The caller adds ε and the buffer adds it again.",
        wrong="super().update(slots, np.abs(td_errors) + self.priority_epsilon)",
        right=OF_ERRORS,
        found_by="zero-errors",
        sampler=EpsilonTwice,
    ),
    Bug(
        name="alpha-twice",
        mistake="α is applied to every priority twice, so the exponent is α².",
        wrong="super()._write(slots, priorities**self.alpha)",
        right=POWER,
        found_by="exponent-small-errors",
        sampler=AlphaTwice,
    ),
    Bug(
        name="alpha-twice-for-newcomers",
        mistake="α is applied twice to new transitions, so that they rank below the largest "
        "priority.",
        wrong="largest = self.largest_priority[:, None] ** self.alpha",
        right=OF_NEWCOMERS,
        seen=("pytorch/rl#3925",),
        lived="until July 2026",
        found_by="newcomers-largest",
        sampler=AlphaTwiceForNewcomers,
    ),
    Bug(
        name="starved-newcomers",
        mistake="A new transition starts with ε, the smallest priority, and is hardly ever "
        "replayed.",
        wrong="self._write(slots, np.full(slots.shape, self.priority_epsilon))",
        right=OF_NEWCOMERS,
        found_by="newcomers-at-first",
        sampler=StarvedNewcomers,
    ),
    Bug(
        name="newcomers-at-one",
        mistake="A new transition gets priority 1, however large the priorities have become.",
        wrong="self._write(slots, np.ones(slots.shape))",
        right=OF_NEWCOMERS,
        seen=("ray-project/ray#2927", "ray-project/ray#11750", "astooke/rlpyt#102"),
        lived="reported in 2018, and again in 2020",
        found_by="newcomers-largest",
        sampler=NewcomersAtOne,
    ),
    Bug(
        name="current-maximum",
        mistake="A new transition gets the largest priority currently stored; the paper uses the "
        "largest ever seen, which never falls.",
        wrong="self.largest_priority[largest > 0] = largest[largest > 0] ** (1 / self.alpha)",
        right="largest[run] = max(largest[run], priorities[run, k])",
        seen=("pytorch/rl#2215",),
        lived="both are in use",
        found_by="newcomers-memory",
        sampler=CurrentMaximum,
        choice=True,
    ),
    Bug(
        name="mixed-units",
        mistake="Leaves hold p^α, but the minimum that weights are divided by is kept without α.",
        wrong="set_minima(self.minima.nodes, sums.first_root, slots, priorities)",
        right="set_minima(minima, first_root, slots, values)",
        seen=("thu-ml/tianshou (prio.py)",),
        found_by="weights-normalisation",
        sampler=MixedUnits,
        buffer_settings={"normalize": "buffer"},
    ),
)
