"""The buffer that the exercises of notebook 07 examine and repair."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class PlainReplay:
    """Prioritised replay without a tree. Each promise of the paper is a method of its own.

    Args:
        capacity: slots.
        alpha: how strongly priorities count.
        seed: of the draws.
    """

    def __init__(self, capacity: int, alpha: float = 0.6, seed: int = 0) -> None:
        self.capacity, self.alpha, self.epsilon = capacity, alpha, 1e-6
        self.rng = np.random.default_rng(seed)
        self.transitions: list[tuple] = [()] * capacity
        self.leaves = np.zeros(capacity)  # p^α of each slot, 0 where it is empty
        self.largest = 1.0  # the largest priority so far
        self.added = 0

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def push(self, *transition: Any) -> None:
        """Store (state, action, reward, next_state, done); done: nothing follows."""
        slot = self.added % self.capacity
        self.transitions[slot] = tuple(map(np.copy, transition))
        self.leaves[slot] = self.newcomer() ** self.alpha
        self.added += 1

    def draw(self, batch_size: int, beta: float) -> dict[str, NDArray]:
        """A minibatch with a weight and a number for each transition."""
        if len(self) == 0:
            raise ValueError("nothing is stored yet")
        P = self.probabilities()
        slots = self.rng.choice(len(self), batch_size, p=P)
        fields = zip(*(self.transitions[slot] for slot in slots), strict=True)
        names = ("state", "action", "reward", "next_state", "done")
        batch = {name: np.array(field) for name, field in zip(names, fields, strict=True)}
        age = (self.added - 1 - slots) % self.capacity  # 0: the newest
        return batch | {"weight": self.weights(P[slots], beta), "number": self.added - 1 - age}

    def learned(self, numbers: ArrayLike, td_errors: ArrayLike) -> None:
        """Note the TD errors δ of transitions, by their numbers."""
        if not np.isfinite(td_errors).all():
            raise ValueError("td_errors: must be finite")
        slots, priorities = self.slots_of(np.asarray(numbers)), self.priority(np.asarray(td_errors))
        stored = slots >= 0
        self.leaves[slots[stored]] = priorities[stored] ** self.alpha
        self.largest = max([self.largest, *priorities[stored]])

    def priority(self, td_errors: NDArray) -> NDArray:
        """p of transitions whose TD errors are these."""
        return np.abs(td_errors) + self.epsilon

    def newcomer(self) -> float:
        """p of a transition that has no TD error yet."""
        return self.largest

    def probabilities(self) -> NDArray:
        """P(i) of all that is stored, (len(self),)."""
        leaves = self.leaves[: len(self)]
        return leaves / leaves.sum()

    def weights(self, P: NDArray, beta: float) -> NDArray:
        """The weights of a minibatch, (batch,), given the probabilities of its transitions."""
        weights = (len(self) * P) ** -beta
        return weights / weights.max()

    def slots_of(self, numbers: NDArray) -> NDArray:
        """The slots of transitions by their numbers, −1 where they are no longer stored."""
        stored = numbers >= self.added - self.capacity
        return np.where(stored, numbers % self.capacity, -1)
