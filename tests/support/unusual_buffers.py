"""Plain replay buffers, unusual and right, or with one mistake; none knows the package's own."""

import numpy as np

from per_tutorial.conformance import Drawn

EPSILON = 1e-6


class Buffer:
    """Correct: a sum tree over p^α, stratified draws, weights by the minibatch's largest."""

    def __init__(self, capacity, alpha, seed):
        self.capacity, self.alpha, self.seed = capacity, alpha, seed
        self.rng = np.random.default_rng(seed)
        self.leaves = 1 << (capacity - 1).bit_length()
        self.tree = np.zeros(2 * self.leaves)
        self.max_priority, self.next, self.size = 1.0, 0, 0
        self.observations = self.column((2,))
        self.next_observations = self.column((2,))
        self.actions = np.zeros(capacity, np.int64)
        self.rewards = np.zeros(capacity)
        self.terminated = np.zeros(capacity, bool)

    def column(self, shape):
        return np.zeros((self.capacity, *shape), np.float32)

    def add(self, transition):
        self.store(self.next, transition)
        self.enter(self.next)
        self.size = min(self.size + 1, self.capacity)
        self.advance()

    def store(self, i, transition):
        self.observations[i] = transition.observation
        self.next_observations[i] = transition.next_observation
        self.actions[i] = transition.action
        self.rewards[i] = transition.reward
        self.terminated[i] = transition.terminated

    def enter(self, i):
        self.set(np.array([i]), self.new_leaf())

    def new_leaf(self):
        return self.max_priority**self.alpha

    def advance(self):
        self.next = (self.next + 1) % self.capacity

    def set(self, indices, values):
        nodes = indices + self.leaves
        self.tree[nodes] = values
        while nodes[0] > 1:
            nodes = np.unique(nodes // 2)
            self.tree[nodes] = self.tree[2 * nodes] + self.tree[2 * nodes + 1]

    def sample(self, batch_size, beta):
        indices = self.descend(self.targets(batch_size))
        return self.hand_out(indices, self.weights(indices, beta))

    def targets(self, batch_size):
        strata = np.arange(batch_size) + self.rng.random(batch_size)
        return strata / batch_size * self.tree[1]

    def descend(self, targets):
        nodes = np.ones(len(targets), np.int64)
        while nodes[0] < self.leaves:
            left = self.tree[2 * nodes]
            right = (targets >= left) & (self.tree[2 * nodes + 1] > 0)
            targets = np.where(right, targets - left, targets)
            nodes = 2 * nodes + right
        return nodes - self.leaves

    def weights(self, indices, beta):
        probabilities = self.tree[self.leaves + indices] / self.tree[1]
        weights = (self.size * probabilities) ** -beta
        return weights / weights.max()

    def hand_out(self, indices, weights):
        return Drawn(
            self.gather(self.observations, indices),
            weights,
            indices,
            self.gather(self.actions, indices),
            self.gather(self.rewards, indices),
            next_observations=self.gather(self.next_observations, indices),
            terminated=self.gather(self.terminated, indices),
        )

    def gather(self, column, indices):
        return np.stack(column[indices])

    def update(self, indices, td_errors):
        priorities = self.priorities(np.asarray(td_errors, float))
        self.remember(priorities)
        self.set(indices, priorities**self.alpha)

    def priorities(self, td_errors):
        return np.abs(td_errors) + EPSILON

    def remember(self, priorities):
        self.max_priority = max(self.max_priority, priorities.max())


class CumulativeSums(Buffer):
    """Correct: no tree but cumulative sums and `np.searchsorted`; draws are independent."""

    def set(self, indices, values):
        self.tree[self.leaves + indices] = values
        self.tree[1] = self.tree[self.leaves :].sum()

    def targets(self, batch_size):
        return self.rng.random(batch_size)

    def descend(self, targets):
        sums = np.cumsum(self.tree[self.leaves :])
        return np.searchsorted(sums, targets * sums[-1], side="right")


class WeightsOfTheMemory(Buffer):
    """Correct: weights are divided by the largest that any stored transition could have."""

    def weights(self, indices, beta):
        leaves = self.tree[self.leaves : self.leaves + self.size]
        return (leaves[indices] / leaves.min()) ** -beta


class NewAtTheMean(Buffer):
    """Correct: a new transition gets the mean of p^α, instead of the largest."""

    def new_leaf(self):
        return self.tree[1] / self.size if self.size else 1.0


class MaximumOfLastBatch(Buffer):
    """The largest priority is that of the last update, and not of all so far."""

    def remember(self, priorities):
        self.max_priority = priorities.max()


class KeepsReferences(Buffer):
    """Observations are stored without a copy; the environment writes over its own array."""

    def column(self, shape):
        return np.empty(self.capacity, object)


class OneArrayForAll(Buffer):
    """Each minibatch is written to the same arrays, so the next draw changes the one before."""

    def gather(self, column, indices):
        outputs = self.__dict__.setdefault("outputs", {})
        shape = (len(indices), *column.shape[1:])
        output = outputs.setdefault((id(column), shape), np.empty(shape, column.dtype))
        return np.take(column, indices, axis=0, out=output)
