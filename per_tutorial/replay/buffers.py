"""Ready-made replay buffers for transitions: uniform, proportional and rank-based."""

from collections.abc import Sequence
from typing import Any

from per_tutorial.replay.random_streams import seeds_for
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.samplers import refuse_unknown
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
        fields: `n_step`, `discount`, `environments`, `observation_dtype`, `action_shape` and
            `action_dtype` of `TransitionStorage`.

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
        **fields: Any,
    ) -> None:
        storage, seeds = _parts(capacity, observation_shape, runs, seed, fields)
        super().__init__(storage, UniformSampler(capacity, seeds), runs)


class PrioritizedReplayBuffer(Replay):
    """Proportional prioritised replay (Schaul et al. 2016, sections 3.2 to 3.4; notebook 03).

    Args:
        capacity, observation_shape, runs, seed, fields: as in `ReplayBuffer`.
        alpha, priority_epsilon, normalize: see `ProportionalSampler`.

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
        **fields: Any,
    ) -> None:
        storage, seeds = _parts(capacity, observation_shape, runs, seed, fields)
        sampler = ProportionalSampler(
            capacity, seeds, alpha=alpha, priority_epsilon=priority_epsilon, normalize=normalize
        )
        super().__init__(storage, sampler, runs)


class RankBasedReplayBuffer(Replay):
    """Rank-based prioritised replay (Schaul et al. 2016, section 3.3; notebook 00).

    Args:
        capacity, observation_shape, runs, seed, fields: as in `ReplayBuffer`.
        alpha, normalize, sort_every: see `RankBasedSampler`.

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
        **fields: Any,
    ) -> None:
        storage, seeds = _parts(capacity, observation_shape, runs, seed, fields)
        sampler = RankBasedSampler(
            capacity, seeds, alpha=alpha, normalize=normalize, sort_every=sort_every
        )
        super().__init__(storage, sampler, runs)


def _parts(
    capacity: int, shape: Any, runs: int | None, seed: Any, fields: dict[str, Any]
) -> tuple[TransitionStorage, list[int]]:
    """The storage of a buffer and the seeds of its sampler; TypeError for an unknown setting."""
    count = 1 if runs is None else runs
    given_to = ", whose `sample` takes β," if "beta" in fields else ""
    refuse_unknown(f"the storage of a replay buffer{given_to}", fields, TransitionStorage)
    return TransitionStorage(capacity, shape, count, **fields), seeds_for(seed, count)
