"""What environments need to know about a `DQNConfig`."""

from typing import Protocol


class EnvSettings(Protocol):
    """The settings of a `DQNConfig` that environments read."""

    @property
    def env(self) -> str: ...
    @property
    def max_episode_steps(self) -> int | None: ...
    @property
    def environments(self) -> int: ...
    @property
    def vectorization(self) -> str: ...
    @property
    def frame_size(self) -> int: ...
    @property
    def sticky_actions(self) -> float: ...
