"""Where the agents act. What differs between kinds of worlds is said here and nowhere else.

A new kind is one module beside this one, which does what `WorldModule` says, and one entry in `WORLDS`.
The modules are imported when their environments are asked for: settings need only what is said here.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from per_tutorial.dqn.worlds.environments import Environments


class WorldSettings(Protocol):
    """What worlds ask of a `DQNConfig`."""

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


class WorldModule(Protocol):
    """What a module of this folder does for its kind of worlds."""

    def training_environments(self, config: WorldSettings, seeds: Sequence[int]) -> "Environments":
        """Environments to train in, ``config.environments`` for each seed, those of the first first."""

    def evaluation_environments(
        self, config: WorldSettings, seeds: Sequence[int]
    ) -> "Environments":
        """Environments to evaluate in, one for each seed; rewards are what the world itself pays."""

    def check_id(self, env: str) -> None:
        """ValueError unless making ``env`` runs only what is installed, registered and known by name."""


class World(NamedTuple):
    """A kind of worlds.

    Attributes:
        module: imports and returns the `WorldModule`.
        storage: the kind that keeps its transitions, a name in `per_tutorial.replay.registry.STORAGES`.
        observation_dtype: of the observations that the storage keeps, if it can keep several kinds.
        frames: whether observations are images, bytes or bits that a network needs convolutions for.
        frame_size: their height and width; None: what the settings say.
        side_by_side: whether several environments may feed a run.
        evaluation_epsilon: share of random actions in an evaluation, unless another one is asked for.
    """

    module: Callable[[], WorldModule]
    storage: str = "transitions"
    observation_dtype: str = "float32"
    frames: bool = False
    frame_size: int | None = None
    side_by_side: bool = False
    evaluation_epsilon: float = 0.0

    def network_inputs(self, observation_shape: Sequence[int]) -> int | tuple[int, ...]:
        """What a `QNetwork` is told of observations: the shape of frames, or how many numbers they are."""
        return tuple(observation_shape) if self.frames else math.prod(observation_shape)


def _gymnasium() -> WorldModule:
    from per_tutorial.dqn.worlds import environments

    return environments


def _atari() -> WorldModule:
    from per_tutorial.dqn.worlds import atari

    return atari


def _minatar() -> WorldModule:
    from per_tutorial.dqn.worlds import minatar

    return minatar


# What the id of an environment begins with → the kind that it is of
WORLDS = {
    "": World(_gymnasium),
    # A policy may otherwise repeat itself without end, hence the random actions.
    "ALE/": World(
        _atari, storage="frames", frames=True, side_by_side=True, evaluation_epsilon=0.01
    ),
    "MinAtar/": World(_minatar, observation_dtype="bool", frames=True, frame_size=10),
}


def world_of(env: str) -> World:
    """The kind that the environment with this id is of."""
    return WORLDS[max((prefix for prefix in WORLDS if env.startswith(prefix)), key=len)]
