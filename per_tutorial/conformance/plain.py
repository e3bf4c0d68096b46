"""Prioritised replay as plainly as the paper describes it: one method for each promise.

`Plain` has no tree and is slow. `bugs` plants mistakes in it, and page 07 writes its methods.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.conformance.adapter import Distribution
from per_tutorial.replay.contracts import Batch, Floats, Slots, Transition


class Plain:
    """A replay buffer for one run, with the arguments and methods of our own.

    Transitions have *ids*, counted from 0 as they are added; id k is in slot k % capacity.

    Example:
        >>> from per_tutorial.conformance.plain import Plain
        >>> buffer = Plain(8, (1,), alpha=1.0, seed=0)
        >>> for step in range(3):
        ...     buffer.add([step], 1, 0.5, [step + 1], False)
        >>> buffer.update_priorities([0, 1, 2], [-2.0, 1.0, 1.0])
        >>> buffer.probabilities[:4].round(3).tolist()
        [0.5, 0.25, 0.25, 0.0]
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: tuple[int, ...],
        *,
        kind: Distribution = "proportional",
        alpha: float = 0.6,
        priority_epsilon: float = 1e-6,
        seed: int | None = None,
        n_step: int = 1,
        discount: float = 0.99,
    ) -> None:
        self.capacity, self.kind, self.alpha, self.epsilon = capacity, kind, alpha, priority_epsilon
        self.n_step, self.discount = n_step, discount
        self.rng = np.random.default_rng(seed)
        observation = (np.float32, observation_shape)
        kinds = (observation, np.int64, np.float32, observation, bool, bool)
        self.rows = np.zeros(capacity, [*zip(Transition._fields, kinds, strict=True)])
        self.priorities = np.zeros(capacity)  # p of each slot
        self.largest = 1.0  # the largest priority so far
        self.added = 0

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    # What is stored (Algorithm 1, line 6) ---------------------------------------------------------

    def add(self, *fields: Any) -> None:
        """Store a transition in place of the oldest, with the priority of a newcomer.

        The fields are those of a `Transition`; `truncated` may be left out.
        """
        slot = self.next_slot()
        self.rows[slot] = (*fields, False)[:6]
        self.write(np.array([slot]), np.array([self.newcomer()]))
        self.added += 1

    def next_slot(self) -> int:
        """Where the next transition goes."""
        return self.added % self.capacity

    def newcomer(self) -> float:
        """The priority of a transition that has no TD error yet: the largest so far."""
        return self.largest

    # What is drawn (section 3.3) ------------------------------------------------------------------

    @property
    def probabilities(self) -> Floats:
        """P(i) of every slot, (capacity,)."""
        masses = np.zeros(self.capacity)
        masses[: len(self)] = self.masses()
        return masses / masses.sum()

    def masses(self) -> Floats:
        """P(i) of the stored transitions by slot, (len(self),), up to a factor."""
        priorities = self.priorities[: len(self)]
        if self.kind == "uniform":
            return np.ones(len(self))
        if self.kind == "proportional":
            return priorities**self.alpha
        ranks = np.empty(len(self))
        ranks[np.argsort(-priorities, kind="stable")] = np.arange(1, len(self) + 1)
        return ranks**-self.alpha

    def sample(self, batch_size: int, beta: float = 0.4) -> Batch:
        """Draw a minibatch with its weights."""
        if batch_size > len(self):
            raise ValueError(f"batch_size: must be at most {len(self)}, got {batch_size}")
        masses = self.masses()
        slots = self.find(self.prefix_sums(batch_size, masses), masses)
        return self.batch(slots, self.weights(masses[slots] / masses.sum(), beta))

    def prefix_sums(self, batch_size: int, masses: Floats) -> Floats:
        """One random number in each of ``batch_size`` equal parts of the total (B.2.1)."""
        strata = np.arange(batch_size) + self.rng.random(batch_size)
        return strata / batch_size * masses.sum()

    def find(self, prefix_sums: Floats, masses: Floats) -> Slots:
        """The slots in which these prefix sums fall."""
        sums = np.cumsum(masses)
        return np.searchsorted(sums, np.minimum(prefix_sums, np.nextafter(sums[-1], 0)), "right")

    def weights(self, probabilities: Floats, beta: float) -> Floats:
        """w = (N · P)^−β over the largest of the minibatch (section 3.4), given its P."""
        weights = (len(self) * probabilities) ** -beta
        return weights / weights.max()

    def batch(self, slots: Slots, weights: NDArray) -> Batch:
        """The transitions in these slots, or the n-step transitions that begin there."""
        ids = self.added - 1 - (self.added - 1 - slots) % self.capacity
        returns, last, steps = self.windows(ids)
        end = last % self.capacity
        observations, actions = (self.gather(name, slots) for name in ("observation", "action"))
        after, over = (self.gather(name, end) for name in ("next_observation", "terminated"))
        discounts = (self.discount**steps * ~over).astype(np.float32)
        return Batch(observations, actions, returns, after, over, weights, ids, discounts)

    def gather(self, field: str, slots: Slots) -> NDArray:
        """Copies of the values in these slots."""
        return self.rows[field][slots]

    def windows(self, ids: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64], NDArray]:
        """For each id: the return, the last step's id and how many steps it has, at most n.

        A window ends with its episode, and where nothing newer is stored.
        """
        returns = self.gather("reward", ids % self.capacity).astype(np.float64)
        last = ids.copy()
        for k in range(1, self.n_step):
            goes_on = (last == ids + k - 1) & ~self.ends(last % self.capacity)
            last += goes_on & (last + 1 < self.added)
            arrived = last == ids + k
            returns += arrived * self.discount**k * self.rows["reward"][last % self.capacity]
        return returns, last, last - ids + 1

    def ends(self, slots: Slots) -> NDArray[np.bool_]:
        """Whether an episode ends here."""
        return self.rows["terminated"][slots] | self.rows["truncated"][slots]

    # What is learned (Algorithm 1, line 12) -------------------------------------------------------

    def update_priorities(self, indices: ArrayLike, td_errors: ArrayLike) -> None:
        """Take the TD errors δ of transitions; the last of duplicates counts."""
        errors = np.array(td_errors, dtype=np.float64)
        if not np.isfinite(errors).all():
            raise ValueError(f"td_errors: must be finite, got {errors}")
        slots = self.slots_of(np.asarray(indices))
        priorities = self.priority(errors)[slots >= 0]
        self.write(slots[slots >= 0], priorities)
        self.remember(priorities)

    def priority(self, td_errors: Floats) -> Floats:
        """p = |δ| + ε."""
        return np.abs(td_errors) + self.epsilon

    def slots_of(self, ids: NDArray[np.int64]) -> Slots:
        """The slots of transitions, −1 where they are no longer stored."""
        return np.where(ids >= self.added - self.capacity, ids % self.capacity, -1)

    def write(self, slots: Slots, priorities: Floats) -> None:
        """Note the priorities of these slots."""
        self.priorities[slots] = priorities

    def remember(self, priorities: Floats) -> None:
        """Note the largest priority of an update."""
        self.largest = max([self.largest, *priorities.tolist()])

    # Files ----------------------------------------------------------------------------------------

    def save(self, path: str) -> None:
        """Write everything to a file, a pickle."""
        Path(path).write_bytes(pickle.dumps(vars(self)))

    def load(self, path: str) -> None:
        """Read a file of `save`; only one's own, since a pickle can run code."""
        vars(self).update(pickle.loads(Path(path).read_bytes()))
