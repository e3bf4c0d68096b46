"""PFRL."""

import random
from importlib import import_module
from typing import Any

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Drawn, Settings
from per_tutorial.replay.contracts import Floats, Transition


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

    def make(self, settings: Settings) -> Any:
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

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one step, and say where episodes end."""
        observation, action, reward, after, terminated, truncated = transition
        buffer.append(observation, action, reward, after, None, terminated)
        if terminated or truncated:
            buffer.stop_current_episode()

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """A list of windows; it remembers by itself what it drew last."""
        steps = [window[0] for window in buffer.sample(batch_size)]
        return Drawn(
            np.array([step["state"] for step in steps]),
            np.array([step["weight"] for step in steps]),
            None,
            np.array([step["action"] for step in steps]),
            np.array([step["reward"] for step in steps]),
            np.array([step["next_state"] for step in steps]),
            np.array([step["is_state_terminal"] for step in steps]),
        )

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """It asks for |δ|, of what it drew last."""
        buffer.update_errors(np.abs(td_errors).tolist())

    def save(self, buffer: Any, path: str) -> None:
        """A pickle of its memory."""
        buffer.save(path)

    def load(self, buffer: Any, path: str) -> None:
        """Read it."""
        buffer.load(path)
        buffer.memory.wait_priority_after_sampling = False
