"""A shard of the memory: the windows that actors send, and the minibatches that the learner draws."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.distributed.acting import Windows
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.replay.contracts import Batch
from per_tutorial.replay.registry import make_replay
from per_tutorial.replay.replay import Replay
from per_tutorial.replay.storages.transitions import TransitionStorage


class Minibatch(NamedTuple):
    """What the learner gets."""

    batch: Batch  # of one run: (1, batch, ...)
    versions: NDArray[np.int64]  # (1, batch): updates of the parameters that each priority is from
    age: float  # mean number of windows that were added since those drawn
    stored: int


class Memory:
    """One storage and one sampler, for windows that are whole already.

    Args:
        config: a `DQNConfig`: its sampler, and what the sampler's settings are.
        capacity: windows.
        observation_shape: of one observation.
        seed: of the sampler.
        path: where `save` writes; if there is a file, the memory begins with what it holds.

    Attributes:
        restored: how many windows came from the file.
    """

    def __init__(
        self,
        config: DQNConfig,
        capacity: int,
        observation_shape: tuple[int, ...],
        seed: int,
        path: Path | None = None,
    ) -> None:
        alone = config.replace(capacity=capacity, n_step=1, environments=1)
        sampler = make_replay(alone, observation_shape, [seed]).sampler
        # A window has its own number of steps, which is kept beside its action.
        storage = TransitionStorage(capacity, observation_shape, 1, action_shape=(2,))
        self._replay = Replay(storage, sampler, runs=1)
        self._path = path
        self._versions = np.zeros(capacity, dtype=np.int64)
        if path is not None and path.exists():
            self._replay.load(path)
        self.restored = len(self._replay)

    def add(self, windows: Windows, version: int) -> int:
        """Keep windows, at the priorities that their actor found; returns how many are stored now."""
        actions = np.stack([windows.actions, windows.steps], axis=1)
        over = np.zeros(len(actions), dtype=bool)
        fields = (windows.observations, actions, *windows[2:5], over)
        self._replay.extend(*(field[None] for field in fields))
        newest = int(self._replay.storage.added[0])
        numbers = np.arange(newest - len(actions), newest)
        self._replay.update_priorities(numbers[None], windows.td_errors[None])
        self._versions[numbers % self._replay.capacity] = version
        return len(self._replay)

    def sample(self, batch_size: int, beta: float) -> Minibatch | None:
        """A minibatch, None while there are fewer windows than that."""
        if len(self._replay) < batch_size:
            return None
        batch = self._replay.sample(batch_size, beta)
        actions, steps = batch.actions[..., 0], batch.actions[..., 1]
        return Minibatch(
            batch._replace(
                observations=np.ascontiguousarray(batch.observations),
                actions=np.ascontiguousarray(actions),
                next_observations=np.ascontiguousarray(batch.next_observations),
                rewards=np.ascontiguousarray(batch.rewards),
                terminated=np.ascontiguousarray(batch.terminated),
                steps=np.ascontiguousarray(steps),
            ),
            self._versions[batch.indices % self._replay.capacity],
            float((self._replay.storage.added[0] - batch.indices).mean()),
            len(self._replay),
        )

    def update(self, indices: NDArray, td_errors: NDArray, version: int) -> None:
        """The learner's TD errors of what it drew; those of windows that are gone are skipped."""
        self._replay.update_priorities(indices, td_errors)
        current = indices[indices >= self._replay.storage.added[0] - len(self._replay)]
        self._versions[current % self._replay.capacity] = version

    def save(self) -> None:
        """Write all of it to the file. Atomic."""
        assert self._path is not None, "only a memory with a file is saved"
        self._replay.save(self._path)
