"""Environments. What differs between kinds of them is declared only here.

A new kind is one module beside this one that implements `EnvModule`, and one entry in `ENV_SPECS`.
A module is imported when its environments are made; settings need none.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from per_tutorial.dqn.environments.settings import EnvSettings
from per_tutorial.replay.storages.frames import FrameStorage
from per_tutorial.replay.storages.rows import TransitionStorage

if TYPE_CHECKING:
    from per_tutorial.dqn.environments.gymnasium_envs import Environments


class EnvModule(Protocol):
    """What a module of this folder provides for its kind of environments."""

    def training_environments(self, config: EnvSettings, seeds: Sequence[int]) -> "Environments":
        """Environments to train in: ``config.environments`` for each seed, seed by seed."""

    def evaluation_environments(self, config: EnvSettings, seeds: Sequence[int]) -> "Environments":
        """Environments to evaluate in, one for each seed, with the rewards unchanged."""

    def check_id(self, env: str) -> None:
        """Raise ValueError unless ``env`` can be made without importing an unknown module."""


class EnvSpec(NamedTuple):
    """A kind of environments.

    Attributes:
        module: imports and returns the `EnvModule`.
        storage: the class of the storage of its transitions.
        observation_dtype: dtype of stored observations, for storages that support several.
        frames: whether observations are images, of bytes or bits, which need convolutions.
        frame_size: their height and width; None: that of the settings.
        side_by_side: whether several environments may feed a run.
        evaluation_epsilon: default share of random actions in an evaluation.
    """

    module: Callable[[], EnvModule]
    storage: type = TransitionStorage
    observation_dtype: str = "float32"
    frames: bool = False
    frame_size: int | None = None
    side_by_side: bool = False
    evaluation_epsilon: float = 0.0

    def network_inputs(self, observation_shape: Sequence[int]) -> int | tuple[int, ...]:
        """The inputs of a `QNetwork`: the shape of frames, or the size of a vector."""
        return tuple(observation_shape) if self.frames else math.prod(observation_shape)


def _module(name: str) -> Callable[[], EnvModule]:
    """A function that imports a module of this folder; agents that hold it can be pickled."""
    return partial(cast(Callable[[str], EnvModule], import_module), f"{__name__}.{name}")


# Prefix of an environment's id → its kind
ENV_SPECS = {
    "": EnvSpec(_module("gymnasium_envs")),
    # Without random actions, a policy may loop forever.
    "ALE/": EnvSpec(
        _module("atari"), FrameStorage, frames=True, side_by_side=True, evaluation_epsilon=0.01
    ),
    "MinAtar/": EnvSpec(_module("minatar"), observation_dtype="bool", frames=True, frame_size=10),
}


def env_spec(env: str) -> EnvSpec:
    """The kind of the environment with this id."""
    return ENV_SPECS[max((prefix for prefix in ENV_SPECS if env.startswith(prefix)), key=len)]
