"""cpprb: trees in C++."""

from importlib import import_module

import numpy as np

from per_tutorial.conformance.adapter import OBSERVATION_SHAPE, Adapter, Minibatch

# Our name of a field → cpprb's
NAMES = {
    **{"observations": "obs", "weights": "weights", "keys": "indexes", "actions": "act"},
    **{"rewards": "rew", "next_observations": "next_obs", "terminated": "done"},
}


class Cpprb(Adapter):
    """`PrioritizedReplayBuffer` as it comes; `check_for_update` skips late updates and is off."""

    name = "cpprb"
    packages = ("cpprb",)
    epsilon = 1e-4
    seeded = False
    n_step = True

    def make(self, settings):
        fields = {
            "obs": {"shape": OBSERVATION_SHAPE, "dtype": np.float32},
            "act": {"dtype": np.int64},
            "rew": {"dtype": np.float32},
            "next_obs": {"shape": OBSERVATION_SHAPE, "dtype": np.float32},
            "done": {"dtype": np.bool_},
        }
        several = {"size": settings.n_step, "gamma": settings.discount, "rew": "rew"}
        return import_module("cpprb").PrioritizedReplayBuffer(
            settings.capacity,
            fields,
            alpha=settings.alpha,
            eps=self.epsilon,
            Nstep={**several, "next": "next_obs"} if settings.n_step > 1 else None,
        )

    def add(self, buffer, transition):
        """Store one step, and say where episodes end."""
        observation, action, reward, after, terminated, truncated = transition
        buffer.add(obs=observation, act=action, rew=reward, next_obs=after, done=terminated)
        if terminated or truncated:
            buffer.on_episode_end()

    def sample(self, buffer, batch_size, beta):
        """Scalars come as columns, weights do not."""
        batch = buffer.sample(batch_size, beta)
        return Minibatch(**{ours: np.squeeze(batch[name]) for ours, name in NAMES.items()})

    def update(self, buffer, keys, td_errors):
        buffer.update_priorities(keys, np.abs(td_errors))
