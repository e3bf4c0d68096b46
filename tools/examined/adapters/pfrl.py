"""PFRL."""

import random
from importlib import import_module

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Minibatch

# Our name of a field → PFRL's
NAMES = {
    **{"observations": "state", "weights": "weight", "actions": "action", "rewards": "reward"},
    **{"next_observations": "next_state", "terminated": "is_state_terminal"},
}


class PFRL(Adapter):
    """`PrioritizedReplayBuffer`: without replacement; it clips |δ| to 1 unless told otherwise.

    After each minibatch it waits for its errors; the examination, which draws thousands in a row,
    turns that off (`wait_priority_after_sampling`).
    """

    name = "pfrl"
    packages = ("pfrl",)
    epsilon = 0.01
    replacement = False
    copies_added = False  # its `LazyFrames` say that the buffer's observations share their frames

    def make(self, settings):
        """An empty buffer; NumPy's global generator draws."""
        np.random.seed(settings.seed)
        random.seed(settings.seed)
        buffer = import_module("pfrl.replay_buffers").PrioritizedReplayBuffer(
            settings.capacity,
            alpha=settings.alpha,
            beta0=settings.beta,
            betasteps=None,
            eps=self.epsilon,
            error_max=None,
        )
        buffer.memory.wait_priority_after_sampling = False
        return buffer

    def add(self, buffer, transition):
        """Store one step, and say where episodes end."""
        observation, action, reward, after, terminated, truncated = transition
        buffer.append(observation, action, reward, after, None, terminated)
        if terminated or truncated:
            buffer.stop_current_episode()

    def sample(self, buffer, batch_size, beta):
        """A list of windows; it remembers by itself what it drew last."""
        steps = [window[0] for window in buffer.sample(batch_size)]
        fields = {ours: np.array([step[name] for step in steps]) for ours, name in NAMES.items()}
        return Minibatch(**fields)

    def update(self, buffer, keys, td_errors):
        """It asks for |δ|, of what it drew last."""
        buffer.update_errors(np.abs(td_errors).tolist())

    def save(self, buffer, path):
        """A pickle of its memory."""
        buffer.save(path)

    def load(self, buffer, path):
        buffer.load(path)
        buffer.memory.wait_priority_after_sampling = False
