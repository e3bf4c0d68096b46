"""A compiled tabular Q-learner for the Blind Cliffwalk, with five ways to choose a transition.

`theta` (2, n) is the table: Q(s, a) = theta[a, s].
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.cliffwalk.environment import Memory, make_memory, true_values
from per_tutorial.common.arguments import one_of, real_number, whole_number
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.random_streams import RandomStreams, next_uniform
from per_tutorial.replay.samplers.proportional import ProportionalSampler, sample_stratified
from per_tutorial.replay.samplers.rank import RankBasedSampler, sample_ranks, set_keys
from per_tutorial.replay.trees import set_leaves

SAMPLERS = ("uniform", "greedy", "oracle", "proportional", "rank")
UNIFORM, GREEDY, ORACLE, PROPORTIONAL, RANK = range(5)
STEP_SIZE = 0.25  # η, the share of its TD error that an update removes
EPSILON = 1e-6  # ε of the proportional sampler
CONVERGED = 1e-3  # mean squared error of Q below which learning is done
FOREVER = 10**9  # updates


class Problem(NamedTuple):
    """What to learn, and the memory to learn it from."""

    memory: Memory
    truth: NDArray[np.float64]  # (n, 2) true values
    discount: float  # γ


class Choice(NamedTuple):
    """How transitions are chosen: a sampler, its settings and its arrays.

    The arrays with a default are empty for samplers that do not use them.
    """

    sampler: int  # its index in SAMPLERS
    alpha: float
    random: NDArray[np.uint64]  # states of the random streams
    kinds: NDArray[np.int64]  # oracle: one transition of each kind
    nodes: NDArray[np.float64] = np.zeros(0)  # proportional: the sum tree
    sums: NDArray[np.float64] = np.zeros(0)  # rank: H(0), H(1), …
    keys: NDArray[np.float64] = np.zeros((0, 0))  # greedy and rank: the heap
    slots: NDArray[np.int32] = np.zeros((0, 0), dtype=np.int32)
    ranks: NDArray[np.int32] = np.zeros((0, 0), dtype=np.int32)
    sizes: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    written: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    largest: NDArray[np.float64] = np.zeros(0)


@njit_cached
def td_error(theta, memory, discount, k):
    """δ = R + γ · max_a Q(S′, a) − Q(S, A) of transition k."""
    target = memory.rewards[k]
    state = memory.next_states[k]
    if state >= 0:
        target += discount * max(theta[0, state], theta[1, state])
    return target - theta[memory.actions[k], memory.states[k]]


@njit_cached
def mean_squared_error(theta, truth):
    """The global loss: the mean over all states and actions of (Q − true value)²."""
    total = 0.0
    for state in range(truth.shape[0]):
        for action in range(2):
            total += (theta[action, state] - truth[state, action]) ** 2
    return total / truth.size


@njit_cached
def oracle_choice(theta, problem, kinds):
    """The transition whose replay leaves the least global loss; tries each kind and undoes it."""
    memory, truth, discount = problem
    best, least = kinds[0], np.inf
    before = theta.copy()
    for k in kinds:
        delta = td_error(theta, memory, discount, k)
        theta[memory.actions[k], memory.states[k]] += STEP_SIZE * delta
        loss = mean_squared_error(theta, truth)
        theta[:] = before
        if loss < least:
            best, least = k, loss
    return best


@njit_cached
def replay_until_converged(theta, problem, choice, updates, replayed, losses):
    """Replay one transition at a time until converged, at most `updates` times.

    Changes theta, the arrays of the choice and `replayed`, which counts the replays of each
    transition. Writes the global loss after each update into `losses` while there is room. Returns
    the number of updates and the last transition.
    """
    # Unpacked once: reading the tuple at every update makes learning several times slower.
    memory, truth, discount = problem
    chosen, value = np.zeros((1, 1), np.int64), np.zeros((1, 1))
    probability, relative = np.zeros((1, 1)), np.zeros((1, 1))
    one = np.ones(1, np.int64)
    k = -1
    for update in range(updates):
        if mean_squared_error(theta, truth) < CONVERGED:
            return update, k
        if choice.sampler == UNIFORM:
            k = int(next_uniform(choice.random, 0) * len(replayed))
        elif choice.sampler == GREEDY:
            k = choice.slots[0, 1]
        elif choice.sampler == ORACLE:
            k = oracle_choice(theta, problem, choice.kinds)
        elif choice.sampler == PROPORTIONAL:
            sample_stratified(choice.nodes, 1, choice.random, one, chosen, probability, relative)
            k = chosen[0, 0]
        else:
            sample_ranks(choice.sums, choice.sizes, choice.random, chosen)
            k = choice.slots[0, chosen[0, 0]]

        delta = td_error(theta, memory, discount, k)
        theta[memory.actions[k], memory.states[k]] += STEP_SIZE * delta

        chosen[0, 0], value[0, 0] = k, abs(delta)
        if choice.sampler == PROPORTIONAL:
            value[0, 0] = (abs(delta) + EPSILON) ** choice.alpha
            set_leaves(choice.nodes, 1, chosen, value)
        elif choice.sampler == GREEDY or choice.sampler == RANK:
            heap = (choice.keys, choice.slots, choice.ranks, choice.sizes)
            set_keys(*heap, choice.written, choice.largest, chosen, value)
        replayed[k] += 1
        if update < len(losses):
            losses[update] = mean_squared_error(theta, truth)
    return updates, k


class CliffwalkLearner:
    """A learner of the walk, with its memory and its sampler.

    The memory holds all transitions from the start, at the largest priority, 1. There are no
    importance-sampling weights and no target network.

    Args:
        n: states of the walk.
        sampler: "uniform"; "greedy", always the transition with the largest priority; "oracle", the
            one whose replay lowers the global loss most; "proportional"; or "rank".
        alpha: α of the proportional and the rank-based sampler.
        noise: standard deviation of the noise on the stored rewards.
        seed: an int, for the order of the memory, the noise, the initial values and the draws.

    Attributes:
        memory: a `Memory`; `replayed` uses its order.
        truth: (n, 2) the true values.
        theta: (2, n) the learned values.
        updates: transitions learned so far.
        replayed: (2^(n+1) − 2,) how often each transition was replayed.
        last: the transition that was replayed last, −1 at the start.
    """

    def __init__(
        self,
        n: int,
        sampler: str,
        *,
        alpha: float = 0.7,
        noise: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.n = whole_number("n", n, minimum=2)
        self.sampler = one_of("sampler", sampler, SAMPLERS)
        self.alpha = real_number("alpha", alpha, 0, 1)
        noise = real_number("noise", noise, low=0)
        rng = np.random.default_rng(whole_number("seed", seed, minimum=0, maximum=None))
        self.memory = make_memory(self.n, rng, noise)
        self.truth = true_values(self.n)
        # As in the recorded runs, some of which had one more weight for each action
        self.theta = rng.normal(0.0, 0.1, (2, self.n + 1))[:, :-1].copy()
        self.updates = 0
        self.last = -1
        self.replayed = np.zeros(len(self.memory.states), dtype=np.int64)
        self._problem = Problem(self.memory, self.truth, 1 - 1 / self.n)
        self._choice = self._make_choice(seed)

    @property
    def q(self) -> NDArray[np.float64]:
        """The learned values, (n, 2)."""
        return self.theta.T.copy()

    @property
    def loss(self) -> float:
        """The mean squared error of `q`."""
        return mean_squared_error(self.theta, self.truth)

    @property
    def converged(self) -> bool:
        """Whether the mean squared error is below 1e-3."""
        return self.loss < CONVERGED

    def _make_choice(self, seed: int) -> Choice:
        transitions = len(self.memory.states)
        # Copies are equal, so the oracle tries one of each kind. With noise, no two are equal.
        rows = np.column_stack(self.memory[:3])
        _, kinds = np.unique(rows, axis=0, return_index=True)
        choice = Choice(
            SAMPLERS.index(self.sampler),
            self.alpha,
            RandomStreams([seed], "replay").states,
            kinds,
        )
        everything = np.arange(transitions)[None]
        if self.sampler == "proportional":
            proportional = ProportionalSampler(transitions, [seed], alpha=self.alpha)
            proportional.add(everything)
            return choice._replace(nodes=proportional.sums.nodes)
        if self.sampler in ("greedy", "rank"):
            rank = RankBasedSampler(transitions, [seed], alpha=self.alpha)
            rank.add(everything)
            return choice._replace(
                sums=rank.sums,
                keys=rank.keys,
                slots=rank.slots,
                ranks=rank.ranks,
                sizes=rank.sizes,
                written=rank.written,
                largest=rank.largest_priority,
            )
        return choice

    def run(self, updates: int = FOREVER, losses: NDArray[np.float64] | None = None) -> int:
        """Replay up to `updates` more transitions, fewer if learning converges.

        Args:
            updates: at most this many.
            losses: an array that receives the global loss after each of these updates.

        Returns the number of updates done.
        """
        losses = np.zeros(0) if losses is None else losses
        done, last = replay_until_converged(
            self.theta, self._problem, self._choice, updates, self.replayed, losses
        )
        self.updates += done
        self.last = int(last) if done else self.last
        return done
