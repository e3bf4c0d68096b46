"""Acting: an actor's environments, the n-step windows of what happens there, and their first priorities.

The actor computes the TD errors of its own transitions (Horgan et al. 2018, section 3): the learner will
see most of them late or never, and giving them the largest priority would let the newest ones, thousands
in each second, crowd out all others.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import epsilon_greedy
from per_tutorial.dqn.worlds import world_of
from per_tutorial.replay.contracts import Batch
from per_tutorial.replay.random_streams import RandomStreams

Parameters = dict[str, NDArray]


class Windows(NamedTuple):
    """n-step transitions with their TD errors; (n, ...) each. Of the rewards, the discounted sums."""

    observations: NDArray
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    next_observations: NDArray  # those at the ends of the windows
    terminated: NDArray[np.bool_]
    steps: NDArray[np.int64]  # k: the value of the next observation is discounted by γ^k
    td_errors: NDArray[np.float64]


class _Window:
    """A transition whose window is still open."""

    def __init__(self, observation: NDArray, action: int) -> None:
        self.observation, self.action = observation, action
        self.reward, self.steps = 0.0, 0

    def extend(self, reward: float, discount: float) -> None:
        self.reward += discount**self.steps * reward
        self.steps += 1


class Acting:
    """What one actor does; it knows nothing of the cluster.

    Args:
        config: a `DQNConfig`; its schedule of ε is not used.
        epsilons: (environments,) the share of random actions in each.
        seeds: ints, one environment each.
    """

    def __init__(self, config: DQNConfig, epsilons: NDArray, seeds: Sequence[int]) -> None:
        self.config = config.replace(device="cpu", compiled=False, environments=1)
        self.environments = world_of(config.env).module().training_environments(self.config, seeds)
        shape, actions = self.environments.observation_shape, self.environments.actions
        self.agent = DQNLearner(self.config, shape, actions, [seeds[0]])
        self._epsilons: Any = np.asarray(epsilons)
        self._exploration = RandomStreams([seeds[0]], "exploration")
        self._open: list[list[_Window]] = [[] for _ in seeds]

    def use(self, parameters: Parameters) -> None:
        """Act with these from now on; the TD errors are those of one network, too."""
        import torch

        tensors = {name: torch.from_numpy(np.array(array)) for name, array in parameters.items()}
        for network in (self.agent.online, self.agent.target):
            network.load_state_dict(tensors)

    def act(self, steps: int) -> tuple[Windows | None, list[tuple[int, float, int]]]:
        """Make steps, of all environments together.

        Returns:
            The windows that were closed, None if there are none, and the episodes that ended, a list of
            (environment steps of this actor since the call, return, length).
        """
        closed: list[tuple[_Window, NDArray, bool]] = []
        episodes: list[tuple[int, float, int]] = []
        count = len(self._open)
        for made in range(count, steps + count, count):
            observation = self.environments.observation
            actions = epsilon_greedy(self.agent, observation, self._epsilons, self._exploration)
            step = self.environments.step(actions)
            reward = step.reward
            if self.config.terminal_reward is not None:
                reward = np.where(step.terminated, self.config.terminal_reward, reward)
            for row in np.flatnonzero(step.valid).tolist():
                terminated = bool(step.terminated[row])
                self._open[row].append(_Window(observation[row].copy(), int(actions[row])))
                for window in self._open[row]:
                    window.extend(float(reward[row]), self.config.discount)
                over = terminated or bool(step.truncated[row])
                whole = self._open[row][0].steps == self.config.n_step
                for _ in range(len(self._open[row]) if over else int(whole)):
                    window = self._open[row].pop(0)
                    closed.append((window, step.next_observation[row].copy(), terminated))
            episodes += [(made, value, length) for _, value, length in self.environments.finished]
        return (self._rated(closed) if closed else None), episodes

    def _rated(self, closed: list[tuple[_Window, NDArray, bool]]) -> Windows:
        """The windows as arrays, with their TD errors."""
        windows = Windows(
            np.array([window.observation for window, _, _ in closed]),
            np.array([window.action for window, _, _ in closed]),
            np.array([window.reward for window, _, _ in closed], dtype=np.float32),
            np.array([after for _, after, _ in closed]),
            np.array([terminated for _, _, terminated in closed]),
            np.array([window.steps for window, _, _ in closed]),
            np.empty(0),
        )
        return windows._replace(td_errors=self.agent.td_errors(as_batch(windows))[0])


def as_batch(windows: Windows) -> Batch:
    """Windows as a minibatch of one run."""
    count = len(windows.actions)
    return Batch(
        windows.observations[None],
        windows.actions[None],
        windows.rewards[None],
        windows.next_observations[None],
        windows.terminated[None],
        weights=np.ones((1, count)),
        indices=np.zeros((1, count), dtype=np.int64),
        steps=windows.steps[None],
    )
