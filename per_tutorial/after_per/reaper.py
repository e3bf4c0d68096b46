"""ReaPER: prioritised replay adjusted by reliability (Pleiss et al. 2026, arXiv 2506.18482)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import real_number
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Floats, Slots, State
from per_tutorial.replay.random_streams import RandomStreams
from per_tutorial.replay.samplers.proportional import epsilon_number
from per_tutorial.replay.storages.rows import RowStorage


@njit_cached
def fill_reliabilities(errors, over, added, stride, reliabilities):
    """Write into `reliabilities` (runs, capacity) R_t = Σ_{i≤t} p_i / Σ_i p_i of every stored step.

    The sums go over the steps of t's episode that are still stored. R is 1 while an episode runs.
    `errors` are p, and `over` says where an episode ends; both (runs, capacity).
    """
    runs, capacity = errors.shape
    for run in range(runs):
        oldest = max(added[run] - capacity, 0)
        for first in range(oldest, min(oldest + stride, added[run])):  # of each environment
            begin, total = first, 0.0
            for step in range(first, added[run], stride):
                slot = step % capacity
                total += errors[run, slot]
                reliabilities[run, slot] = total
                if over[run, slot]:
                    for earlier in range(begin, step + 1, stride):
                        reliabilities[run, earlier % capacity] /= total
                    begin, total = step + stride, 0.0
            for running in range(begin, added[run], stride):
                reliabilities[run, running % capacity] = 1.0


@njit_cached
def write_errors(errors, largest, slots, priorities):
    """Set p of `slots` (runs, batch), the last of duplicates, and record the largest: one call."""
    for run in range(slots.shape[0]):
        for k in range(slots.shape[1]):
            if slots[run, k] >= 0:
                errors[run, slots[run, k]] = priorities[run, k]
                largest[run] = max(largest[run], priorities[run, k])


class ReaperSampler:
    """P(i) ∝ R_i^ω · p_i^α with p_i = |δ_i| + ε and the reliability R_i of its target.

    R_t = 1 − Σ_{i>t} p_i / Σ_i p_i over the episode of step t: the smaller the errors between a
    step and the end of its episode, the more its target can be trusted (section 4 of Pleiss et
    al.). A new transition gets the largest p so far, 1 at the start.

    A TD error changes the R of a whole episode, so each draw takes a pass over all transitions.
    Weights (N · P(i))^−β are divided by the largest one of the whole buffer. Both are as in the
    authors' code. It differs from theirs in ε, and where an episode is not whole: R is 1 while it
    runs, and later sums go over the steps that are still stored.

    Args:
        storage: the storage whose transitions are drawn; it knows where episodes end.
        seeds: one int per run.
        alpha: how strongly errors count, in [0, 1].
        omega: how strongly reliability counts, in [0, 1]; 0 leaves proportional replay.
        priority_epsilon: ε, in [1e-20, 1e20].

    Example:
        >>> from per_tutorial import Replay
        >>> from per_tutorial.after_per import ReaperSampler
        >>> from per_tutorial.replay import TransitionStorage
        >>> storage = TransitionStorage(9, (1,))
        >>> replay = Replay(storage, ReaperSampler(storage, seeds=[0], alpha=1.0, omega=1.0))
        >>> for step in range(2):
        ...     replay.add([step], 1, 0.5, [step + 1], terminated=step == 1)
        >>> replay.update_priorities([0, 1], [1.0, 1.0])  # R = 1/2 and 1
        >>> replay.probabilities().round(2).tolist()
        [0.33, 0.67]
    """

    needs_updates = True

    def __init__(
        self,
        storage: RowStorage,
        seeds: Sequence[int],
        *,
        alpha: float = 0.3,
        omega: float = 0.3,
        priority_epsilon: float = 1e-6,
    ) -> None:
        self.storage = storage
        self.capacity = storage.capacity
        self.alpha = real_number("alpha", alpha, 0, 1)
        self.omega = real_number("omega", omega, 0, 1)
        self.priority_epsilon = epsilon_number("priority_epsilon", priority_epsilon)
        self.streams = RandomStreams(seeds, "replay")
        self.runs = len(self.streams.states)
        self.errors = np.zeros((self.runs, self.capacity))  # p
        self.largest_priority = np.ones(self.runs)
        self.settings: dict[str, Any] = {
            "sampler": "reaper",
            "alpha": self.alpha,
            "omega": self.omega,
            "priority_epsilon": self.priority_epsilon,
        }

    def add(self, slots: Slots) -> None:
        """Give newly written slots (runs, n) the largest priority seen so far."""
        priorities = self.largest_priority[:, None].repeat(slots.shape[1], axis=1)
        write_errors(self.errors, self.largest_priority, slots, priorities)

    def sample(
        self, batch_size: int, sizes: NDArray[np.int64], beta: float
    ) -> tuple[Slots, NDArray, NDArray]:
        """Slots, P(i) and importance-sampling weights, (runs, batch) each."""
        shares = self._shares(sizes)
        sums = shares.cumsum(axis=1)
        chances = self.streams.uniform(batch_size) * np.nextafter(sums[:, -1:], 0)
        slots = np.array(
            [each.searchsorted(chance, side="right") for each, chance in zip(sums, chances)]  # noqa: B905
        )
        drawn = np.take_along_axis(shares, slots, axis=1)
        smallest = np.where(shares > 0, shares, np.inf).min(axis=1, keepdims=True)
        return slots, drawn, (drawn / smallest) ** -beta

    def update(self, slots: Slots, td_errors: Floats) -> None:
        """Set the priorities of replayed slots from their TD errors, both (runs, batch)."""
        priorities = np.abs(td_errors) + self.priority_epsilon
        write_errors(self.errors, self.largest_priority, slots, priorities)

    def probabilities(self, slots: Slots, sizes: NDArray[np.int64]) -> Floats:
        """P(i) of slots (runs, n): 0 where nothing is stored."""
        return np.take_along_axis(self._shares(sizes), slots, axis=1)

    @property
    def state(self) -> State:
        """The random streams, p of every slot, and the largest p so far."""
        return {
            "streams": self.streams.states,
            "errors": self.errors,
            "largest_priority": self.largest_priority,
        }

    def _shares(self, sizes: NDArray[np.int64]) -> Floats:
        """P(i) of every slot, (runs, capacity)."""
        rows, reliabilities = self.storage.rows, np.zeros_like(self.errors)
        over = rows["terminated"] | rows["truncated"]
        ring = self.storage.added, self.storage.environments
        fill_reliabilities(self.errors, over, *ring, reliabilities)
        stored = np.arange(self.capacity) < sizes[:, None]
        shares = np.where(stored, reliabilities**self.omega * self.errors**self.alpha, 0.0)
        return shares / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
