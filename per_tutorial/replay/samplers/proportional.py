"""Proportional prioritised replay (Schaul et al., 3.2 to 3.4, Algorithm 1; notebook 03)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import one_of, real_number
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Floats, Ints, Slots, State
from per_tutorial.replay.random_streams import RandomStreams, next_uniform
from per_tutorial.replay.trees import MinTree, SumTree, find_leaves, set_leaves

# Beyond these, (N · P(i))^−β overflows or underflows, and weights become NaN or zero.
epsilon_number = partial(real_number, low=1e-20, high=1e20, above=0)
NO_TREE = np.empty(0)


@njit_cached
def sample_stratified(nodes, first_root, states, sizes, slots, probabilities, relative):
    """Cut [0, total) into `batch` equal ranges and draw once in each (appendix B.2.1).

    The outputs, each (runs, batch), are `slots`, P(i) and N · P(i), 1 under uniform replay.
    """
    leaves = len(nodes) // (2 * first_root)
    runs, batch = slots.shape
    prefixes = np.empty((runs, batch))
    for run in range(runs):
        for k in range(batch):
            prefixes[run, k] = (k + next_uniform(states, run)) / batch * nodes[first_root + run]
    find_leaves(nodes, first_root, prefixes, slots)
    for run in range(runs):
        root = first_root + run
        for k in range(batch):
            share = nodes[root * leaves + slots[run, k]] / nodes[root]
            probabilities[run, k], relative[run, k] = share, share * sizes[run]


@njit_cached
def divide_by_largest(weights):
    """Divide each row of (runs, batch) by its largest entry, in place."""
    for run in range(weights.shape[0]):
        largest = 0.0
        for k in range(weights.shape[1]):
            largest = max(largest, weights[run, k])
        for k in range(weights.shape[1]):
            weights[run, k] /= largest


@njit_cached
def write_priorities(sums, minima, first_root, slots, values, priorities, largest):
    """Set leaves and record the largest priorities in one call, which cannot be interrupted.

    `minima` may be empty, if there is no such tree. Negative slots are skipped: their transitions
    were overwritten.
    """
    set_leaves(sums, first_root, slots, values)
    if len(minima):
        set_leaves(minima, first_root, slots, values, True)
    for run in range(slots.shape[0]):
        for k in range(slots.shape[1]):
            if slots[run, k] >= 0:
                largest[run] = max(largest[run], priorities[run, k])


class ProportionalSampler:
    """P(i) = p_i^α / Σ_k p_k^α with p_i = |δ_i| + ε (Algorithm 1; notebook 03).

    A new transition gets the largest priority seen so far in its run, 1 at the start. The weights
    w_i = (N · P(i))^−β are divided by the largest one, so that they only ever scale updates down.

    Args:
        capacity: slots per run.
        seeds: one int per run.
        alpha: how strongly priorities count, in [0, 1]; 0 is uniform replay.
        priority_epsilon: ε, which keeps transitions with δ = 0 in play; in [1e-20, 1e20].
        normalize: divide by the largest weight of the "batch" (the default) or of the whole
            "buffer", where a single transition of tiny priority scales all other weights towards
            zero; "none" does not divide.

    Example:
        >>> from per_tutorial import Replay
        >>> from per_tutorial.replay import ProportionalSampler, TransitionStorage
        >>> sampler = ProportionalSampler(1000, seeds=[0], alpha=0.5, normalize="buffer")
        >>> replay = Replay(TransitionStorage(1000, (2,)), sampler)
        >>> for step in range(2):
        ...     replay.add([step, 0], 1, 0.5, [step + 1, 0], terminated=False)
        >>> replay.update_priorities([0, 1], [9.0, 1.0])
        >>> replay.probabilities().round(2).tolist()  # √9 : √1
        [0.75, 0.25]
    """

    needs_updates = True

    def __init__(
        self,
        capacity: int,
        seeds: Sequence[int],
        *,
        alpha: float = 0.6,
        priority_epsilon: float = 1e-6,
        normalize: str = "batch",
    ) -> None:
        self.alpha = real_number("alpha", alpha, 0, 1)
        self.priority_epsilon = epsilon_number("priority_epsilon", priority_epsilon)
        self._epsilon = np.array(self.priority_epsilon)  # faster for NumPy than a float
        self.normalize = one_of("normalize", normalize, ("batch", "buffer", "none"))
        self.streams = RandomStreams(seeds, "replay")
        self.runs = len(self.streams.states)
        self.sums = SumTree(capacity, runs=self.runs)
        self.capacity = self.sums.capacity
        self.minima = MinTree(capacity, runs=self.runs) if normalize == "buffer" else None
        self.largest_priority = np.ones(self.runs)
        self.settings: dict[str, Any] = {
            "sampler": "proportional",
            "alpha": self.alpha,
            "priority_epsilon": self.priority_epsilon,
            "normalize": self.normalize,
        }

    def add(self, slots: Slots) -> None:
        """Give newly written slots (runs, n) the largest priority seen so far."""
        priorities = self.largest_priority[:, None]
        if slots.shape[1] != 1:
            priorities = priorities.repeat(slots.shape[1], axis=1)
        self._write(slots, priorities)

    def sample(self, batch_size: int, sizes: Ints, beta: float) -> tuple[Slots, NDArray, NDArray]:
        """Slots, P(i) and importance-sampling weights, (runs, batch) each."""
        shape, tree = (len(sizes), batch_size), self.sums
        slots, relative = np.empty(shape, np.int64), np.empty(shape)
        probabilities = np.empty(shape, np.float32)
        sample_stratified(
            tree.nodes, tree.first_root, self.streams.states, sizes, slots, probabilities, relative
        )
        weights = relative**-beta
        if self.normalize == "batch":
            divide_by_largest(weights)
        elif self.minima is not None:
            weights /= ((sizes * self.minima.min / self.sums.total) ** -beta)[:, None]
        return slots, probabilities, weights

    def update(self, slots: Slots, td_errors: Floats) -> None:
        """Set the priorities of replayed slots from their TD errors, both (runs, batch)."""
        self._write(slots, np.abs(td_errors) + self._epsilon)

    def probabilities(self, slots: Slots, sizes: Ints) -> Floats:
        """P(i) of slots (runs, n), which hold transitions."""
        return self.sums.get(slots) / self.sums.total[:, None]

    def metrics(self, sizes: Ints) -> dict[str, NDArray]:
        """Measurements per run for `History`: the largest p seen, and the mean of p^α now."""
        return {
            "largest_priority": self.largest_priority.copy(),
            "priority": self.sums.total / sizes,
        }

    @property
    def state(self) -> State:
        """The random streams, the trees, and the largest priorities."""
        state = {
            "streams": self.streams.states,
            "sums": self.sums.nodes,
            "largest_priority": self.largest_priority,
        }
        return state if self.minima is None else state | {"minima": self.minima.nodes}

    def _write(self, slots: Slots, priorities: Floats) -> None:
        """Set the priorities of slots, both (runs, batch)."""
        minima = NO_TREE if self.minima is None else self.minima.nodes
        values, sums = priorities**self.alpha, self.sums
        write_priorities(
            sums.nodes, minima, sums.first_root, slots, values, priorities, self.largest_priority
        )
