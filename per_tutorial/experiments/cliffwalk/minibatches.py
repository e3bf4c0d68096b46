"""The Blind Cliffwalk in minibatches: draws without replacement, priorities always fresh.

Panahi et al. (2024, arXiv 2407.09702) measure in tabular experiments what PER gains from drawing
minibatches without replacement and from recomputing all priorities. Neither can show where
transitions are replayed one at a time, as in `learner`. Here an update learns a whole minibatch, as
agents do: all TD errors first, then one step along their mean.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import one_of, whole_number
from per_tutorial.experiments.cliffwalk.learner import (
    CONVERGED,
    FOREVER,
    WalkLearner,
    learn,
    mean_squared_error,
    td_error,
)
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.random_streams import next_uniform
from per_tutorial.replay.samplers.proportional import sample_stratified
from per_tutorial.replay.trees import find_leaf, set_sums

DRAWS = ("stratified", "independent", "without replacement")
STRATIFIED, INDEPENDENT, WITHOUT_REPLACEMENT = range(3)
LIMIT = 1_000_000  # updates after which a run counts as never converged


@njit_cached
def draw_one_by_one(nodes, random, replace, slots):
    """Fill `slots` (1, batch) with draws in proportion to the leaves.

    Without `replace` all are different: a drawn leaf is 0 until the minibatch is full.
    """
    size = slots.shape[1]
    one, held, nothing = np.empty((1, 1), np.int64), np.empty((1, 1)), np.zeros((1, 1))
    values = np.empty(size)
    leaves = len(nodes) // 2
    for k in range(size):
        slots[0, k] = find_leaf(nodes, 1, leaves, next_uniform(random, 0) * nodes[1]) - leaves
        values[k] = nodes[leaves + slots[0, k]]
        if not replace:
            one[0, 0] = slots[0, k]
            set_sums(nodes, 1, one, nothing)
    if not replace:
        for k in range(size):
            one[0, 0], held[0, 0] = slots[0, k], values[k]
            set_sums(nodes, 1, one, held)


@njit_cached
def replay_minibatches(theta, problem, choice, draws, kind_of, recompute, slots, updates, replayed):
    """Learn minibatches until converged, at most `updates`; return how many were learned.

    Changes theta, the arrays of the choice, `slots` (1, batch) and `replayed`.
    """
    memory, truth, discount, _, step_size = problem
    alpha, epsilon, kinds = choice.alpha, choice.epsilon, choice.kinds
    nodes, random = choice.nodes, choice.random
    size, everything = slots.shape[1], np.arange(len(kind_of)).reshape(1, -1)
    deltas, priorities, chances = np.empty(size), np.empty((1, size)), np.empty((1, size))
    of_kinds, of_all = np.empty(len(kinds)), np.empty((1, len(kind_of)))
    for update in range(updates):
        if mean_squared_error(theta, 0.0, truth) < CONVERGED:
            return update
        if recompute:
            for kind in range(len(kinds)):  # copies of a transition have the same error
                delta = td_error(theta, memory, discount, 0.0, kinds[kind])
                of_kinds[kind] = (abs(delta) + epsilon) ** alpha
            for k in range(len(kind_of)):
                of_all[0, k] = of_kinds[kind_of[k]]
            set_sums(nodes, 1, everything, of_all)
        if draws == STRATIFIED:
            sample_stratified(nodes, 1, random, slots, chances)
        else:
            draw_one_by_one(nodes, random, draws == INDEPENDENT, slots)

        for k in range(size):
            deltas[k] = td_error(theta, memory, discount, 0.0, slots[0, k])
            priorities[0, k] = (abs(deltas[k]) + epsilon) ** alpha
        for k in range(size):
            learn(theta, memory, 0.0, slots[0, k], step_size / size * deltas[k])
            replayed[slots[0, k]] += 1
        set_sums(nodes, 1, slots, priorities)
    return updates


class MinibatchLearner(WalkLearner):
    """A table of Q that learns the walk in minibatches, by proportional or uniform replay.

    The memory holds all transitions from the start, at the largest priority, 1. As in
    `CliffwalkLearner`, there are no importance-sampling weights and no target network. With
    minibatches of one transition, "stratified" draws and no recomputing, it equals the
    "proportional" learner there, draw for draw.

    Args:
        n: states of the walk.
        alpha: α; 0 is uniform replay.
        draws: "stratified", one draw from each of `batch_size` equal shares of the total priority
            (appendix B.2.1 of the paper); "independent", with replacement; or "without
            replacement", each in proportion to the priorities of the transitions that are left.
        recompute: whether to recompute all priorities before each minibatch. If not, only replayed
            transitions get new priorities, after their minibatch.
        batch_size: transitions of a minibatch, at most as many as the memory holds.
        priority_epsilon: ε.
        initial_scale: standard deviation of the initial Q.
        step_size: η; an update moves Q by η times the mean step of its transitions.
        seed: an int, for the order of the memory, the initial Q and the draws.

    Attributes:
        last: (batch_size,) the transitions of the last minibatch, −1 at the start.
    """

    def __init__(
        self,
        n: int,
        *,
        alpha: float = 0.7,
        draws: str = "stratified",
        recompute: bool = False,
        batch_size: int = 8,
        priority_epsilon: float = 1e-6,
        initial_scale: float = 0.1,
        step_size: float = 0.25,
        seed: int = 0,
    ) -> None:
        super().__init__(
            n,
            "proportional",
            alpha=alpha,
            priority_epsilon=priority_epsilon,
            initial_scale=initial_scale,
            step_size=step_size,
            seed=seed,
        )
        self.draws = one_of("draws", draws, DRAWS)
        if not isinstance(recompute, bool):
            raise TypeError(f"recompute: must be True or False, got {recompute!r}")
        self.recompute = recompute
        batch_size = whole_number("batch_size", batch_size, maximum=len(self.replayed))
        self._slots = np.full((1, batch_size), -1, dtype=np.int64)
        # Which of the choice's kinds each transition is.
        rows = np.column_stack(self.memory[:3])
        self._kind_of = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)

    @property
    def last(self) -> NDArray[np.int64]:
        return self._slots[0].copy()

    @property
    def priorities(self) -> NDArray[np.float64]:
        """The leaves p^α of the tree, (2^(n+1) − 2,), stale or not."""
        nodes = self._choice.nodes
        return nodes[len(nodes) // 2 :][: len(self.replayed)].copy()

    def run(self, updates: int = FOREVER) -> int:
        """Learn up to `updates` more minibatches, fewer if learning converges; returns how many."""
        settings = (DRAWS.index(self.draws), self._kind_of, self.recompute, self._slots)
        updates = whole_number("updates", updates, minimum=0)
        done = replay_minibatches(
            self.theta, self._problem, self._choice, *settings, updates, self.replayed
        )
        self.updates += done
        return done


def updates_until_converged(
    n: int, runs: int = 30, limit: int = LIMIT, **settings: Any
) -> NDArray[np.float64]:
    """The minibatches that each run of a `MinibatchLearner` needs to converge: (runs,).

    Run k has seed k, so runs of two settings are paired: they share the order of the memory and
    the initial Q.

    Args:
        n: states of the walk.
        runs: number of runs.
        limit: a run that needs more counts as infinite.
        settings: of `MinibatchLearner`.
    """
    learners = [MinibatchLearner(n, seed=seed, **settings) for seed in range(runs)]
    for learner in learners:
        learner.run(limit)
    return np.array([each.updates if each.converged else np.inf for each in learners])
