"""Our replay inside Stable-Baselines3."""

from importlib import import_module

import numpy as np

from per_tutorial.conformance.adapter import ACTIONS, OBSERVATION_SHAPE, Adapter, Minibatch


class OurSB3(Adapter):
    """`per_tutorial.integrations.sb3.PrioritizedReplayBuffer`."""

    name = "per_tutorial in Stable-Baselines3"
    packages = ("stable-baselines3", "torch", "numba")
    epsilon = 1e-6
    n_step = True

    def make(self, settings):
        ours = import_module("per_tutorial.integrations.sb3")  # first: it names the extra
        spaces = import_module("gymnasium").spaces
        states = spaces.Box(-np.inf, np.inf, OBSERVATION_SHAPE, np.float32)
        options = {
            **{"n_steps": settings.n_step, "gamma": settings.discount},
            **{"alpha": settings.alpha, "priority_epsilon": self.epsilon, "seed": settings.seed},
        }
        buffer = ours.PrioritizedReplayBuffer(
            settings.capacity, states, spaces.Discrete(ACTIONS), **options
        )
        buffer.beta = settings.beta
        return buffer

    def add(self, buffer, transition):
        """Store one step, as SB3 does for one environment."""
        observation, action, reward, after, terminated, truncated = (
            np.asarray(field)[None] for field in transition
        )
        infos = [{"TimeLimit.truncated": bool(truncated[0])}]
        buffer.add(observation, after, action, reward, terminated | truncated, infos)

    def sample(self, buffer, batch_size, beta):
        """All of SB3's fields but the observations are columns."""
        batch = buffer.sample(batch_size)
        return Minibatch(
            observations=batch.observations,
            weights=batch.weights,
            keys=batch.indices,
            actions=batch.actions,
            rewards=batch.rewards,
            next_observations=batch.next_observations,
            terminated=batch.dones,
        )

    def update(self, buffer, keys, td_errors):
        buffer.update_priorities(keys, td_errors)
