"""The last `capacity` transitions of every run, one row each (notebook 02)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from per_tutorial.replay.contracts import Fields, Slots
from per_tutorial.replay.ring import claim_slots
from per_tutorial.replay.storages.ring import RingStorage, as_shape
from per_tutorial.replay.storages.staging import StagedRows, write_rows


class RowWrite(NamedTuple):
    """Rows prepared for a `TransitionStorage`."""

    slots: Slots
    added: NDArray[np.int64]
    columns: tuple[NDArray[np.uint8], ...]  # the bytes of rows, or of each of their fields
    offsets: NDArray[np.int64]  # of each column in a row


class TransitionStorage(RingStorage):
    """Ring buffers of transitions, one per run (notebook 02).

    Args:
        capacity: transitions kept for each run; the oldest is overwritten.
        observation_shape: shape of one observation, a tuple of ints (or one int).
        runs: number of runs.
        n_step: steps whose rewards are summed, at most `capacity`; see `n_step_transitions`.
        discount: γ of these sums.
        environments: how many feed each run. They take turns: transition k belongs to environment
            k % environments, and n-step transitions stay within their environment. Call
            `truncate_episodes` before you restart an unfinished round.
        observation_dtype, action_shape, action_dtype: types and shape of what the rows hold.

    Example:
        >>> from per_tutorial import Replay
        >>> from per_tutorial.replay import TransitionStorage, UniformSampler
        >>> storage = TransitionStorage(100, (3,), action_shape=(2,), action_dtype="float32")
        >>> replay = Replay(storage, UniformSampler(100, seeds=[0]))
        >>> replay.add([0, 0, 0], [0.5, -1.0], 1.0, [0, 0, 1], terminated=True)
        >>> replay.sample(1).actions.tolist()
        [[0.5, -1.0]]
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: int | tuple[int, ...],
        runs: int = 1,
        *,
        n_step: int = 1,
        discount: float = 0.99,
        environments: int = 1,
        observation_dtype: DTypeLike = np.float32,
        action_shape: int | tuple[int, ...] = (),
        action_dtype: DTypeLike = np.int64,
    ) -> None:
        observation = (observation_dtype, as_shape("observation_shape", observation_shape))
        row = [
            ("observation", *observation),
            ("action", action_dtype, as_shape("action_shape", action_shape)),
            ("reward", np.float32),
            ("next_observation", *observation),
            ("terminated", np.bool_),
            ("truncated", np.bool_),
        ]
        super().__init__(capacity, row, runs, n_step, discount, environments)
        self._every_run = np.ones(self.runs, dtype=bool)

    def _make_views(self) -> None:
        super()._make_views()
        self._staged = StagedRows(self.runs, self.rows.dtype)
        # Allocated once and reused for every step.
        slots, added = np.empty((self.runs, 1), dtype=np.int64), np.empty_like(self.ring.added)
        self._write = RowWrite(slots, added, (self._staged.memory,), np.zeros(1, dtype=np.int64))

    def prepare(
        self, transition: Fields, valid: ArrayLike | None = None, *, stacked: bool = True
    ) -> RowWrite:
        """Prepare to write one transition of every run. The next call overwrites the result.

        Fields are shaped (runs, ...), or (...) if not ``stacked``; ``truncated`` may be a single
        False. Runs where ``valid`` (runs,) is False write nothing: `NO_SLOT` in the slots
        (runs, 1). Environments that take turns must all be valid. Raises ValueError or TypeError
        for a field that does not fit.
        """
        writes = self._every_run if valid is None else self._checked(valid)
        self._staged.fill(transition, writes, stacked)
        write = self._write
        claim_slots(write.slots, write.added, self.ring.added, writes, self.capacity)
        return write

    def prepare_many(self, transitions: Fields, *, stacked: bool = True) -> RowWrite:
        """Prepare to write n transitions of every run, fields (runs, n, ...), or (n, ...).

        The slots are (runs, n); if n exceeds `capacity`, the last transitions will stay. Raises
        what `prepare` raises, and ValueError if n is not a multiple of `environments`.
        """
        columns = self._staged.columns(transitions, stacked)
        n = len(columns[-1]) // self.runs  # bytes of `truncated`, one each
        if n % self.environments:
            raise ValueError(
                f"transitions: must be a multiple of environments ({self.environments}), got {n}"
            )
        slots, added = np.empty((self.runs, n), dtype=np.int64), np.empty_like(self.ring.added)
        claim_slots(slots, added, self.ring.added, self._every_run, self.capacity)
        return RowWrite(slots, added, columns, self._staged.offsets)

    def commit(self, write: RowWrite) -> None:
        """Write what was prepared. A second call writes the same to the same slots."""
        slots, added, columns, offsets = write
        ring = self._memory, self.capacity, self.ring.added
        write_rows(*ring, columns, offsets, self.rows.itemsize, slots, added)

    def truncate_episodes(self) -> Slots:
        """Mark the running episodes as truncated, before their environments are reset.

        Returns the newest slots (runs, environments), `NO_SLOT` where nothing was added.
        """
        slots = self.ring.newest(self.environments)
        runs, newest = np.nonzero(slots >= 0)[0], slots[slots >= 0]
        self.rows["truncated"][runs, newest] |= ~self.rows["terminated"][runs, newest]
        return slots

    def n_step_transitions(self, slots: Slots) -> tuple[NDArray, NDArray[np.int64]]:
        """The n-step transitions that start in ``slots`` (runs, batch): rows, and k for each.

        One of k ≤ n_step steps has the reward Σ_{j<k} γ^j r_{t+j} and the next observation,
        `terminated` and `truncated` of its last step (Sutton & Barto 2018, section 7.1). k < n_step
        if the episode ends first, or as long as the later steps have not been added.
        """
        rows = self._take(slots)
        if self.n_step == 1:
            steps = np.empty_like(slots)
            steps.fill(1)  # takes half the time of np.ones
            return rows, steps
        returns, last_slots, steps = self._walk(slots)
        last_rows = self._take(last_slots)
        rows["reward"] = returns
        for name in ("next_observation", "terminated", "truncated"):
            rows[name] = last_rows[name]
        return rows, steps

    def _checked(self, valid: ArrayLike) -> NDArray[np.bool_]:
        """``valid`` as an array (runs,), or ValueError."""
        writes = np.asarray(valid)
        if writes.shape != (self.runs,) or writes.dtype != np.bool_:
            raise ValueError(f"valid: must be True or False for each run, got {writes}")
        if self.environments > 1 and not writes.all():
            raise ValueError(
                f"valid: each of {self.environments} environments needs a transition in its turn "
                f"(SAME_STEP autoreset), got {writes}"
            )
        return writes
