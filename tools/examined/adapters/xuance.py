"""XuanCe."""

import random
from importlib import import_module
from typing import Any

import numpy as np

from per_tutorial.conformance.adapter import ACTIONS, OBSERVATION_SHAPE, Adapter, Drawn, Settings
from per_tutorial.replay.contracts import Floats, Transition


class XuanCe(Adapter):
    """`PerOffPolicyBuffer` with one environment."""

    name = "xuance"
    packages = ("xuance",)

    def make(self, settings: Settings) -> Any:
        """An empty buffer; Python's global generator draws."""
        random.seed(settings.seed)
        spaces = import_module("gymnasium.spaces")
        return import_module("xuance.common.memory_tools").PerOffPolicyBuffer(
            spaces.Box(-np.inf, np.inf, OBSERVATION_SHAPE, np.float32),
            spaces.Discrete(ACTIONS),
            None,
            1,
            settings.capacity,
            settings.batch_size,
            settings.alpha,
        )

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one step of each of its environments, of which there is one."""
        observation, action, reward, after, terminated, _ = transition
        fields = (observation, action, reward, terminated, after)
        buffer.store(*(np.asarray(field)[None] for field in fields))

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """Weights and indices have an axis for environments."""
        batch = buffer.sample(beta)
        return Drawn(
            batch["obs"],
            batch["weights"].reshape(-1),
            batch["step_choices"],
            batch["actions"],
            batch["rewards"],
            batch["obs_next"],
            batch["terminals"],
        )

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """It asks for |δ|."""
        buffer.update_priorities(keys, np.abs(td_errors).reshape(np.shape(keys)))
