"""Replay buffers: one storage (which experiences to keep) and one sampler (which to replay)."""

import json
import os
from typing import NamedTuple

import numpy as np
from numba import njit

from per_tutorial.common.arguments import float_array, index_array, real_number, whole_number
from per_tutorial.common.files import atomic_write, part_of, read_arrays
from per_tutorial.replay.random_streams import seeds_for
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.samplers.rank_based import RankBasedSampler
from per_tutorial.replay.samplers.uniform import UniformSampler
from per_tutorial.replay.storages.frames import FrameStorage
from per_tutorial.replay.storages.transitions import TransitionStorage


@njit(cache=True)
def are_valid(indices, td_errors, added):
    """Whether all transitions (runs, batch) were added, and all TD errors are within ±1e100."""
    for run in range(indices.shape[0]):
        for k in range(indices.shape[1]):
            if not (0 <= indices[run, k] < added[run] and abs(td_errors[run, k]) <= 1e100):
                return False
    return True


class Batch(NamedTuple):
    """A minibatch; every field starts with the axes (batch,), or (runs, batch).

    With n-step returns (`TransitionStorage.windows`), ``rewards`` are discounted sums, and
    ``next_observations`` and ``terminated`` belong to the last of the ``steps``.
    """

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    next_observations: np.ndarray
    terminated: np.ndarray
    weights: np.ndarray  # importance-sampling weights, all 1 under uniform replay
    indices: np.ndarray  # which transitions: their numbers, counted from 0 as they were added
    steps: np.ndarray = 1  # k: the value of the next observation is discounted by γ^k


class Replay:
    """One storage and one sampler, for one run or for a stack of runs.

    Transitions are known by their number: the first one ever added to a run has index 0. A number is
    never used again, so the priority of a transition that was overwritten between being sampled and
    being updated is not written to the slot's new owner; such indices are skipped.

    Args:
        storage: where transitions are kept, such as `TransitionStorage`.
        sampler: how they are drawn, one of `per_tutorial.replay.samplers.proportional`.
        runs: None for one run, whose arrays have no axis for runs; R for a stack, whose arrays all
            start with an axis of length R.
    """

    def __init__(self, storage, sampler, runs=None):
        self.storage = storage
        self.sampler = sampler
        self.runs = runs

    def __len__(self):
        """Transitions stored now (in a stack: in the run that has the fewest)."""
        return int(self.storage.sizes.min())

    @property
    def capacity(self):
        """Transitions that each run can hold."""
        return self.storage.capacity

    def add(
        self,
        observation,
        action,
        reward,
        next_observation,
        terminated,
        truncated=False,
        *,
        valid=None,
    ):
        """Store one transition (of every run), at the largest priority seen so far.

        ``terminated`` says that no value follows. A time limit is no such end: there, ``truncated``
        is True, so that n-step returns do not run on into the next episode. In a stack, runs where
        ``valid`` (runs,) is False have nothing to store.

        Raises:
            ValueError: a field has the wrong shape, or the reward is not finite.
            TypeError: a field has the wrong type.
        """
        fields = (observation, action, reward, next_observation, terminated, truncated)
        self.sampler.add(self.storage.add(*self._stacked(fields), valid=valid))

    def extend(
        self, observations, actions, rewards, next_observations, terminated, truncated=None
    ):
        """Store n transitions that follow one another: the same as `add` for each, but faster.

        Fields are shaped (n, ...), in a stack (runs, n, ...); ``truncated`` None: nowhere. Of more
        transitions than `capacity` the last ones stay. Raises what `add` raises; nothing has been
        stored then.
        """
        if truncated is None:
            truncated = np.zeros(np.shape(terminated), dtype=bool)
        fields = (observations, actions, rewards, next_observations, terminated, truncated)
        self.sampler.add(self.storage.extend(*self._stacked(fields)))

    def sample(self, batch_size, beta=0.4):
        """Draw a minibatch (for every run): a `Batch`.

        Args:
            batch_size: at most the number of stored transitions; duplicates are possible.
            beta: exponent of the importance-sampling weights, in [0, 1].
        """
        batch_size = whole_number("batch_size", batch_size)
        beta = real_number("beta", beta, 0, 1)
        sizes = self.storage.sizes
        if batch_size > min(sizes.tolist()):
            raise ValueError(
                f"batch_size: must be at most the number of stored transitions, {len(self)}, "
                f"got {batch_size}"
            )
        slots, weights = self.sampler.sample(batch_size, sizes, beta)
        rows, steps = self.storage.windows(slots)
        fields = (
            rows["observation"],
            rows["action"],
            rows["reward"],
            rows["next_observation"],
            rows["terminated"],
            weights,
            self.storage.ids(slots),
            steps,
        )
        if self.runs is None:
            fields = [field[0] for field in fields]
        return Batch(*fields)

    @property
    def probabilities(self):
        """P(i) of every slot under prioritised replay: (capacity,) or (runs, capacity)."""
        slots = np.broadcast_to(np.arange(self.capacity), (self.storage.runs, self.capacity))
        probabilities = self.sampler.probabilities(slots)
        return probabilities[0] if self.runs is None else probabilities

    def update_priorities(self, indices, td_errors):
        """Tell the sampler the raw TD errors of replayed transitions; |δ|, ε and α are applied here.

        Args:
            indices: as in `Batch.indices`; of duplicates the last one counts.
            td_errors: the same shape, any sign, NumPy or torch.

        Raises:
            IndexError: no transition with such a number has been added.
            ValueError: a TD error is NaN, infinite or beyond 1e100, or the shapes differ.
            TypeError: the indices are not integers or the TD errors no numbers.
        """
        indices = index_array("indices", indices)
        td_errors = float_array("td_errors", td_errors)
        if td_errors.shape != indices.shape:
            raise ValueError(
                f"td_errors: must have the shape of indices {indices.shape}, got {td_errors.shape}"
            )
        if self.runs is None:
            indices, td_errors = indices.reshape(1, -1), td_errors.reshape(1, -1)
        elif indices.ndim != 2 or len(indices) != self.runs:
            raise ValueError(f"indices: must have the shape ({self.runs}, batch), got {indices.shape}")
        if not are_valid(indices, td_errors, self.storage.added):
            self._refuse(indices, td_errors)
        self.sampler.update(self.storage.current_slots(indices), td_errors)

    @property
    def settings(self):
        """What must agree to `restore` the `state` of another buffer."""
        return {"runs": self.runs, **self.storage.settings, **self.sampler.settings}

    @property
    def state(self):
        """Transitions, priorities and generators: the arrays that a checkpoint holds."""
        parts = {"storage": self.storage.state, "sampler": self.sampler.state}
        return {f"{part}.{name}": arrays[name] for part, arrays in parts.items() for name in arrays}

    def restore(self, state):
        """Continue from what `state` was."""
        self.storage.restore(part_of(state, "storage"))
        saved = part_of(state, "sampler")
        for name, array in self.sampler.state.items():
            array[:] = saved[name]

    def save(self, path):
        """Write everything to one file: transitions, priorities, generators. Atomic."""
        with atomic_write(path) as file:
            np.savez(file, settings=np.array(json.dumps(self.settings)), **self.state)

    def load(self, path):
        """Restore what `save` wrote; the buffer continues as if it had never stopped.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or was saved by a buffer with other settings. The
                buffer is as it was then.
        """
        saved = read_arrays(path)
        try:
            settings = json.loads(str(saved.pop("settings")))
        except (KeyError, ValueError):
            raise ValueError(f"path: {os.fspath(path)!r} is not a saved replay buffer") from None
        for name, value in self.settings.items():
            if settings.get(name) != value:
                raise ValueError(
                    f"path: {os.fspath(path)!r} was saved with {name} = {settings.get(name)!r}, "
                    f"this buffer has {value!r}"
                )
        missing = [name for name in self.state if name not in saved]
        if missing:
            raise ValueError(f"path: {os.fspath(path)!r} is damaged: it lacks {', '.join(missing)}")
        self.restore(saved)

    def _stacked(self, fields):
        """The fields with an axis for runs."""
        return [np.asarray(field)[None] for field in fields] if self.runs is None else fields

    def _refuse(self, indices, td_errors):
        """Say which value `are_valid` stumbled over."""
        added = self.storage.added[:, None]
        outside = (indices < 0) | (indices >= added)
        if outside.any():
            raise IndexError(
                f"indices: must be in [0, {added[outside.any(axis=1)].min()}), "
                f"got {indices[outside][0]}"
            )
        # The bound keeps every sum of priorities finite; NaN fails the comparison as well.
        wrong = ~(np.abs(td_errors) <= 1e100)
        if wrong.any():
            raise ValueError(f"td_errors: must be finite (|δ| ≤ 1e100), got {td_errors[wrong][0]}")


class ReplayBuffer(Replay):
    """Uniform experience replay (Lin 1992; Mnih et al. 2015), explained in notebook 02.

    Args:
        capacity: transitions kept, an integer >= 1.
        observation_shape: shape of one observation.
        runs: None, or the number of runs in a stack.
        seed: None, an int, or one int per run.
        fields: `n_step`, `discount`, `observation_dtype`, `action_shape`, `action_dtype` of
            `TransitionStorage`.
    """

    def __init__(self, capacity, observation_shape, *, runs=None, seed=None, **fields):
        storage = TransitionStorage(capacity, observation_shape, _count(runs), **fields)
        sampler = UniformSampler(capacity, seeds_for(seed, storage.runs))
        super().__init__(storage, sampler, runs)


class PrioritizedReplayBuffer(Replay):
    """Proportional prioritised replay (Schaul et al. 2016, sections 3.2 to 3.4; notebook 03).

    Args:
        capacity: transitions kept, an integer >= 1.
        observation_shape: shape of one observation.
        alpha, priority_epsilon, normalize: see `ProportionalSampler`.
        runs: None, or the number of runs in a stack.
        seed: None, an int, or one int per run.
        fields: `n_step`, `discount`, `observation_dtype`, `action_shape`, `action_dtype` of
            `TransitionStorage`.
    """

    def __init__(
        self,
        capacity,
        observation_shape,
        *,
        alpha=0.6,
        priority_epsilon=1e-6,
        normalize="batch",
        runs=None,
        seed=None,
        **fields,
    ):
        storage = TransitionStorage(capacity, observation_shape, _count(runs), **fields)
        sampler = ProportionalSampler(
            capacity,
            seeds_for(seed, storage.runs),
            alpha=alpha,
            priority_epsilon=priority_epsilon,
            normalize=normalize,
        )
        super().__init__(storage, sampler, runs)


class RankBasedReplayBuffer(Replay):
    """Rank-based prioritised replay (Schaul et al. 2016, section 3.3; notebook 00).

    Args:
        capacity: transitions kept, an integer >= 1.
        observation_shape: shape of one observation.
        alpha, normalize, sort_every: see `RankBasedSampler`.
        runs: None, or the number of runs in a stack.
        seed: None, an int, or one int per run.
        fields: `n_step`, `discount`, `observation_dtype`, `action_shape`, `action_dtype` of
            `TransitionStorage`.
    """

    def __init__(
        self,
        capacity,
        observation_shape,
        *,
        alpha=0.7,
        normalize="batch",
        sort_every=None,
        runs=None,
        seed=None,
        **fields,
    ):
        storage = TransitionStorage(capacity, observation_shape, _count(runs), **fields)
        sampler = RankBasedSampler(
            capacity,
            seeds_for(seed, storage.runs),
            alpha=alpha,
            normalize=normalize,
            sort_every=sort_every,
        )
        super().__init__(storage, sampler, runs)


def make_replay(config, observation_shape, seeds):
    """The replay buffer that a `DQNConfig` asks for, for one run per seed."""
    size = (config.capacity, observation_shape, len(seeds))
    windows = {"n_step": config.n_step, "discount": config.discount}
    if config.from_pixels:
        storage = FrameStorage(*size, environments=config.environments, **windows)
    else:
        storage = TransitionStorage(*size, **windows)
    priorities = {"alpha": config.alpha, "normalize": config.normalize}
    if config.sampler == "uniform":
        sampler = UniformSampler(config.capacity, seeds)
    elif config.sampler == "rank":
        sampler = RankBasedSampler(config.capacity, seeds, **priorities)
    else:
        priorities["priority_epsilon"] = config.priority_epsilon
        sampler = ProportionalSampler(config.capacity, seeds, **priorities)
    return Replay(storage, sampler, runs=len(seeds))


def _count(runs):
    return 1 if runs is None else runs
