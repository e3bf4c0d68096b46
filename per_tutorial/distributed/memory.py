"""A shard of the memory: it stores what actors send, and draws the learner's minibatches."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.files import join_parts, part_of, write_arrays
from per_tutorial.common.states import ArraySpec, checked_state
from per_tutorial.distributed.n_step_batches import FramePool, NStepBatch
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.replay.contracts import Batch
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.samplers import sampler_for
from per_tutorial.replay.saving import read_state
from per_tutorial.replay.storages.rows import TransitionStorage


class Minibatch(NamedTuple):
    """What a shard sends to the learner."""

    batch: Batch  # of one run: (1, batch, ...)
    versions: NDArray[np.int64]  # (1, batch): number of updates when each priority was computed
    added: int  # windows ever added to the memory


class Memory:
    """One storage and one sampler for n-step transitions ("windows"); each frame is kept once.

    Args:
        config: a `DQNConfig`, for the sampler and its settings.
        capacity: windows.
        observation_shape: of one observation.
        seed: of the sampler.
        path: where `save` writes; if the file exists, the memory starts with its contents.
    """

    def __init__(
        self,
        config: DQNConfig,
        capacity: int,
        observation_shape: tuple[int, ...],
        seed: int,
        path: Path | None = None,
    ) -> None:
        self._pool: FramePool | None = None
        kept_shape, kept_dtype = observation_shape, config.observation_dtype
        if config.storage == "frames":
            kept_shape, kept_dtype = observation_shape[:1], "int32"  # frame indices
            # One for each window, and some more for the ends of episodes and messages
            self._pool = FramePool(observation_shape[1:], capacity + capacity // 8)
        # The steps of a window vary, and are stored beside its action.
        storage = TransitionStorage(
            capacity, kept_shape, 1, observation_dtype=kept_dtype, action_shape=(2,)
        )
        self._replay = Replay(storage, sampler_for(config, capacity, [seed]), runs=1)
        self._rows = storage.rows[0]
        self._path = path
        self._versions = np.zeros(capacity, dtype=np.int64)
        if path is not None and path.exists():
            self._load(path)
        self._restored = int(self._replay.storage.ring.added[0])

    def restored(self) -> int:
        """How many windows had ever been added when the memory started, according to its file."""
        return self._restored

    def add(self, windows: NStepBatch, version: int) -> int:
        """Store windows with the priorities of their TD errors; return how many are stored."""
        replay, pool = self._replay, self._pool
        if pool is not None:
            assert windows.frames is not None, "windows from pixels come with their frames"
            added = int(replay.storage.ring.added[0])
            oldest, count = added - replay.capacity, len(windows.actions)
            gone = np.arange(max(oldest, 0), max(min(added, oldest + count), 0))
            pool.drop(_frame_indices(self._rows[gone % replay.capacity]))
            both = np.stack((windows.observations, windows.next_observations))
            both[:, : -replay.capacity] = 0  # windows beyond the capacity
            observations, following = pool.add(windows.frames, both)
            windows = windows._replace(observations=observations, next_observations=following)
        actions = np.stack([windows.actions, windows.steps], axis=1)
        over = np.zeros(len(actions), dtype=bool)
        fields = (windows.observations, actions, *windows[2:5], over)
        replay.extend(*(field[None] for field in fields))
        added = int(replay.storage.ring.added[0])
        ids = np.arange(added - len(actions), added)
        replay.update_priorities(ids[None], windows.td_errors[None])
        self._versions[ids % replay.capacity] = version
        return len(replay)

    def sample(self, batch_size: int, beta: float) -> Minibatch | None:
        """Draw a minibatch; None while fewer windows than that are stored."""
        if len(self._replay) < batch_size:
            return None
        batch = self._replay.sample(batch_size, beta)
        observations = np.stack((batch.observations, batch.next_observations))
        if self._pool is not None:
            observations = self._pool.stacks(observations)
        added = int(self._replay.storage.ring.added[0])
        return Minibatch(
            batch._replace(
                observations=observations[0],
                actions=np.ascontiguousarray(batch.actions[..., 0]),
                next_observations=observations[1],
                rewards=np.ascontiguousarray(batch.rewards),
                terminated=np.ascontiguousarray(batch.terminated),
                steps=np.ascontiguousarray(batch.actions[..., 1]),
            ),
            self._versions[batch.indices % self._replay.capacity],
            added,
        )

    def update(self, indices: NDArray, td_errors: NDArray, version: int) -> None:
        """Update priorities from TD errors of drawn windows; skip those overwritten since."""
        self._replay.update_priorities(indices, td_errors)
        current = indices[indices >= self._replay.storage.ring.added[0] - len(self._replay)]
        self._versions[current % self._replay.capacity] = version

    def save(self) -> None:
        """Write everything to the file, atomically."""
        assert self._path is not None, "only a memory with a file is saved"
        state = join_parts(
            replay=self._replay.state, pool={} if self._pool is None else self._pool.state
        )
        state["versions"] = self._versions
        write_arrays(self._path, "settings", self._replay.settings, state)

    def _load(self, path: Path) -> None:
        """Restore the file; ValueError if it is damaged or belongs to another memory."""
        replay, pool = self._replay, self._pool
        schema = join_parts(replay=replay.schema, pool={} if pool is None else pool.schema)
        schema["versions"] = ArraySpec(np.int64, self._versions.shape, 0)
        state = read_state(path, replay.settings, schema)
        try:
            kept = checked_state(part_of(state, "replay"), replay.schema)
            replay.check(kept)
            if pool is not None:
                frame_indices = _frame_indices(kept["storage.rows"][0])
                frames = checked_state(part_of(state, "pool"), pool.schema)
                pool.check(frames, frame_indices)
        except ValueError as error:
            raise ValueError(f"path: {str(path)!r} is damaged ({error})") from error
        replay.restore(kept)
        if pool is not None:
            pool.restore(frames, frame_indices)
        self._versions[:] = state["versions"]


def _frame_indices(rows: NDArray) -> NDArray:
    """Both stacks of each stored transition."""
    return np.stack((rows["observation"], rows["next_observation"]))
