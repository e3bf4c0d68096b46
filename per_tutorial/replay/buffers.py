"""Ready-made replay buffers for transitions: uniform, proportional and rank-based."""

from __future__ import annotations  # so that `help` shows DTypeLike as a name

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from per_tutorial.replay.random_streams import seeds_for
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.samplers.rank import RankBasedSampler
from per_tutorial.replay.samplers.uniform import UniformSampler
from per_tutorial.replay.storages.rows import TransitionStorage


class ReplayBuffer(Replay):
    """Uniform experience replay (Lin 1992; Mnih et al. 2015), explained in notebook 02.

    Args:
        capacity: transitions kept, an integer >= 1.
        observation_shape: shape of one observation.
        runs: None, or the number of runs side by side.
        seed: None, an int, or one int per run.
        n_step, discount, environments, observation_dtype, action_shape, action_dtype: see
            `TransitionStorage`.

    Example:
        >>> from per_tutorial import ReplayBuffer
        >>> buffer = ReplayBuffer(capacity=1000, observation_shape=(2,), seed=0)
        >>> for step in range(10):
        ...     buffer.add([step, 0], 1, 0.5, [step + 1, 0], terminated=step == 9)
        >>> batch = buffer.sample(4)
        >>> len(buffer), batch.observations.shape
        (10, (4, 2))
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: int | tuple[int, ...],
        *,
        runs: int | None = None,
        seed: int | Sequence[int] | None = None,
        n_step: int = 1,
        discount: float = 0.99,
        environments: int = 1,
        observation_dtype: DTypeLike = np.float32,
        action_shape: int | tuple[int, ...] = (),
        action_dtype: DTypeLike = np.int64,
    ) -> None:
        storage = TransitionStorage(
            capacity,
            observation_shape,
            1 if runs is None else runs,
            n_step=n_step,
            discount=discount,
            environments=environments,
            observation_dtype=observation_dtype,
            action_shape=action_shape,
            action_dtype=action_dtype,
        )
        seeds = seeds_for(seed, storage.runs)
        super().__init__(storage, UniformSampler(capacity, seeds), runs)


class PrioritizedReplayBuffer(Replay):
    """Proportional prioritised replay (Schaul et al. 2016, sections 3.2 to 3.4; notebook 03).

    Args:
        alpha, priority_epsilon, normalize: see `ProportionalSampler`.
        capacity, observation_shape, runs, seed, ...: as in `ReplayBuffer`.

    Example:
        >>> from per_tutorial import PrioritizedReplayBuffer
        >>> buffer = PrioritizedReplayBuffer(1000, (2,), alpha=1.0, seed=0)
        >>> for step in range(3):
        ...     buffer.add([step, 0], 1, 0.5, [step + 1, 0], terminated=False)
        >>> buffer.update_priorities([0, 1, 2], td_errors=[-2.0, 1.0, 1.0])  # raw
        >>> buffer.probabilities().round(3).tolist()
        [0.5, 0.25, 0.25]
        >>> batch = buffer.sample(2, beta=1.0)  # batch.weights correct for these probabilities
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: int | tuple[int, ...],
        *,
        alpha: float = 0.6,
        priority_epsilon: float = 1e-6,
        normalize: str = "batch",
        runs: int | None = None,
        seed: int | Sequence[int] | None = None,
        n_step: int = 1,
        discount: float = 0.99,
        environments: int = 1,
        observation_dtype: DTypeLike = np.float32,
        action_shape: int | tuple[int, ...] = (),
        action_dtype: DTypeLike = np.int64,
    ) -> None:
        storage = TransitionStorage(
            capacity,
            observation_shape,
            1 if runs is None else runs,
            n_step=n_step,
            discount=discount,
            environments=environments,
            observation_dtype=observation_dtype,
            action_shape=action_shape,
            action_dtype=action_dtype,
        )
        seeds = seeds_for(seed, storage.runs)
        sampler = ProportionalSampler(
            capacity, seeds, alpha=alpha, priority_epsilon=priority_epsilon, normalize=normalize
        )
        super().__init__(storage, sampler, runs)


class RankBasedReplayBuffer(Replay):
    """Rank-based prioritised replay (Schaul et al. 2016, section 3.3; notebook 00).

    Args:
        alpha, normalize, sort_every: see `RankBasedSampler`.
        capacity, observation_shape, runs, seed, ...: as in `ReplayBuffer`.

    Example:
        >>> from per_tutorial import RankBasedReplayBuffer
        >>> buffer = RankBasedReplayBuffer(1000, (2,), alpha=1.0, seed=0)
        >>> for step in range(3):
        ...     buffer.add([step, 0], 1, 0.5, [step + 1, 0], terminated=False)
        >>> buffer.update_priorities([0, 1, 2], td_errors=[1.0, -900.0, 2.0])
        >>> buffer.probabilities().round(3).tolist()
        [0.182, 0.545, 0.273]
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: int | tuple[int, ...],
        *,
        alpha: float = 0.7,
        normalize: str = "batch",
        sort_every: int | None = None,
        runs: int | None = None,
        seed: int | Sequence[int] | None = None,
        n_step: int = 1,
        discount: float = 0.99,
        environments: int = 1,
        observation_dtype: DTypeLike = np.float32,
        action_shape: int | tuple[int, ...] = (),
        action_dtype: DTypeLike = np.int64,
    ) -> None:
        storage = TransitionStorage(
            capacity,
            observation_shape,
            1 if runs is None else runs,
            n_step=n_step,
            discount=discount,
            environments=environments,
            observation_dtype=observation_dtype,
            action_shape=action_shape,
            action_dtype=action_dtype,
        )
        seeds = seeds_for(seed, storage.runs)
        sampler = RankBasedSampler(
            capacity, seeds, alpha=alpha, normalize=normalize, sort_every=sort_every
        )
        super().__init__(storage, sampler, runs)
