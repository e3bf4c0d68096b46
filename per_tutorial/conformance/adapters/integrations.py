"""Our replay inside other libraries' agents: `per_tutorial.integrations`."""

import logging
from importlib import import_module
from typing import Any

import numpy as np

from per_tutorial.conformance.adapter import ACTIONS, OBSERVATION_SHAPE, Adapter, Drawn, Settings
from per_tutorial.replay.contracts import Floats, Transition

EPSILON = 1e-6
FIELDS = ("observation", "action", "reward", "next_observation", "terminated")  # torchrl's keys


def options(settings: Settings) -> dict[str, Any]:
    """The arguments of prioritised replay in all three."""
    return {"alpha": settings.alpha, "priority_epsilon": EPSILON, "seed": settings.seed}


class OurSB3(Adapter):
    """`per_tutorial.integrations.sb3.PrioritizedReplayBuffer`."""

    name = "per_tutorial in Stable-Baselines3"
    packages = ("stable-baselines3", "torch", "numba")
    epsilon = EPSILON
    n_step = True

    def make(self, settings: Settings) -> Any:
        ours = import_module("per_tutorial.integrations.sb3")  # first: it names the extra
        spaces = import_module("gymnasium").spaces
        states = spaces.Box(-np.inf, np.inf, OBSERVATION_SHAPE, np.float32)
        windows = {"n_steps": settings.n_step, "gamma": settings.discount}
        buffer = ours.PrioritizedReplayBuffer(
            settings.capacity, states, spaces.Discrete(ACTIONS), **windows, **options(settings)
        )
        buffer.beta = settings.beta
        return buffer

    def add(self, buffer: Any, transition: Transition) -> None:
        """Store one step, as SB3 does for one environment."""
        observation, action, reward, after, terminated, truncated = (
            np.asarray(field)[None] for field in transition
        )
        infos = [{"TimeLimit.truncated": bool(truncated[0])}]
        buffer.add(observation, after, action, reward, terminated | truncated, infos)

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """Most of SB3's fields have a column."""
        batch = buffer.sample(batch_size)
        columns = (batch.weights, batch.actions, batch.rewards, batch.dones)
        weights, actions, rewards, dones = (field.numpy()[:, 0] for field in columns)
        states, after = batch.observations.numpy(), batch.next_observations.numpy()
        return Drawn(states, weights, batch.indices, actions, rewards, after, dones != 0)

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        buffer.update_priorities(keys, td_errors)

    def save(self, buffer: Any, path: str) -> None:
        """A pickle, SB3's own form."""
        import_module("stable_baselines3.common.save_util").save_to_pkl(path, buffer)

    def load(self, buffer: Any, path: str) -> Any:
        """A new buffer."""
        return import_module("stable_baselines3.common.save_util").load_from_pkl(path)


class OurTianshou(Adapter):
    """`per_tutorial.integrations.tianshou.PrioritizedReplayBuffer`."""

    name = "per_tutorial in tianshou"
    packages = ("tianshou",)
    epsilon = EPSILON

    def make(self, settings: Settings) -> Any:
        ours = import_module("per_tutorial.integrations.tianshou")
        return ours.PrioritizedReplayBuffer(
            settings.capacity, beta=settings.beta, **options(settings)
        )

    def add(self, buffer: Any, transition: Transition) -> None:
        names = ("obs", "act", "rew", "obs_next", "terminated", "truncated")
        batch = import_module("tianshou.data").Batch
        buffer.add(batch(**dict(zip(names, transition, strict=True))))

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """The minibatch includes the weights."""
        batch, indices = buffer.sample(batch_size)
        return Drawn(
            batch.obs, batch.weight, indices, batch.act, batch.rew, batch.obs_next, batch.terminated
        )

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        buffer.update_weight(keys, td_errors)

    def save(self, buffer: Any, path: str) -> None:
        """One HDF5 file."""
        buffer.save_hdf5(f"{path}.hdf5")

    def load(self, buffer: Any, path: str) -> Any:
        """A new buffer."""
        return type(buffer).load_hdf5(f"{path}.hdf5")


class OurTorchRL(Adapter):
    """`per_tutorial.integrations.torchrl.PrioritizedSampler`."""

    name = "per_tutorial in torchrl"
    packages = ("torchrl-nightly", "torchrl", "torch")
    epsilon = EPSILON

    def make(self, settings: Settings) -> Any:
        logging.getLogger("torchrl").setLevel(logging.ERROR)
        ours = import_module("per_tutorial.integrations.torchrl")  # first: it names the extra
        data = import_module("torchrl.data")
        return data.TensorDictReplayBuffer(
            storage=data.LazyTensorStorage(settings.capacity),
            sampler=ours.PrioritizedSampler(
                settings.capacity, beta=settings.beta, **options(settings)
            ),
            batch_size=settings.batch_size,
        )

    def add(self, buffer: Any, transition: Transition) -> None:
        fields = dict(zip(FIELDS, transition[:5], strict=True))
        buffer.add(import_module("tensordict").TensorDict(fields, []))

    def sample(self, buffer: Any, batch_size: int, beta: float) -> Drawn:
        """The TensorDict includes weights and indices."""
        batch = buffer.sample()
        values = [batch[name].numpy() for name in FIELDS]
        weights = batch["priority_weight"].numpy()
        return Drawn(values[0], weights, batch["index"], *values[1:])

    def update(self, buffer: Any, keys: Any, td_errors: Floats) -> None:
        buffer.update_priority(keys, import_module("torch").as_tensor(td_errors))

    def save(self, buffer: Any, path: str) -> None:
        """A folder."""
        buffer.dumps(path)

    def load(self, buffer: Any, path: str) -> None:
        """Read it."""
        buffer.loads(path)
