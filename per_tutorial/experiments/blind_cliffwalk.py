"""The Blind Cliffwalk: where prioritised replay gains most (Schaul et al., section 3.1, appendix B.1).

A chain of n states. In each of them one of two actions is right, alternating from state to state,
and leads on; the other one ends the episode. Only the last right action is rewarded. The replay
memory holds all 2^n sequences of actions, each until it ends: 2^(n+1) − 2 transitions, of which
exactly one is rewarded, and one of them is replayed at a time (notebook 00).
"""

from typing import NamedTuple

import gymnasium as gym
import numpy as np
from numba import njit

from per_tutorial.common.arguments import one_of, real_number, whole_number
from per_tutorial.replay.random_streams import RandomStreams, next_uniform
from per_tutorial.replay.samplers.proportional import ProportionalSampler, sample_stratified
from per_tutorial.replay.samplers.rank_based import RankBasedSampler, sample_ranks, set_keys
from per_tutorial.replay.segment_tree import set_sums

SAMPLERS = ("uniform", "greedy", "oracle", "proportional", "rank")
UNIFORM, GREEDY, ORACLE, PROPORTIONAL, RANK = range(5)
CONVERGED = 1e-3  # mean squared error of Q below which learning is done
FOREVER = 10**9  # updates


# The walk ----------------------------------------------------------------------------------------


def right_action(state):
    """The action that leads on: 0 in even states, 1 in odd ones."""
    return state % 2


def true_values(n):
    """Q of the best policy, (n, 2): γ^(n−1−s) for the right action in state s, 0 for the wrong one."""
    values, states = np.zeros((n, 2)), np.arange(n)
    values[states, right_action(states)] = (1 - 1 / n) ** (n - 1 - states)
    return values


class Memory(NamedTuple):
    """Transitions, one a row."""

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    next_states: np.ndarray  # −1 where the episode ended


def make_memory(n, rng, noise=0.0):
    """Every sequence of n actions, played until its episode ends, all in random order.

    A sequence reaches state s if its first s actions are right, and 2^(n−1−s) sequences then go on
    with either action: so many copies of each transition there are.

    Args:
        n: states.
        rng: a NumPy generator, for the order (and the noise).
        noise: standard deviation of what is added to each stored reward.
    """
    copies = 2 ** np.arange(n - 1, -1, -1)
    states = np.repeat(np.arange(n), 2 * copies)
    actions = np.concatenate([np.repeat([0, 1], count) for count in copies])
    leads_on = actions == right_action(states)
    last = states == n - 1
    order = rng.permutation(len(states))
    rewards = (leads_on & last) + noise * rng.standard_normal(len(states))
    next_states = np.where(leads_on & ~last, states + 1, -1)
    # Small integers, because a large memory is read in random order.
    states, actions, next_states = (x.astype(np.int8) for x in (states, actions, next_states))
    return Memory(states[order], actions[order], rewards[order], next_states[order])


class BlindCliffwalk(gym.Env):
    """The walk as a Gymnasium environment, `per_tutorial/BlindCliffwalk-v0`, for ordinary agents.

    The observation is the state as a one-hot vector, float32 (n,). Importing this module registers
    the name; `gym.make("per_tutorial.experiments.blind_cliffwalk:per_tutorial/BlindCliffwalk-v0")` does both.

    Args:
        n: number of states.
        render_mode: None, or "ansi" for a line of text.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(self, n=8, render_mode=None):
        self.n = whole_number("n", n)
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(0.0, 1.0, (self.n,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.state = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 0
        return self._observation(), {}

    def step(self, action):
        right = action == right_action(self.state)
        arrived = right and self.state == self.n - 1
        if right and not arrived:
            self.state += 1
        return self._observation(), float(arrived), not right or arrived, False, {}

    def render(self):
        return "".join("●" if state == self.state else "○" for state in range(self.n))

    def _observation(self):
        return np.eye(self.n, dtype=np.float32)[self.state]


gym.register("per_tutorial/BlindCliffwalk-v0", entry_point=BlindCliffwalk)


# Learning ----------------------------------------------------------------------------------------
#
# Both learners are one. The weights are `theta` (2, n + 1): Q(s, a) = theta[a, s] + bias · theta[a, n]
# where the constant feature `bias` is 1 for the linear learner and 0 for the tabular one. The step is
# η / ‖φ‖² (‖φ‖² = 1 + bias²), so that in both an update takes away the share η of the error. Without
# that division even the oracle fails to converge from 8 states on, and the paper's does converge.


@njit(cache=True)
def q_value(theta, bias, state, action):
    return theta[action, state] + bias * theta[action, -1]


@njit(cache=True)
def td_error(theta, bias, discount, memory, k):
    """δ = R + γ · max_a Q(S′, a) − Q(S, A) of transition k."""
    target = memory.rewards[k]
    state = memory.next_states[k]
    if state >= 0:
        target += discount * max(q_value(theta, bias, state, 0), q_value(theta, bias, state, 1))
    return target - q_value(theta, bias, memory.states[k], memory.actions[k])


@njit(cache=True)
def learn(theta, bias, memory, k, step):
    """θ ← θ + step · φ for transition k, where `step` is the step size times δ."""
    theta[memory.actions[k], memory.states[k]] += step
    theta[memory.actions[k], -1] += bias * step


@njit(cache=True)
def mean_squared_error(theta, bias, truth):
    """The global loss: the mean over all states and actions of (Q − true value)²."""
    total = 0.0
    for state in range(truth.shape[0]):
        for action in range(2):
            total += (q_value(theta, bias, state, action) - truth[state, action]) ** 2
    return total / truth.size


@njit(cache=True)
def oracle_choice(theta, bias, discount, step_size, memory, kinds, truth):
    """The transition whose replay leaves the least global loss: tries each, and takes it back."""
    best, least = kinds[0], np.inf
    before = theta.copy()
    for k in kinds:
        learn(theta, bias, memory, k, step_size * td_error(theta, bias, discount, memory, k))
        loss = mean_squared_error(theta, bias, truth)
        theta[:] = before
        if loss < least:
            best, least = k, loss
    return best


class Priorities(NamedTuple):
    """The arrays of the samplers; a run uses those of its own and leaves the others empty."""

    random: np.ndarray  # states of the random streams
    kinds: np.ndarray  # oracle: one transition of each kind
    nodes: np.ndarray = np.zeros(0)  # proportional: the sum tree
    sums: np.ndarray = np.zeros(0)  # rank: H(0), H(1), …
    keys: np.ndarray = np.zeros((0, 0))  # greedy and rank: the heap
    slots: np.ndarray = np.zeros((0, 0), dtype=np.int32)
    ranks: np.ndarray = np.zeros((0, 0), dtype=np.int32)
    sizes: np.ndarray = np.zeros(0, dtype=np.int64)
    written: np.ndarray = np.zeros(0, dtype=np.int64)
    largest: np.ndarray = np.zeros(0)


@njit(cache=True)
def replay(
    sampler, alpha, epsilon, priorities, memory, theta, bias, discount, step_size, truth,
    replayed, losses, updates,
):  # fmt: skip
    """Replay one transition after the other, until converged or for `updates` updates.

    Changes theta, the priorities and `replayed`, the number of times that each transition was. If
    `losses` has room, the global loss after each update is written into it. Returns the number of
    updates and the last transition.
    """
    p = priorities
    chosen, value, probability = np.zeros((1, 1), np.int64), np.zeros((1, 1)), np.zeros((1, 1))
    k = -1
    for update in range(updates):
        if mean_squared_error(theta, bias, truth) < CONVERGED:
            return update, k
        if sampler == UNIFORM:
            k = int(next_uniform(p.random, 0) * len(memory.states))
        elif sampler == GREEDY:
            k = p.slots[0, 1]
        elif sampler == ORACLE:
            k = oracle_choice(theta, bias, discount, step_size, memory, p.kinds, truth)
        elif sampler == PROPORTIONAL:
            sample_stratified(p.nodes, 1, p.random, chosen, probability)
            k = chosen[0, 0]
        else:
            sample_ranks(p.sums, p.sizes, p.random, chosen)
            k = p.slots[0, chosen[0, 0]]

        delta = td_error(theta, bias, discount, memory, k)
        learn(theta, bias, memory, k, step_size * delta)

        chosen[0, 0], value[0, 0] = k, abs(delta)
        if sampler == PROPORTIONAL:
            value[0, 0] = (abs(delta) + epsilon) ** alpha
            set_sums(p.nodes, 1, chosen, value)
        elif sampler == GREEDY or sampler == RANK:
            heap = (p.keys, p.slots, p.ranks, p.sizes)
            set_keys(*heap, p.written, p.largest, chosen, value)
        replayed[k] += 1
        if update < len(losses):
            losses[update] = mean_squared_error(theta, bias, truth)
    return updates, k


class CliffwalkLearner:
    """A learner, its memory and its sampler.

    All transitions are in the memory from the start, at the largest priority, 1. There are no
    importance-sampling weights here, and no target network.

    Args:
        n: states of the walk.
        sampler: "uniform"; "greedy", always the transition of the largest priority; "oracle", the
            one whose replay lowers the global loss most; "proportional"; or "rank".
        linear: False for a table of Q; True for one weight per state and a bias, for each action.
        alpha, priority_epsilon: of the proportional and the rank-based sampler.
        noise: standard deviation of the noise on the stored rewards.
        initial_scale: standard deviation of the initial weights.
        step_size: η, the share of its TD error that an update takes away.
        seed: an int; of the memory's order, the noise, the initial weights and the draws.

    Attributes:
        memory: a `Memory`, in the order in which `replayed` and `last` count.
        updates: transitions replayed so far.
        replayed: (2^(n+1) − 2,) how often each one was.
        last: the one that was replayed last, −1 at the start.
    """

    def __init__(
        self,
        n,
        sampler,
        *,
        linear=False,
        alpha=0.7,
        priority_epsilon=1e-6,
        noise=0.0,
        initial_scale=0.1,
        step_size=0.25,
        seed=0,
    ):
        self.n = whole_number("n", n, minimum=2)
        self.sampler = one_of("sampler", sampler, SAMPLERS)
        self.alpha = real_number("alpha", alpha, 0, 1)
        self.priority_epsilon = real_number("priority_epsilon", priority_epsilon, above=0)
        noise = real_number("noise", noise, low=0)
        initial_scale = real_number("initial_scale", initial_scale, low=0)
        self.step_size = real_number("step_size", step_size, above=0)
        self.discount = 1 - 1 / self.n
        self.bias = float(linear)
        self.truth = true_values(self.n)
        rng = np.random.default_rng(whole_number("seed", seed, minimum=0))
        self.memory = make_memory(self.n, rng, noise)
        self.theta = rng.normal(0.0, initial_scale, (2, self.n + 1))
        self.updates = 0
        self.replayed = np.zeros(len(self.memory.states), dtype=np.int64)
        self.last = -1
        self._priorities = self._make_priorities(seed)

    @property
    def q(self):
        """The learned values, (n, 2)."""
        return (self.theta[:, :-1] + self.bias * self.theta[:, -1:]).T

    @property
    def loss(self):
        """The mean squared error of `q`."""
        return mean_squared_error(self.theta, self.bias, self.truth)

    @property
    def converged(self):
        """Whether the mean squared error is below 1e-3."""
        return self.loss < CONVERGED

    def run(self, updates=FOREVER, losses=None):
        """Replay up to `updates` more transitions, fewer if learning converges.

        Args:
            updates: at most so many.
            losses: an array that the global loss after each of these updates is written to.

        Returns the number of updates done.
        """
        done, last = replay(
            SAMPLERS.index(self.sampler),
            self.alpha,
            self.priority_epsilon,
            self._priorities,
            self.memory,
            self.theta,
            self.bias,
            self.discount,
            self.step_size / (1 + self.bias**2),
            self.truth,
            self.replayed,
            np.zeros(0) if losses is None else losses,
            updates,
        )
        self.updates += done
        self.last = int(last) if done else self.last
        return done

    def _make_priorities(self, seed):
        transitions = len(self.memory.states)
        # Copies are alike, so the oracle tries one of each kind. Under noise no two are.
        rows = np.column_stack(self.memory[:3])
        _, kinds = np.unique(rows, axis=0, return_index=True)
        random = RandomStreams([seed], "replay").states
        everything = np.arange(transitions)[None]
        if self.sampler == "proportional":
            sampler = ProportionalSampler(transitions, [seed], alpha=self.alpha)
            sampler.add(everything)
            return Priorities(random, kinds, nodes=sampler.sums.nodes)
        if self.sampler in ("greedy", "rank"):
            sampler = RankBasedSampler(transitions, [seed], alpha=self.alpha)
            sampler.add(everything)
            names = ("keys", "slots", "ranks", "sizes", "written")
            heap = {name: sampler.state[name] for name in names}
            largest = sampler.largest_priority
            return Priorities(random, kinds, sums=sampler.sums, largest=largest, **heap)
        return Priorities(random, kinds)
