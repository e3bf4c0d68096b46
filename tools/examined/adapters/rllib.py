"""RLlib: the buffers of its new and of its old API."""

import random
from importlib import import_module
from typing import Any

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Drawn, Settings
from per_tutorial.replay.contracts import Floats, Transition

BUFFERS = "ray.rllib.utils.replay_buffers"


class RLlibEpisodes(Adapter):
    """`PrioritizedEpisodeReplayBuffer`, each step an episode of its own.

    It evicts whole episodes. With episodes of one step that is what a ring of slots does.
    """

    name = "RLlib, episodes"
    packages = ("ray",)
    time_limit = 120.0

    def make(self, settings: Settings) -> Any:
        """An empty buffer. It takes no seed, but has a generator."""
        buffer = import_module(BUFFERS).PrioritizedEpisodeReplayBuffer(
            capacity=settings.capacity, batch_size_B=settings.batch_size, alpha=settings.alpha
        )
        buffer.rng = np.random.default_rng(settings.seed)
        return buffer

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store an episode of one step."""
        observation, action, reward, after, terminated, truncated = transition
        module = import_module("ray.rllib.env.single_agent_episode")
        episode = module.SingleAgentEpisode(
            observations=[observation, after],
            actions=[action],
            rewards=[reward],
            terminated=terminated,
            truncated=truncated,
            len_lookback_buffer=0,
        )
        buffer.add(episode)

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """A list of episodes; it remembers by itself what it drew last."""
        episodes = buffer.sample(batch_size, beta=beta)
        return Drawn(
            np.array([episode.get_observations(0) for episode in episodes]),
            np.array([episode.get_extra_model_outputs("weights", 0) for episode in episodes]),
            None,
            np.array([episode.get_actions(0) for episode in episodes]),
            np.array([episode.get_rewards(0) for episode in episodes]),
            np.array([episode.get_observations(1) for episode in episodes]),
            np.array([episode.is_terminated for episode in episodes]),
        )

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """It asks for |δ|, of what it drew last."""
        buffer.update_priorities(np.abs(td_errors))


class RLlibTransitions(Adapter):
    """`PrioritizedReplayBuffer` of the old API, whose users add 1e-6 to |δ|."""

    name = "RLlib, old API"
    packages = ("ray",)
    epsilon = 1e-6
    time_limit = 120.0

    def make(self, settings: Settings) -> Any:
        """An empty buffer; Python's global generator draws."""
        random.seed(settings.seed)
        return import_module(BUFFERS).PrioritizedReplayBuffer(
            capacity=settings.capacity, alpha=settings.alpha
        )

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one step."""
        observation, action, reward, after, terminated, truncated = transition
        kind = import_module("ray.rllib.policy.sample_batch").SampleBatch
        fields = {
            "obs": observation,
            "actions": action,
            "rewards": reward,
            "new_obs": after,
            "terminateds": terminated,
            "truncateds": truncated,
        }
        buffer.add(kind({name: np.asarray(value)[None] for name, value in fields.items()}))

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """A batch has its weights and indices with it."""
        batch = buffer.sample(batch_size, beta=beta)
        return Drawn(
            batch["obs"],
            batch["weights"],
            batch["batch_indexes"],
            batch["actions"],
            batch["rewards"],
            batch["new_obs"],
            batch["terminateds"],
        )

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """It asks for priorities above 0."""
        buffer.update_priorities(keys, np.abs(td_errors) + self.epsilon)
