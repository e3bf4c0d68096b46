"""Kinds of environments. What differs between them is declared only here.

A new kind is one entry in `ENV_SPECS` and one module in `environments`, with three functions of a
`DQNConfig`: `training_environments(config, seeds)` and `evaluation_environments(config, seeds)`
return `Environments`, ``config.environments`` for each seed, and one for each seed with the rewards
unchanged; `film_environment(config)` returns one that renders pictures.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from per_tutorial.replay.contracts import Storage
from per_tutorial.replay.storages.frames import FrameStorage
from per_tutorial.replay.storages.rows import TransitionStorage

SMALLEST_FRAME = 17  # height and width of pictures, for which the convolutions have an output

# Steps of an evaluated episode where nothing limits it: half an hour of an Atari game.
LONGEST_EPISODE = 27_000


class EnvSpec(NamedTuple):
    """A kind of environments.

    Attributes:
        name: of the module in `environments`, which is imported when environments are made.
        storage: makes the storage of its transitions, such as `TransitionStorage`.
        frames: whether observations are images, of bytes or bits, which need convolutions.
        frame_size: their height and width; None: that of the settings.
        side_by_side: whether several environments may feed a run.
        evaluation_epsilon: default share of random actions in an evaluation.
    """

    name: str
    storage: Callable[..., Storage] = TransitionStorage
    frames: bool = False
    frame_size: int | None = None
    side_by_side: bool = False
    evaluation_epsilon: float = 0.0

    @property
    def module(self) -> ModuleType:
        """The module with the three functions of this kind."""
        return import_module(f"per_tutorial.dqn.environments.{self.name}")

    def network_inputs(self, observation_shape: Sequence[int]) -> int | tuple[int, ...]:
        """The inputs of a `QNetwork`: the shape of frames, or the size of a vector."""
        return tuple(observation_shape) if self.frames else math.prod(observation_shape)


# Prefix of an environment's id → its kind
ENV_SPECS = {
    "": EnvSpec("gymnasium_envs"),
    # Without random actions, a policy may loop forever.
    "ALE/": EnvSpec("atari", FrameStorage, frames=True, side_by_side=True, evaluation_epsilon=0.01),
    "MinAtar/": EnvSpec(
        "minatar",
        partial(TransitionStorage, observation_dtype="bool"),
        frames=True,
        frame_size=10,
    ),
}


def env_spec(env: str) -> EnvSpec:
    """The kind of the environment with this id."""
    return ENV_SPECS[max((prefix for prefix in ENV_SPECS if env.startswith(prefix)), key=len)]
