"""The contestants of the replay benchmark: every buffer behind the same few methods.

Each takes a transition as an environment gives it (NumPy arrays and numbers) and raw TD errors, and
returns what its own users get: the arrays of the transitions and their importance-sampling weights.
What a library needs from its user to get there (a `Batch`, a `TensorDict`, |δ|) is part of its
time.
Observations and next observations are both stored whole: the tricks that store a frame once differ
too much to be compared.
"""

import logging
from importlib.util import find_spec

import numpy as np

ALPHA, BETA, EPSILON = 0.6, 0.4, 1e-6
TRANSITION = ("observation", "action", "reward", "next_observation", "terminated")


def transitions(numbers, shape, dtype):
    """Five columns that follow from the number of the transition, and so can be checked."""
    numbers = np.asarray(numbers)
    tail = (slice(None), *(None,) * len(shape))
    first = np.broadcast_to((numbers % 251)[tail], (len(numbers), *shape)).astype(dtype)
    return first, numbers % 2, numbers.astype(np.float32), first + dtype(1), numbers % 7 == 0


class Contestant:
    """
    Args:
        capacity: transitions.
        shape, dtype: of an observation.
        prioritized: False for uniform replay.

    Methods of every contestant: `add` takes the fields of a transition, `extend` columns of them;
    `sample` returns a batch as the library does, `indices` finds in it what `update` wants back,
    and `unpack` turns it into NumPy arrays (the five columns and the weights) for the tests.
    """

    package = None  # as it is imported
    distribution = None  # as it is installed
    kinds = ("prioritized", "uniform")

    @classmethod
    def installed(cls):
        return find_spec(cls.package) is not None


class Limit(Contestant):
    """No buffer at all: rows taken at random indices drawn beforehand, and an array written to.

    What no buffer of such rows can beat: its own gather and the write of one number per draw.
    """

    name = "bare gather and write"
    package = distribution = "numpy"

    def __init__(self, capacity, shape, dtype, prioritized):
        row = [
            ("observation", dtype, shape),
            ("action", np.int64),
            ("reward", np.float32),
            ("next_observation", dtype, shape),
            ("terminated", np.bool_),
        ]
        self.rows = np.zeros(capacity, dtype=np.dtype(row, align=True))
        self.priorities = np.zeros(capacity)
        # More than any cache holds, and drawn again only after all have been used.
        self.pool = np.random.default_rng(0).integers(capacity, size=2**20)
        self.drawn = None
        self.next_draw = self.next_row = 0

    def add(self, *fields):
        self.rows[self.next_row] = fields
        self.next_row = (self.next_row + 1) % len(self.rows)

    def extend(self, *columns):
        slots = (self.next_row + np.arange(len(columns[0]))) % len(self.rows)
        for name, column in zip(self.rows.dtype.names, columns, strict=True):
            self.rows[name][slots] = column
        self.next_row = (self.next_row + len(slots)) % len(self.rows)

    def sample(self, batch_size):
        if self.next_draw + batch_size > len(self.pool):
            self.next_draw = 0
        self.drawn = self.pool[self.next_draw : self.next_draw + batch_size]
        self.next_draw += batch_size
        return self.rows.take(self.drawn)

    def indices(self, batch):
        return self.drawn

    def update(self, indices, td_errors):
        self.priorities[indices] = td_errors

    def unpack(self, batch):
        return *(batch[name] for name in TRANSITION), np.ones(len(batch))


class Ours(Contestant):
    name = package = distribution = "per_tutorial"

    def __init__(self, capacity, shape, dtype, prioritized):
        from per_tutorial import PrioritizedReplayBuffer, ReplayBuffer

        options = {"observation_dtype": dtype, "seed": 0}
        if prioritized:
            options |= {"alpha": ALPHA, "priority_epsilon": EPSILON}
        kind = PrioritizedReplayBuffer if prioritized else ReplayBuffer
        self.buffer = kind(capacity, shape, **options)
        self.add, self.extend = self.buffer.add, self.buffer.extend

    def sample(self, batch_size):
        return self.buffer.sample(batch_size, BETA)

    def indices(self, batch):
        return batch.indices

    def update(self, indices, td_errors):
        self.buffer.update_priorities(indices, td_errors)

    def unpack(self, batch):
        return batch[:6]


class Cpprb(Contestant):
    name = package = distribution = "cpprb"

    def __init__(self, capacity, shape, dtype, prioritized):
        import cpprb

        fields = {
            "obs": {"shape": shape, "dtype": dtype},
            "act": {"dtype": np.int64},
            "rew": {"dtype": np.float32},
            "next_obs": {"shape": shape, "dtype": dtype},
            "done": {"dtype": np.bool_},
        }
        if prioritized:
            self.buffer = cpprb.PrioritizedReplayBuffer(capacity, fields, alpha=ALPHA, eps=EPSILON)
            self.options = {"beta": BETA}
        else:
            self.buffer = cpprb.ReplayBuffer(capacity, fields)
            self.options = {}

    def add(self, observation, action, reward, next_observation, terminated):
        self.buffer.add(
            obs=observation, act=action, rew=reward, next_obs=next_observation, done=terminated
        )

    extend = add  # tells one from many by the shapes

    def sample(self, batch_size):
        return self.buffer.sample(batch_size, **self.options)

    def indices(self, batch):
        return batch["indexes"]

    def update(self, indices, td_errors):
        self.buffer.update_priorities(indices, np.abs(td_errors))

    def unpack(self, batch):
        scalars = {key: batch[key].reshape(-1) for key in ("act", "rew", "done")}
        weights = batch.get("weights", np.ones(len(batch["obs"])))
        return (
            batch["obs"],
            scalars["act"],
            scalars["rew"],
            batch["next_obs"],
            scalars["done"],
            weights,
        )


class Tianshou(Contestant):
    name = package = distribution = "tianshou"

    def __init__(self, capacity, shape, dtype, prioritized):
        from tianshou.data import Batch, PrioritizedReplayBuffer, ReplayBuffer

        self.Batch, self.ReplayBuffer = Batch, ReplayBuffer
        if prioritized:
            self.buffer = PrioritizedReplayBuffer(capacity, alpha=ALPHA, beta=BETA)
        else:
            self.buffer = ReplayBuffer(capacity)

    def add(self, observation, action, reward, next_observation, terminated):
        self.buffer.add(
            self.Batch(
                obs=observation,
                act=action,
                rew=reward,
                terminated=terminated,
                truncated=False,
                obs_next=next_observation,
            )
        )

    def extend(self, observations, actions, rewards, next_observations, terminated):
        # The one way to add many at once: to move them over from another buffer.
        self.buffer.update(
            self.ReplayBuffer.from_data(
                obs=observations,
                act=actions,
                rew=rewards,
                terminated=terminated,
                truncated=np.zeros_like(terminated),
                done=terminated,
                obs_next=next_observations,
            )
        )

    def sample(self, batch_size):
        return self.buffer.sample(batch_size)

    def indices(self, batch):
        return batch[1]

    def update(self, indices, td_errors):
        self.buffer.update_weight(indices, td_errors)

    def unpack(self, batch):
        batch, indices = batch
        weights = getattr(batch, "weight", np.ones(len(indices)))
        return batch.obs, batch.act, batch.rew, batch.obs_next, batch.terminated, weights


class StableBaselines3(Contestant):
    """Uniform only. Its `extend` is a loop over `add`; it returns torch tensors."""

    name = "Stable-Baselines3"
    package = "stable_baselines3"
    distribution = "stable-baselines3"
    kinds = ("uniform",)

    def __init__(self, capacity, shape, dtype, prioritized):
        from gymnasium.spaces import Box, Discrete
        from stable_baselines3.common.buffers import ReplayBuffer

        low, high = (0, 255) if dtype == np.uint8 else (-np.inf, np.inf)
        space = Box(low, high, shape, dtype)
        self.buffer = ReplayBuffer(capacity, space, Discrete(2), device="cpu")

    def add(self, observation, action, reward, next_observation, terminated):
        action, reward, terminated = np.array([action]), np.array([reward]), np.array([terminated])
        self.buffer.add(observation, next_observation, action, reward, terminated, [{}])

    def extend(self, *columns):
        for fields in zip(*columns, strict=True):
            self.add(*fields)

    def sample(self, batch_size):
        return self.buffer.sample(batch_size)

    def unpack(self, batch):
        observations, actions, next_observations, dones, rewards = map(np.asarray, batch[:5])
        scalars = (each.reshape(-1) for each in (actions, rewards, dones.astype(bool)))
        action, reward, terminated = scalars
        return observations, action, reward, next_observations, terminated, np.ones(len(action))


class TorchRL(Contestant):
    """Returns a `TensorDict`, and is given TD errors as the tensor that its users have."""

    name = "torchrl"
    package = "torchrl"
    distribution = "torchrl-nightly"

    def __init__(self, capacity, shape, dtype, prioritized):
        import torch
        from tensordict import TensorDict
        from torchrl.data import (
            LazyTensorStorage,
            TensorDictPrioritizedReplayBuffer,
            TensorDictReplayBuffer,
        )

        logging.getLogger("torchrl").setLevel(logging.WARNING)
        self.TensorDict, self.as_tensor = TensorDict, torch.as_tensor
        storage = LazyTensorStorage(capacity)
        if prioritized:
            self.buffer = TensorDictPrioritizedReplayBuffer(
                alpha=ALPHA, beta=BETA, eps=EPSILON, storage=storage
            )
        else:
            self.buffer = TensorDictReplayBuffer(storage=storage)

    def add(self, *fields):
        self.buffer.add(self.TensorDict(dict(zip(TRANSITION, fields, strict=True)), []))

    def extend(self, *columns):
        size = [len(columns[0])]
        self.buffer.extend(self.TensorDict(dict(zip(TRANSITION, columns, strict=True)), size))

    def sample(self, batch_size):
        return self.buffer.sample(batch_size)

    def indices(self, batch):
        return batch["index"]

    def update(self, indices, td_errors):
        self.buffer.update_priority(indices, self.as_tensor(td_errors).abs())

    def unpack(self, batch):
        weights = batch.get("priority_weight", None)
        weights = np.ones(len(batch)) if weights is None else weights.numpy()
        return *(batch[name].numpy() for name in TRANSITION), weights


CONTESTANTS = (Ours, Limit, Cpprb, Tianshou, StableBaselines3, TorchRL)


def filled(contestant, capacity, shape, dtype, prioritized, *, chunk=2**17):
    """A full buffer; every transition has a TD error, drawn from a normal distribution."""
    buffer = contestant(capacity, shape, dtype, prioritized)
    chunk = min(chunk, 2**27 // (np.dtype(dtype).itemsize * int(np.prod(shape))))
    random = np.random.default_rng(0)
    for start in range(0, capacity, chunk):
        numbers = np.arange(start, min(start + chunk, capacity))
        buffer.extend(*transitions(numbers, shape, dtype))
        if prioritized:
            buffer.update(numbers, random.standard_normal(len(numbers), dtype=np.float32))
    return buffer
