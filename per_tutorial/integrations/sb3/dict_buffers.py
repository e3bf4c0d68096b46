"""Prioritised replay of Dict observations, as a replay buffer of Stable-Baselines3."""

from typing import Any

from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer

from per_tutorial.integrations.sb3.buffers import PrioritizedReplayBuffer


class PrioritizedDictReplayBuffer(PrioritizedReplayBuffer, DictReplayBuffer):  # type: ignore[misc]
    """`PrioritizedReplayBuffer` for Dict observations, whose fields are dicts of arrays.

    Raises:
        ValueError: the observation space is not a Dict.

    Example:
        >>> import numpy as np
        >>> from gymnasium.spaces import Box, Dict, Discrete
        >>> from per_tutorial.integrations.sb3 import PrioritizedDictReplayBuffer
        >>> space = Dict({"place": Box(-1, 1, (2,)), "speed": Box(-1, 1, (1,))})
        >>> buffer = PrioritizedDictReplayBuffer(100, space, Discrete(2), "cpu", seed=0)
        >>> now = {"place": np.zeros((1, 2)), "speed": np.ones((1, 1))}
        >>> buffer.add(now, now, np.array([[1]]), np.array([0.5]), np.array([False]), [{}])
        >>> buffer.sample(4).observations["place"].shape
        torch.Size([4, 2])
    """

    def _check_space(self, observation_space: spaces.Space) -> None:
        if not isinstance(observation_space, spaces.Dict):
            raise ValueError(f"observation_space: must be a Dict, got {observation_space}")

    def _empty_observations(self) -> Any:
        dtypes = {key: space.dtype for key, space in self.observation_space.spaces.items()}
        return {key: self._zeros(self.obs_shape[key], dtypes[key]) for key in dtypes}

    def _stores(self) -> list[Any]:
        return [*self.observations.values(), *self.next_observations.values()]

    def _checked(self, name: str, values: Any) -> Any:
        missing = sorted(set(self.obs_shape) - set(values))
        if missing:
            raise ValueError(
                f"{name}: must have the keys {sorted(self.obs_shape)}, lacks {missing}"
            )
        return {
            key: self._observation(f"{name}[{key!r}]", values[key], space, self.obs_shape[key])
            for key, space in self.observation_space.spaces.items()
        }

    def _write(self, row: int, observations: Any, next_observations: Any) -> None:
        for key in self.obs_shape:
            self.observations[key][row] = observations[key]
            self.next_observations[key][row] = next_observations[key]
