"""Acting: an actor's environments, its n-step transitions ("windows"), and their first priorities.

The actor computes the TD errors of its own transitions (Horgan et al. 2018, section 3): the learner
will see most of them late or never, and with the largest priority, the newest ones, thousands in
each second, would crowd out all others.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.distributed.n_step_batches import NStepBatch, Stacks, Vectors
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.environments import env_spec
from per_tutorial.dqn.environments.gymnasium_envs import Step
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import epsilon_greedy
from per_tutorial.replay.contracts import Batch
from per_tutorial.replay.random_streams import RandomStreams

Parameters = dict[str, NDArray]


class _Window:
    """An n-step transition that is still growing."""

    def __init__(self, observation: Any, action: int) -> None:
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
        seeds: ints, one for each environment.
    """

    def __init__(self, config: DQNConfig, epsilons: NDArray, seeds: Sequence[int]) -> None:
        self.config = config.replace(device="cpu", compiled=False, environments=1)
        spec = env_spec(config.env)
        self.environments = spec.module().training_environments(self.config, seeds)
        shape, actions = self.environments.observation_shape, self.environments.actions
        self.agent = DQNLearner(self.config, shape, actions, [seeds[0]])
        self._epsilons: Any = np.asarray(epsilons)
        self._exploration = RandomStreams([seeds[0]], "exploration")
        self._open: list[list[_Window]] = [[] for _ in seeds]
        self._kind: Any = Stacks if spec.storage == "frames" else Vectors
        self._seen = [self._kind.begin(one) for one in self.environments.observation]

    def use(self, parameters: Parameters) -> None:
        """Act, and compute TD errors, with these parameters from now on."""
        import torch

        tensors = {name: torch.from_numpy(np.array(array)) for name, array in parameters.items()}
        for network in (self.agent.online, self.agent.target):
            network.load_state_dict(tensors)

    def act(self, steps: int) -> tuple[NStepBatch | None, list[tuple[int, float, int]]]:
        """Make this many environment steps in all.

        Returns:
            The windows that were closed (None if there are none), and the episodes that ended: a
            list of (environment steps of this actor since the call, return, length).
        """
        closed: list[tuple[_Window, Any, bool]] = []
        episodes: list[tuple[int, float, int]] = []
        count = len(self._open)
        for made in range(count, steps + count, count):
            observation = self.environments.observation
            actions = epsilon_greedy(self.agent, observation, self._epsilons, self._exploration)
            closed += self._completed(actions, self.environments.step(actions))
            episodes += [(made, value, length) for _, value, length in self.environments.finished]
        return (self._with_td_errors(closed) if closed else None), episodes

    def _completed(self, actions: NDArray, step: Step) -> Iterator[tuple[_Window, Any, bool]]:
        """The n-step transitions that a step completes."""
        reward = step.learned_reward(self.config.terminal_reward)
        for row, seen in enumerate(self._seen):
            over = True  # a new episode follows a step that only resets
            if step.valid[row]:
                terminated = bool(step.terminated[row])
                over = terminated or bool(step.truncated[row])
                self._seen[row] = self._kind.follow(seen, step.next_observation[row])
                running = self._open[row]
                running.append(_Window(seen, int(actions[row])))
                for window in running:
                    window.extend(float(reward[row]), self.config.discount)
                whole = running[0].steps == self.config.n_step
                for _ in range(len(running) if over else int(whole)):
                    yield running.pop(0), self._seen[row], terminated
            if over:
                self._seen[row] = self._kind.begin(self.environments.observation[row])

    def _with_td_errors(self, closed: list[tuple[_Window, Any, bool]]) -> NStepBatch:
        """The windows as arrays, with their TD errors."""
        observations, following, frames = self._kind.pack(
            [window.observation for window, _, _ in closed], [after for _, after, _ in closed]
        )
        windows = NStepBatch(
            observations,
            np.array([window.action for window, _, _ in closed]),
            np.array([window.reward for window, _, _ in closed], dtype=np.float32),
            following,
            np.array([terminated for _, _, terminated in closed]),
            np.array([window.steps for window, _, _ in closed]),
            np.empty(0),
            frames,
        )
        return windows._replace(td_errors=self.agent.td_errors(as_batch(windows))[0])


def as_batch(windows: NStepBatch) -> Batch:
    """An `NStepBatch` as a minibatch of one run."""
    count, frames = len(windows.actions), windows.frames
    observations = [windows.observations, windows.next_observations]
    if frames is not None:
        observations = [frames.take(frame_indices, axis=0) for frame_indices in observations]
    return Batch(
        observations[0][None],
        windows.actions[None],
        windows.rewards[None],
        observations[1][None],
        windows.terminated[None],
        weights=np.ones((1, count)),
        indices=np.zeros((1, count), dtype=np.int64),
        steps=windows.steps[None],
    )
