"""What environments need to know about a `DQNConfig`, and limits that they share."""

from typing import Protocol

SMALLEST_FRAME = 17  # height and width of pictures, for which the convolutions have an output

# Steps of an evaluated episode where nothing limits it: half an hour of an Atari game.
LONGEST_EPISODE = 27_000


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
