"""Our replay inside other libraries' agents: `per_tutorial.integrations`."""

import logging
from importlib import import_module
from typing import Any

import numpy as np

from per_tutorial.conformance.adapter import ACTIONS, OBSERVATION_SHAPE, Adapter, Drawn, Settings
from per_tutorial.replay.contracts import Floats, Transition

EPSILON = 1e-6
FIELDS = ("observation", "action", "reward", "next_observation", "terminated")  # torchrl's keys


class OurSB3(Adapter):
    """`per_tutorial.integrations.sb3.PrioritizedReplayBuffer`."""

    name = "per_tutorial in Stable-Baselines3"
    packages = ("stable-baselines3", "torch", "numba")
    epsilon = EPSILON
    n_step = True
    time_limit = 60.0

    def make(self, settings: Settings) -> Any:
        """An empty buffer for one environment."""
        ours = import_module("per_tutorial.integrations.sb3")  # first: it names the extra
        spaces = import_module("gymnasium").spaces
        buffer = ours.PrioritizedReplayBuffer(
            settings.capacity,
            spaces.Box(-np.inf, np.inf, OBSERVATION_SHAPE, np.float32),
            spaces.Discrete(ACTIONS),
            "cpu",
            n_steps=settings.n_step,
            gamma=settings.discount,
            alpha=settings.alpha,
            priority_epsilon=EPSILON,
            seed=settings.seed,
        )
        buffer.beta = settings.beta
        return buffer

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one step, as SB3 does for an environment."""
        observation, action, reward, after, terminated, truncated = map(np.asarray, transition)
        buffer.add(
            observation[None],
            after[None],
            action[None],
            reward[None],
            (terminated | truncated)[None],
            [{"TimeLimit.truncated": bool(truncated)}],
        )

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """Draw a minibatch; SB3's fields have a column each."""
        batch = buffer.sample(batch_size)
        columns = (batch.actions, batch.rewards, batch.dones)
        actions, rewards, dones = (field.numpy()[:, 0] for field in columns)
        steps: Any = 1
        if batch.discounts is not None:
            gammas = batch.discounts.numpy()[:, 0]
            steps = np.round(np.log(gammas) / np.log(buffer.gamma)).astype(int)
        return Drawn(
            batch.observations.numpy(),
            batch.weights.numpy()[:, 0],
            batch.indices,
            actions,
            rewards,
            batch.next_observations.numpy(),
            dones != 0,
            steps,
        )

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """Pass the raw TD errors."""
        buffer.update_priorities(keys, td_errors)

    def save(self, buffer: Any, path: str) -> None:
        """A pickle, SB3's own form."""
        import_module("stable_baselines3.common.save_util").save_to_pkl(path, buffer)

    def load(self, buffer: Any, path: str) -> Any:
        """Load a new buffer."""
        return import_module("stable_baselines3.common.save_util").load_from_pkl(path)


class OurTianshou(Adapter):
    """`per_tutorial.integrations.tianshou.PrioritizedReplayBuffer`."""

    name = "per_tutorial in tianshou"
    packages = ("tianshou",)
    epsilon = EPSILON
    time_limit = 60.0

    def make(self, settings: Settings) -> Any:
        """An empty buffer."""
        return import_module("per_tutorial.integrations.tianshou").PrioritizedReplayBuffer(
            settings.capacity,
            settings.alpha,
            settings.beta,
            priority_epsilon=EPSILON,
            seed=settings.seed,
        )

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one step."""
        buffer.add(tianshou_batch(transition))

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """Draw a minibatch, which includes the weights."""
        batch, indices = buffer.sample(batch_size)
        return Drawn(
            batch.obs, batch.weight, indices, batch.act, batch.rew, batch.obs_next, batch.terminated
        )

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """Pass the raw TD errors."""
        buffer.update_weight(keys, td_errors)

    def save(self, buffer: Any, path: str) -> None:
        """Write one HDF5 file."""
        buffer.save_hdf5(f"{path}.hdf5")

    def load(self, buffer: Any, path: str) -> Any:
        """Load into a new buffer."""
        return type(buffer).load_hdf5(f"{path}.hdf5")


def tianshou_batch(transition: Transition) -> Any:
    """A transition, or one for each environment, as a tianshou batch."""
    names = ("obs", "act", "rew", "obs_next", "terminated", "truncated")
    return import_module("tianshou.data").Batch(**dict(zip(names, transition, strict=True)))


class OurTorchRL(Adapter):
    """`per_tutorial.integrations.torchrl.PrioritizedSampler`."""

    name = "per_tutorial in torchrl"
    packages = ("torchrl-nightly", "torchrl", "torch")
    epsilon = EPSILON
    time_limit = 60.0

    def make(self, settings: Settings) -> Any:
        """An empty buffer of tensors."""
        logging.getLogger("torchrl").setLevel(logging.ERROR)
        ours = import_module("per_tutorial.integrations.torchrl")  # first: it names the extra
        data = import_module("torchrl.data")
        sampler = ours.PrioritizedSampler(
            settings.capacity,
            settings.alpha,
            settings.beta,
            priority_epsilon=EPSILON,
            seed=settings.seed,
        )
        return data.TensorDictReplayBuffer(
            storage=data.LazyTensorStorage(settings.capacity),
            sampler=sampler,
            batch_size=settings.batch_size,
        )

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one step."""
        fields = dict(zip(FIELDS, transition[:5], strict=True))
        buffer.add(import_module("tensordict").TensorDict(fields, []))

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """Draw a TensorDict, which includes weights and indices."""
        batch = buffer.sample()
        values = [batch[name].numpy() for name in FIELDS]
        weights = batch["priority_weight"].numpy()
        return Drawn(values[0], weights, batch["index"], *values[1:])

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        """Pass the raw TD errors."""
        buffer.update_priority(keys, import_module("torch").as_tensor(td_errors))

    def save(self, buffer: Any, path: str) -> None:
        """Write a folder."""
        buffer.dumps(path)

    def load(self, buffer: Any, path: str) -> None:
        """Read it."""
        buffer.loads(path)
