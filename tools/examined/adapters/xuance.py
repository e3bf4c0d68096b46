"""XuanCe."""

import random
from importlib import import_module

import numpy as np

from per_tutorial.conformance.adapter import ACTIONS, OBSERVATION_SHAPE, Adapter, Minibatch


class XuanCe(Adapter):
    """`PerOffPolicyBuffer` with one environment."""

    name = "xuance"
    packages = ("xuance",)

    def make(self, settings):
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

    def add(self, buffer, transition):
        """Store one step of each of its environments, of which there is one."""
        observation, action, reward, after, terminated, _ = transition
        fields = (observation, action, reward, terminated, after)
        buffer.store(*(np.asarray(field)[None] for field in fields))

    def sample(self, buffer, batch_size, beta):
        """Weights and indices have an axis for environments."""
        batch = buffer.sample(beta)
        return Minibatch(
            observations=batch["obs"],
            weights=batch["weights"].reshape(-1),
            keys=batch["step_choices"],
            actions=batch["actions"],
            rewards=batch["rewards"],
            next_observations=batch["obs_next"],
            terminated=batch["terminals"],
        )

    def update(self, buffer, keys, td_errors):
        buffer.update_priorities(keys, np.abs(td_errors).reshape(np.shape(keys)))
