"""The last `capacity` transitions of every run, one row each (notebook 02).

A row is an element of a NumPy structured array: a transition is one block of memory instead of one
per field, and a minibatch is one `take`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, DTypeLike, NDArray

from per_tutorial.common.arguments import plain_array, real_number, whole_number
from per_tutorial.common.files import AnyArray, SavedArray, copy_arrays, require_like
from per_tutorial.common.memory import promise_memory
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Fields, Slots, State
from per_tutorial.replay.ring import NO_SLOT, Ring, sum_n_steps
from per_tutorial.replay.storages.fields import as_field, as_shape, refuse_infinite_observations

PLAIN = {"b": bool, "i": int, "u": int, "f": float}  # Python's types of a single number
OBSERVATIONS = ("observation", "next_observation")
WHOLE_ROWS = np.zeros(1, dtype=np.int64)  # offsets of one column that holds whole rows


@njit_cached
def write_rows(memory, capacity, added, columns, offsets, row_size, valid, slots):
    """Copy n rows per run into the ring, and count them: one call, which cannot be interrupted.

    Args:
        memory: the bytes of all rows, run after run.
        added: (runs,) transitions added so far; n more afterwards.
        columns: the bytes of whole rows, or of each of their fields; (runs, n) items each.
        offsets: (columns,) the offset of each in a row.
        valid: (runs,) False where nothing is to be added.
        slots: (runs, n), where the rows go; NO_SLOT for those that are not added.
    """
    runs, n = slots.shape
    for run in range(runs):
        for k in range(n):
            slots[run, k] = (added[run] + k) % capacity if valid[run] else NO_SLOT
    for column in range(len(columns)):
        data = columns[column]
        size = len(data) // max(runs * n, 1)
        for run in range(runs):
            for k in range(n):
                if valid[run]:
                    source = (run * n + k) * size
                    target = (run * capacity + slots[run, k]) * row_size + offsets[column]
                    for byte in range(size):
                        memory[target + byte] = data[source + byte]
    for run in range(runs):
        if valid[run]:
            added[run] += n


@njit_cached
def are_finite(observations, rewards, next_observations):
    """Whether all numbers are finite: of observations (runs, n), twice, and rewards (runs,)."""
    infinite = False  # no early exit, so that the loop is vectorised
    for run in range(len(rewards)):
        infinite |= rewards[run] - rewards[run] != 0  # NaN − NaN and ∞ − ∞ are NaN
        for k in range(observations.shape[1]):
            infinite |= observations[run, k] - observations[run, k] != 0
            infinite |= next_observations[run, k] - next_observations[run, k] != 0
    return not infinite


class RowStorage:
    """Rows in the slots of a ring for each run: what both storages share.

    Args:
        row: dtype of the rows, with fields reward, terminated and truncated.
        capacity, runs, n_step, discount, environments: as in `TransitionStorage`.

    Attributes:
        rows: (runs, capacity) structured array.
        added: (runs,) transitions ever added.
        ring: which slot holds which transition.
        settings: what must match to `restore` the `state` of another storage.
    """

    def __init__(
        self,
        capacity: int,
        row: DTypeLike,
        runs: int,
        n_step: int,
        discount: float,
        environments: int = 1,
    ) -> None:
        self.capacity = whole_number("capacity", capacity)
        self.runs = whole_number("runs", runs)
        self.n_step = whole_number("n_step", n_step)
        self.environments = whole_number("environments", environments)
        for name in ("n_step", "environments"):
            if getattr(self, name) > self.capacity:
                raise ValueError(
                    f"{name}: must be at most capacity ({self.capacity}), got {getattr(self, name)}"
                )
        self.discount = real_number("discount", discount, 0, 1)
        self.added = np.zeros(self.runs, dtype=np.int64)
        self.ring = Ring(self.added, self.capacity)
        self._every_run = np.ones(self.runs, dtype=bool)
        self._first_rows = self.capacity * np.arange(self.runs)[:, None]  # of runs, in all rows
        row = np.dtype(row, align=True)
        promise_memory(self, "capacity", self.runs * self.capacity * row.itemsize)
        self._allocate(row)
        self.settings: dict[str, Any] = {
            "capacity": self.capacity,
            **{name: f"{row[name].base} {row[name].shape}" for name in row.names or ()},
            "n_step": self.n_step,
            "discount": self.discount,
            "environments": self.environments,
        }

    def _allocate(self, row: np.dtype) -> None:
        """Empty rows, and views of their memory."""
        self.rows = np.zeros((self.runs, self.capacity), row)
        self._all_rows = self.rows.reshape(-1)  # run after run …
        self._memory = self._all_rows.view(np.uint8)  # … and their bytes
        self._ends = self.rows["terminated"], self.rows["truncated"]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out empty rows, and views, which would become separate arrays."""
        views = ("_all_rows", "_memory", "_ends")
        kept = {name: value for name, value in vars(self).items() if name not in views}
        return kept | {"rows": self._stored_rows(int(self.sizes.max()))}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        stored = kept.pop("rows")
        vars(self).update(kept)
        self._allocate(stored.dtype)
        self.rows[:, : stored.shape[1]] = stored

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(runs,): transitions stored now."""
        return self.ring.sizes

    @property
    def leading_axes(self) -> tuple[int, ...]:
        """The leading axes of fields that are added."""
        return (self.runs,)

    @property
    def state(self) -> State:
        """The arrays that a checkpoint holds."""
        return {"added": self.added, "rows": self._stored_rows(int(self.sizes.max()))}

    def check(self, state: Mapping[str, AnyArray]) -> None:
        """Raise ValueError, "state: …", unless `restore` accepts this state."""
        require_like({"added": self.added}, state)
        added = in_memory(state["added"])
        if (added < 0).any():
            raise ValueError(f"state: added must be at least 0, got {added.min()}")
        require_like(
            {"rows": self._stored_rows(int(Ring(added, self.capacity).sizes.max()))}, state
        )

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a checked state."""
        stored = state["rows"].shape[1]
        copy_arrays({"added": self.added, "rows": self._stored_rows(stored)}, state)

    def _stored_rows(self, count: int) -> NDArray:
        """(runs, count): the first rows of every run."""
        return self.rows[:, :count]

    def _write(
        self, columns: tuple[NDArray, ...], offsets: NDArray, n: int, valid: NDArray[np.bool_]
    ) -> Slots:
        """Store n rows per run, given as `write_rows` takes them; return their slots (runs, n)."""
        slots = np.empty((self.runs, n), dtype=np.int64)
        ring = self._memory, self.capacity, self.added
        write_rows(*ring, columns, offsets, self.rows.itemsize, valid, slots)
        return slots

    def _take(self, slots: Slots) -> NDArray[np.void]:
        """The rows in ``slots`` (runs, batch), copied."""
        return self._all_rows.take(slots if self.runs == 1 else slots + self._first_rows)

    def _walk(self, slots: Slots) -> tuple[NDArray[np.float64], Slots, NDArray[np.int64]]:
        """Returns, last slots and steps of the n-step transitions that start in ``slots``."""
        returns = np.empty(slots.shape)
        last_slots, steps = np.empty_like(slots), np.empty_like(slots)
        sum_n_steps(
            *(self.rows["reward"], *self._ends, self.added, self.environments),
            *(slots, self.n_step, self.discount, returns, last_slots, steps),
        )
        return returns, last_slots, steps


class TransitionStorage(RowStorage):
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

    def _allocate(self, row: np.dtype) -> None:
        super()._allocate(row)
        self._staged = StagedRows(self.runs, row)

    def __getstate__(self) -> dict[str, Any]:
        kept = super().__getstate__()
        del kept["_staged"]
        return kept

    def add(
        self, transition: Fields, valid: ArrayLike | None = None, *, stacked: bool = True
    ) -> Slots:
        """Store one transition of every run; return their slots (runs, 1).

        Fields are shaped (runs, ...), or (...) if not ``stacked``; ``truncated`` may be a single
        False. Runs where ``valid`` (runs,) is False store nothing: `NO_SLOT`. Environments that
        take turns must all be valid. Raises ValueError or TypeError for a field that does not fit.
        """
        writes = self._every_run if valid is None else self._checked(valid)
        self._staged.fill(transition, writes, stacked)
        return self._write((self._staged.memory,), WHOLE_ROWS, 1, writes)

    def extend(self, transitions: Fields, *, stacked: bool = True) -> Slots:
        """Store n transitions of every run, fields (runs, n, ...), or (n, ...); return their slots.

        If n exceeds `capacity`, the last transitions stay. Raises what `add` raises, and ValueError
        if n is not a multiple of `environments`.
        """
        columns, n = self._staged.columns(transitions, stacked)
        if n % self.environments:
            raise ValueError(
                f"transitions: must be a multiple of environments ({self.environments}), got {n}"
            )
        return self._write(columns, self._staged.offsets, n, self._every_run)

    def truncate_episodes(self) -> None:
        """Mark the running episodes as truncated, before their environments are reset."""
        slots = self.ring.newest(self.environments)
        runs, newest = np.nonzero(slots >= 0)[0], slots[slots >= 0]
        self.rows["truncated"][runs, newest] |= ~self.rows["terminated"][runs, newest]

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


class StagedRows:
    """One row per run, in which a transition is checked before it is written into the ring.

    An agent adds a transition at every step, nearly always with fields of exactly the stored types
    and shapes. Such a field is written directly; any other one is converted first, or rejected.

    Args:
        runs: number of runs.
        dtype: of the rows, whose fields are those of a `Transition`.

    Attributes:
        memory: the bytes of the rows, run after run.
        offsets: (fields,) the offset of each field in a row.
    """

    def __init__(self, runs: int, dtype: np.dtype) -> None:
        self.dtype = dtype
        fields: Mapping[str, Any] = dtype.fields or {}
        self.rows = np.zeros(runs, dtype)
        self.memory = self.rows.view(np.uint8)
        self.offsets = np.array([fields[name][1] for name in fields])
        self._nowhere = np.zeros(runs, dtype=bool)
        views = {name: self.rows[name] for name in fields}
        self._of_runs = [_target(name, view) for name, view in views.items()]
        self._of_one = [_target(name, view[0, ...]) for name, view in views.items()]
        number = dtype["observation"].base
        self._is_exotic = number.kind in "fc" and number not in (np.float32, np.float64)
        numbers = [views[name].reshape(runs, -1) for name in ("observation", "next_observation")]
        if self._is_exotic or number.kind not in "fc":
            numbers = [each[:, :0].astype(np.float32) for each in numbers]
        self._numbers = numbers[0], views["reward"], numbers[1]  # for `are_finite`

    def fill(self, transition: Fields, valid: NDArray[np.bool_], stacked: bool) -> None:
        """Write a transition of each run; fields are (runs, ...), or (...) if not ``stacked``.

        ``truncated`` may be a single False. Raises ValueError or TypeError for a field that does
        not fit, and ValueError for an infinite or NaN observation of a ``valid`` (runs,) run.
        """
        if stacked and transition[5] is False:
            transition = (*transition[:5], self._nowhere)
        # `strict` would add a third to the time.
        for value, target in zip(transition, self._of_runs if stacked else self._of_one):  # noqa: B905
            name, field, dtypes, shape, types = target
            if type(value) is ndarray:
                fits = value.dtype in dtypes and value.shape == shape
            else:
                fits = type(value) in types
            try:
                field[...] = value if fits else self._convert(name, value, stacked)
            except OverflowError:  # an int that its field cannot hold
                self._convert(name, value, stacked)
        if self._is_exotic or not are_finite(*self._numbers):
            self._convert("reward", transition[2], stacked)
            for name in OBSERVATIONS:
                refuse_infinite_observations(name, self.rows[name][valid])

    def columns(
        self, transitions: Fields, stacked: bool
    ) -> tuple[tuple[NDArray[np.uint8], ...], int]:
        """The bytes of fields shaped (runs, n, ...), or (n, ...) if not ``stacked``, and n.

        Fields already in the stored type and layout are not copied. Raises what `fill` raises.
        """
        names = self.dtype.names or ()
        arrays = [plain_array(*field) for field in zip(names, transitions, strict=True)]
        counts = {"runs": len(self.rows)} if stacked else {}
        counts["transitions"] = (*arrays[0].shape, 1, 1)[len(counts)]
        columns = []
        for name, array in zip(names, arrays, strict=True):
            field = self._as_field(name, array, counts)
            # Writeable, since compiled code takes only one kind of arrays in a tuple.
            field = np.require(field, self.dtype[name].base, ["C", "W"])
            if name in OBSERVATIONS:
                refuse_infinite_observations(name, field)
            columns.append(field.reshape(-1).view(np.uint8))
        return tuple(columns), counts["transitions"]

    def _convert(self, name: str, value: ArrayLike, stacked: bool) -> NDArray:
        """The value as an array that fits its field, or ValueError or TypeError."""
        return self._as_field(name, value, {"runs": len(self.rows)} if stacked else {})

    def _as_field(self, name: str, value: ArrayLike, counts: dict[str, int]) -> NDArray:
        """`as_field`; an error about an action also shows `action_shape` and `action_dtype`."""
        dtype = self.dtype[name]
        try:
            return as_field(name, value, dtype, **counts)
        except (ValueError, TypeError) as error:
            if name == "action":
                made_with = f"action_shape is {dtype.shape}, action_dtype is {dtype.base}"
                error.args = (f"{error}; {made_with}",)
            raise


def in_memory(array: AnyArray) -> NDArray:
    """An array of a state as a NumPy array."""
    return array.read() if isinstance(array, SavedArray) else array


def _target(name: str, field: NDArray) -> tuple[str, NDArray, tuple, tuple[int, ...], tuple]:
    """Name and view of a field; the dtypes, the shape and the scalar types that fit it as is."""
    # Most environments return rewards as float64.
    dtypes = (field.dtype, *([np.dtype(np.float64)] if name == "reward" else []))
    types = (PLAIN.get(field.dtype.kind, object), *(dtype.type for dtype in dtypes))
    return name, field, dtypes, field.shape, () if field.shape else types
