"""Proportional prioritised replay (Schaul et al., sections 3.2 to 3.4, Algorithm 1; notebook 03)."""

import numpy as np
from numba import njit

from per_tutorial.common.arguments import one_of, real_number
from per_tutorial.replay.random_streams import RandomStreams, next_uniform
from per_tutorial.replay.segment_tree import MinTree, SumTree, find_leaves, set_minima, set_sums


@njit(cache=True)
def sample_stratified(nodes, first_root, states, slots, probabilities):
    """Cut [0, total) into `batch` equal ranges and draw once in each (appendix B.2.1)."""
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
            probabilities[run, k] = nodes[root * leaves + slots[run, k]] / nodes[root]


@njit(cache=True)
def sample_relative(nodes, first_root, states, sizes, slots, relative):
    """`sample_stratified` with N · P(i), which is 1 for what is as likely as under uniform replay."""
    sample_stratified(nodes, first_root, states, slots, relative)
    for run in range(relative.shape[0]):
        for k in range(relative.shape[1]):
            relative[run, k] *= sizes[run]


@njit(cache=True)
def divide_by_largest(weights):
    """Divide each row of (runs, batch) by its largest entry, in place."""
    for run in range(weights.shape[0]):
        largest = 0.0
        for k in range(weights.shape[1]):
            largest = max(largest, weights[run, k])
        for k in range(weights.shape[1]):
            weights[run, k] /= largest


@njit(cache=True)
def prioritize(td_errors, slots, epsilon, priorities, largest):
    """Write p = |δ| + ε into `priorities` (runs, batch), and into `largest` (runs,) if it is a record.

    Where the slot is negative the transition is gone: its priority is no record.
    """
    for run in range(td_errors.shape[0]):
        record = largest[run]
        for k in range(td_errors.shape[1]):
            priorities[run, k] = abs(td_errors[run, k]) + epsilon
            if slots[run, k] >= 0:
                record = max(record, priorities[run, k])
        largest[run] = record


class ProportionalSampler:
    """P(i) = p_i^α / Σ_k p_k^α with p_i = |δ_i| + ε (sections 3.2 to 3.4, Algorithm 1; notebook 03).

    A new transition gets the largest priority seen so far in its run, 1 at the start. The weights
    w_i = (N · P(i))^−β are divided by the largest one, so that they only ever scale updates down.

    Args:
        capacity: slots per run.
        seeds: one int per run.
        alpha: how strongly priorities count, in [0, 1]; 0 is uniform replay.
        priority_epsilon: ε > 0, keeps transitions without error alive.
        normalize: the largest weight is that of the "batch" (the default), or that of the whole
            "buffer", where a single transition of tiny priority scales all other weights towards
            zero; "none" leaves the weights as they are.
    """

    def __init__(self, capacity, seeds, *, alpha=0.6, priority_epsilon=1e-6, normalize="batch"):
        self.alpha = real_number("alpha", alpha, 0, 1)
        self.priority_epsilon = real_number("priority_epsilon", priority_epsilon, above=0)
        self.normalize = one_of("normalize", normalize, ("batch", "buffer", "none"))
        self.streams = RandomStreams(seeds, "replay")
        self.sums = SumTree(capacity, runs=len(seeds))
        self.minima = MinTree(capacity, runs=len(seeds)) if normalize == "buffer" else None
        self.largest_priority = np.ones(len(seeds))
        self.settings = {
            "sampler": "proportional",
            "alpha": self.alpha,
            "priority_epsilon": self.priority_epsilon,
            "normalize": self.normalize,
        }
        self.state = {
            "streams": self.streams.states,
            "sums": self.sums.nodes,
            "largest_priority": self.largest_priority,
        }
        if self.minima is not None:
            self.state["minima"] = self.minima.nodes

    def add(self, slots):
        """Give newly written slots (runs, n) the largest priority seen so far."""
        priorities = np.empty(slots.shape)
        priorities[:] = self.largest_priority[:, None]
        self._set(slots, priorities)

    def sample(self, batch_size, sizes, beta):
        """Slots and importance-sampling weights, both (runs, batch)."""
        shape = (len(sizes), batch_size)
        slots, relative = np.empty(shape, dtype=np.int64), np.empty(shape)
        tree = self.sums
        sample_relative(tree.nodes, tree.first_root, self.streams.states, sizes, slots, relative)
        weights = relative**-beta
        if self.normalize == "batch":
            divide_by_largest(weights)
        elif self.normalize == "buffer":
            weights /= ((sizes * self.minima.min / self.sums.total) ** -beta)[:, None]
        return slots, weights

    def update(self, slots, td_errors):
        """Set the priorities of replayed slots from their TD errors, both (runs, batch)."""
        priorities = np.empty(td_errors.shape)
        prioritize(td_errors, slots, self.priority_epsilon, priorities, self.largest_priority)
        self._set(slots, priorities)

    def statistics(self, sizes):
        """Measurements per run for `History`: the largest p seen, and the mean of p^α now."""
        return {"largest_priority": self.largest_priority.copy(), "priority": self.sums.total / sizes}

    def probabilities(self, slots):
        """P(i) of slots (runs, n): 0 where nothing is stored."""
        return self.sums.get(slots) / self.sums.total[:, None]

    def _set(self, slots, priorities):
        values = priorities**self.alpha
        set_sums(self.sums.nodes, self.sums.first_root, slots, values)
        if self.minima is not None:
            set_minima(self.minima.nodes, self.minima.first_root, slots, values)
