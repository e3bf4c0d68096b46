"""Environments. What differs between kinds of them is declared only here.

A new kind is one entry in `ENV_SPECS` and one module beside this one, with two functions of the
settings and of seeds that return `Environments`: `training_environments`, ``config.environments``
for each seed, and `evaluation_environments`, one for each seed, with the rewards unchanged. A
module is imported when its environments are made; settings need none.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from per_tutorial.replay.storages.frames import FrameStorage
from per_tutorial.replay.storages.rows import TransitionStorage


class EnvSpec(NamedTuple):
    """A kind of environments.

    Attributes:
        module: imports and returns the module.
        storage: the class of the storage of its transitions.
        observation_dtype: dtype of stored observations, for storages that support several.
        frames: whether observations are images, of bytes or bits, which need convolutions.
        frame_size: their height and width; None: that of the settings.
        side_by_side: whether several environments may feed a run.
        evaluation_epsilon: default share of random actions in an evaluation.
    """

    module: Callable[[], Any]
    storage: type = TransitionStorage
    observation_dtype: str = "float32"
    frames: bool = False
    frame_size: int | None = None
    side_by_side: bool = False
    evaluation_epsilon: float = 0.0

    def network_inputs(self, observation_shape: Sequence[int]) -> int | tuple[int, ...]:
        """The inputs of a `QNetwork`: the shape of frames, or the size of a vector."""
        return tuple(observation_shape) if self.frames else math.prod(observation_shape)


def _module(name: str) -> Callable[[], Any]:
    """A function that imports a module of this folder; agents that hold it can be pickled."""
    return partial(import_module, f"{__name__}.{name}")


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
