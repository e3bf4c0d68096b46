"""What would a better signal than |δ| bring? Ideal priorities, in tables. Declared before it ran.

A priority of PER is as old as the last replay of its transition, and |δ| contains the noise. Each
of these signals, which no agent can have, is one step closer to the ideal. All are recomputed for
the whole memory before each minibatch, and draw like PER, by priority^0.6 with its importance
weights. Let e = Q − Q*, and m the mean of δ over the possible outcomes of the step:

- ``fresh``: the current |δ|, without PER's delay (which Pan et al., 2022, blame in part).
- ``expected``: |m|, a perfect version of EPER's learned estimate of E[δ] (Panahi et al., 2024).
- ``gain``: the expected decrease of the squared error from a replay, e² − E[(e + η δ)²], at least
  0. The memory holds a transition as often as the policy meets it, so draws follow the gain × need
  of Mattar and Daw (2018), with the need of the behaviour policy.
- ``gain-alone``: the same, with priority^0.6 divided by how often the memory holds the state-action
  pair.

Worlds, pairs, rates, metric and decision are those of the map (`maps`), for n = 4, 5 and 6 and all
five noises, beside uniform replay and PER. Holm's correction covers all cells and the five methods.
Whether a signal is better than PER is judged the same way, in a family of its own.

Expectations: ``fresh`` is a little better than PER. ``expected`` keeps under noise what PER gains
without it. ``gain`` is the best of all, and better than ``gain-alone``. (On the last point, a pilot
with the tuning seeds on n = 4, at two rates, said the opposite.)
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from per_tutorial.experiments.when.worlds import Experience, Knobs, Truth
from per_tutorial.replay.compiling import njit_cached

#: PER whose new transitions start with their own |δ| as priority, which then ages. A study of its
#: own (`entries`), declared when `fresh` was known to be far better than PER without noise. `fresh`
#: differs from PER in two ways: priorities do not age, and new ones do not start at the largest.
#: Same worlds, pairs, rates and metric; compared with PER and `fresh` by means over the rarities.
ENTERED = "entered"
SIGNALS = ("fresh", "expected", "gain", "gain-alone")
ALPHA, BETA = 0.6, (0.4, 1.0)  # PER's; β at the start and at the end
LEAST = 1e-6  # added to every priority, like PER's ε


def newest_errors(
    knobs: Knobs, q: NDArray, experience: Experience, seed_index: NDArray, t: int
) -> NDArray[np.float64]:
    """δ of the transition of step t, (runs, 1)."""
    runs = np.arange(len(seed_index))
    states, actions, rewards, following, ended = (column[seed_index, t] for column in experience)
    values = np.where(ended, 0.0, q[runs, following].max(axis=1))
    return (rewards + knobs.gamma * values - q[runs, states, actions])[:, None]


@njit_cached
def draw_by_priority(by_pair, by_noise, noises, experience, seed_index, size, uniforms):
    """Draw slots from equal shares of the priorities: they and their P, (runs, batch) each.

    The priority^α of a transition is the value of its pair in ``by_pair`` (runs, states, 2) or,
    with ``by_noise``, (|by_pair + its own noise| + ε)^α.
    """
    states, actions = experience.states, experience.actions
    runs, batch = uniforms.shape
    slots, chances = np.empty((runs, batch), np.int64), np.empty((runs, batch))
    sums = np.empty(size)
    for run in range(runs):
        row, total = seed_index[run], 0.0
        for i in range(size):
            priority = by_pair[run, states[row, i], actions[row, i]]
            if by_noise:
                priority = (abs(priority + noises[row, i]) + LEAST) ** ALPHA
            total += priority
            sums[i] = total
        for k in range(batch):
            i = np.searchsorted(sums, (k + uniforms[run, k]) / batch * total, side="right")
            i = min(i, size - 1)
            slots[run, k] = i
            chances[run, k] = (sums[i] - (sums[i - 1] if i else 0.0)) / total
    return slots, chances


class FreshPriorities:
    """A sampler that computes one of `SIGNALS` from the current Q at each draw.

    The memory must hold the whole experience, and the world must not slip.

    Args:
        q: (runs, 2n, 2) read at each draw.
        experience: that of each seed.
        seed_index: (runs,) the row of ``experience`` that each run has.
        rates: (runs,) learning rates η.
    """

    def __init__(
        self,
        signal: str,
        knobs: Knobs,
        q: NDArray,
        experience: Experience,
        seed_index: NDArray,
        rates: NDArray,
        seeds: Sequence[int],
    ) -> None:
        self.signal, self.knobs, self.q = signal, knobs, q
        self.experience, self.seed_index, self.rates = experience, seed_index, rates
        self._truth = Truth(knobs)
        self._noises = (
            experience.rewards - self._truth.rewards[experience.states, experience.actions]
        )
        self._counts = np.zeros((len(experience.states), 2 * knobs.n, 2))
        self._streams = [np.random.default_rng((seed, 12)) for seed in seeds]

    def add(self, slots: NDArray) -> None:
        """Count the transition of step ``slots[0, 0]`` as stored."""
        t = int(slots[0, 0])
        seeds = np.arange(len(self._counts))
        self._counts[seeds, self.experience.states[:, t], self.experience.actions[:, t]] += 1

    def sample(
        self, batch: int, sizes: NDArray, beta: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Slots and weights, (runs, batch) each."""
        size, fresh = int(sizes[0]), self.signal == "fresh"
        # The runs with one seed, at several rates, share its draws.
        uniforms = np.stack([stream.random(batch) for stream in self._streams])
        uniforms = uniforms[self.seed_index]
        slots, chances = draw_by_priority(
            self._of_pairs(), fresh, self._noises, self.experience, self.seed_index, size, uniforms
        )
        weights = (size * chances) ** -beta
        return slots, weights / weights.max(axis=1, keepdims=True)

    def update(self, slots: NDArray, signals: NDArray) -> None:
        """Do nothing: priorities are computed at each draw."""

    def _of_pairs(self) -> NDArray[np.float64]:
        """m of each pair for "fresh"; else priority^α."""
        means = self._truth.mean_errors(self.q)
        if self.signal == "fresh":
            return means
        if self.signal == "expected":
            return (np.abs(means) + LEAST) ** ALPHA
        errors, rates = self.q - self._truth.values, self.rates[:, None, None]
        chance = rates**2 * self.knobs.reward_variance
        brought = errors**2 - (errors + rates * means) ** 2 - chance
        priorities = (np.maximum(brought, 0) + LEAST) ** ALPHA
        if self.signal == "gain-alone":
            priorities /= np.maximum(self._counts[self.seed_index], 1)
        return priorities
