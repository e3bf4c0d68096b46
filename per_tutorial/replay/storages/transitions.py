"""The last `capacity` transitions of every run, a row of a table each (notebook 02)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from per_tutorial.common.arguments import plain_array
from per_tutorial.replay.contracts import Slots, Transition
from per_tutorial.replay.storages.ring import (
    RingStorage,
    as_field,
    as_shape,
    claim_slots,
    locate_rows,
)
from per_tutorial.replay.storages.staging import StagedRows, put_columns, put_rows


class RowWrite(NamedTuple):
    """Rows on their way into a `TransitionStorage`."""

    slots: Slots
    added: NDArray[np.int64]
    places: NDArray[np.int64]  # of the rows, among those of all runs
    rows: NDArray


class TransitionStorage(RingStorage):
    """Ring buffers of transitions, one per run (notebook 02).

    Args:
        capacity: transitions kept for each run; the oldest is overwritten.
        observation_shape: shape of one observation, a tuple of ints (or one int).
        runs: number of runs.
        n_step: steps whose rewards are summed, at most `capacity`; see `windows`.
        discount: γ of these sums.
        environments: how many feed each run. They take turns: transition k is one of environment
            k % environments, and n-step windows stay within their environment. If a round is broken
            off and begins anew, call `cut` first.
        observation_dtype, action_shape, action_dtype: what else the rows hold.

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

    def prepare(self, transition: Transition, valid: ArrayLike | None = None) -> RowWrite:
        """Make ready to write one transition for every run, fields shaped (runs, ...).

        ``truncated`` may be a single False for all runs. Runs where ``valid`` (runs,) is False have
        nothing to write: −1 in the slots (runs, 1). Environments that take turns may miss none. Raises
        ValueError or TypeError for a field that does not fit.
        """
        if transition.truncated is False:
            transition = transition._replace(truncated=np.zeros(self.runs, dtype=bool))
        return self._prepare(transition, valid, 1, runs=self.runs)

    def put(
        self,
        fields: tuple[ArrayLike, ...],
        valid: ArrayLike | None,
        slots: Slots,
        added: NDArray[np.int64],
        stacked: bool,
    ) -> bool:
        """`prepare` and `commit`, if the fields are as they are kept; else do nothing."""
        writes = self._every_run if valid is None else valid
        if type(writes) is not np.ndarray or writes.dtype != np.bool_:
            return False
        if writes.shape != added.shape or (self.environments > 1 and not writes.all()):
            return False
        if not self._staged.fill(fields, stacked):
            return False
        staged, size = self._staged.memory, self.rows.itemsize
        put_rows(self._memory, self.capacity, self.added, staged, size, writes, slots, added)
        return True

    def put_many(
        self,
        fields: tuple[ArrayLike, ...],
        valid: None,
        slots: Slots,
        added: NDArray[np.int64],
        stacked: bool,
    ) -> bool:
        """`prepare_many` and `commit`, as `put`."""
        staged, size = self._staged, self.rows.itemsize
        columns = staged.columns(fields, slots.shape[1], stacked)
        if columns is None:
            return False
        ring = self._memory, self.capacity, self.added
        put_columns(*ring, columns, size, staged.offsets, slots, added)
        return True

    def prepare_many(self, transitions: Transition) -> RowWrite:
        """Make ready to write n transitions for every run, fields shaped (runs, n, ...).

        The slots are (runs, n); of more than `capacity` transitions the last ones will stay.
        """
        n = np.atleast_2d(plain_array("observation", transitions.observation)).shape[1]
        return self._prepare(transitions, None, n, runs=self.runs, transitions=n)

    def _prepare(
        self, transition: Transition, valid: ArrayLike | None, n: int, **counts: int
    ) -> RowWrite:
        dtypes = self.rows.dtype
        fields = [
            as_field(name, values, dtypes[name], **counts)
            for name, values in zip(dtypes.names, transition, strict=True)
        ]
        writes = self._every_run
        if valid is not None:
            writes = np.asarray(valid)
            if writes.shape != (self.runs,) or writes.dtype != np.bool_:
                raise ValueError(f"valid: must be True or False for each run, got {writes}")
            if self.environments > 1 and not writes.all():
                raise ValueError(
                    f"valid: each of {self.environments} environments needs a transition in its turn "
                    f"(SAME_STEP autoreset), got {writes}"
                )
        rows = np.zeros(tuple(counts.values()), dtype=dtypes)  # the bytes between fields as well
        for name, values in zip(dtypes.names, fields, strict=True):
            rows[name] = values
        slots, added = np.empty((self.runs, n), dtype=np.int64), self.added.copy()
        claim_slots(slots, added, writes, self.capacity)
        places = self._first_rows + slots
        if valid is not None and not writes.all():
            # As plain bytes: NumPy copies fields only, and what is between them would be stray memory.
            raw = rows.view(np.dtype((np.void, rows.itemsize)))
            places, raw = (each.compress(writes, axis=0) for each in (places, raw))
            rows = raw.view(dtypes)
        return RowWrite(slots, added, places, rows)

    def commit(self, write: RowWrite) -> None:
        """Write what was prepared. A second time, it writes the same to the same places."""
        # More rows than the capacity come to the same slots again: what is put last stays.
        self._all_rows.put(write.places, write.rows)
        self.added[:] = write.added

    def add(self, transition: Transition, valid: ArrayLike | None = None) -> Slots:
        """`prepare` and `commit` one transition for every run; returns its slots, (runs, 1)."""
        write = self.prepare(transition, valid)
        self.commit(write)
        return write.slots

    def cut(self) -> Slots:
        """End the running episodes as a time limit does: the environments are about to start again.

        Returns the newest slot of each environment (runs, environments), −1 where there is none.
        """
        numbers = self.added[:, None] + np.arange(-self.environments, 0)
        slots = np.where(numbers < 0, -1, numbers % self.capacity)
        runs, newest = np.nonzero(slots >= 0)[0], slots[slots >= 0]
        self.rows["truncated"][runs, newest] |= ~self.rows["terminated"][runs, newest]
        return slots

    def gather(self, slots: Slots) -> NDArray:
        """The rows in ``slots`` (runs, batch), copied into a structured array of that shape."""
        return self._take(slots)

    def windows(self, slots: Slots) -> tuple[NDArray, NDArray[np.int64]]:
        """The n-step transitions that begin in ``slots`` (runs, batch): rows, and k for each.

        A window of k ≤ n_step steps has the reward Σ_{j<k} γ^j r_{t+j} and the next observation,
        `terminated` and `truncated` of its last step (Sutton & Barto 2018, section 7.1). It ends
        early where its episode ends, and at the newest transition: while a transition is young,
        its window grows with every step.
        """
        rows = self.gather(slots)
        if self.n_step == 1:
            steps = np.empty_like(slots)
            steps.fill(1)  # takes half the time of np.ones
            return rows, steps
        returns, last_slots, steps = self._walk(slots)
        last_rows = self.gather(last_slots)
        rows["reward"] = returns
        for name in ("next_observation", "terminated", "truncated"):
            rows[name] = last_rows[name]
        return rows, steps

    def draw(self, slots: Slots) -> tuple[NDArray, NDArray[np.int64], NDArray[np.int64]]:
        """`windows` and `ids` together; of single steps in one compiled call."""
        if self.n_step > 1:
            return *self.windows(slots), self.ids(slots)
        places, ids, steps = np.empty_like(slots), np.empty_like(slots), np.empty_like(slots)
        ring = (self.added, self.capacity, self._memory, self.rows.itemsize)
        if not locate_rows(slots, *ring, places, ids, steps):
            self._refuse(slots)
        return self._all_rows.take(places), steps, ids
