"""The Blind Cliffwalk: where prioritised replay gains most (Schaul et al. 2016, 3.1 and B.1).

A chain of n states with two actions. The right action, which alternates from state to state, leads
to the next state; the other one ends the episode. Only the right action in the last state is
rewarded. The replay memory holds all 2^n action sequences, each until its episode ends:
2^(n+1) − 2 transitions, exactly one of them rewarded (notebook 00). `learner` replays them.
"""

from typing import Any, NamedTuple, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import whole_number

State = TypeVar("State", int, NDArray[np.integer])


def right_action(state: State) -> State:
    """The right action: 0 in even states, 1 in odd ones."""
    return state % 2


def true_values(n: int) -> NDArray[np.float64]:
    """Optimal Q (n, 2): γ^(n−1−s) for the right action in state s, 0 for the wrong one."""
    values, states = np.zeros((n, 2)), np.arange(n)
    values[states, right_action(states)] = (1 - 1 / n) ** (n - 1 - states)
    return values


class Memory(NamedTuple):
    """Transitions, one per row."""

    states: NDArray[np.int8]
    actions: NDArray[np.int8]
    rewards: NDArray[np.float64]
    next_states: NDArray[np.int8]  # −1 where the episode ended


def make_memory(n: int, rng: np.random.Generator, noise: float = 0.0) -> Memory:
    """All sequences of n actions, each until its episode ends; the transitions in random order.

    A sequence reaches state s if its first s actions are right. Then 2^(n−1−s) sequences go on with
    each of the two actions, so the memory holds that many copies of each transition.

    Args:
        n: number of states.
        rng: a NumPy generator, for the order and the noise.
        noise: standard deviation of the noise that is added to each stored reward.
    """
    copies = 2 ** np.arange(n - 1, -1, -1)
    states = np.repeat(np.arange(n), 2 * copies)
    actions = np.concatenate([np.repeat([0, 1], count) for count in copies])
    leads_on = actions == right_action(states)
    last = states == n - 1
    order = rng.permutation(len(states))
    rewards = (leads_on & last) + noise * rng.standard_normal(len(states))
    next_states = np.where(leads_on & ~last, states + 1, -1)
    # Small integers, so that more of a memory that is read in random order fits the cache.
    return Memory(
        states[order].astype(np.int8),
        actions[order].astype(np.int8),
        rewards[order],
        next_states[order].astype(np.int8),
    )


class BlindCliffwalk(gym.Env[NDArray[np.float32], np.int64]):
    """The walk as a Gymnasium environment, `per_tutorial/BlindCliffwalk-v0`, for ordinary agents.

    The observation is the state as a one-hot vector, float32 (n,). Importing this module registers
    the id; ``gym.make("per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0")`` imports it first.

    Args:
        n: number of states.
        render_mode: None, or "ansi" for a line of text.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(self, n: int = 8, render_mode: str | None = None) -> None:
        self.n = whole_number("n", n)
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(0.0, 1.0, (self.n,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.state = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.state = 0
        return self._observation(), {}

    def step(
        self, action: int | np.int64
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        right = action == right_action(self.state)
        arrived = right and self.state == self.n - 1
        if right and not arrived:
            self.state += 1
        return self._observation(), float(arrived), not right or arrived, False, {}

    def render(self) -> str:
        return "".join("●" if state == self.state else "○" for state in range(self.n))

    def _observation(self) -> NDArray[np.float32]:
        return np.eye(self.n, dtype=np.float32)[self.state]


gym.register("per_tutorial/BlindCliffwalk-v0", entry_point=f"{__name__}:BlindCliffwalk")
