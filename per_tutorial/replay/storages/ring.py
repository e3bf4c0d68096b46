"""What storages share: one row per transition, in the slots of a `Ring`.

A row is an element of a NumPy structured array: a transition is one block of memory instead of one
per field, and a minibatch is one `take`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from per_tutorial.common.arguments import plain_array, real_number, whole_number
from per_tutorial.common.states import ArraySpec, Schema, State
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Fields, Slots, Storage
from per_tutorial.replay.intrinsics import prefetch
from per_tutorial.replay.ring import Ring, sum_n_steps

LARGEST_REWARD = float(np.finfo(np.float32).max)  # rewards are stored as float32
VIEWS = ("_all_rows", "_memory", "_ends", "_staged", "_write")  # what `_make_views` makes
MAX_ADDED = 2**62  # transitions of a run: more than can be added, less than would overflow


@njit_cached
def locate_rows(slots, capacity, memory, row_size, rows):
    """Write into `rows` (runs, batch) the index of each slot among the rows of all runs.

    The rows are scattered in `memory`, their bytes, so all are prefetched before the first is read.
    Returns False, with `rows` unfinished, if a slot is outside [0, capacity).
    """
    for run in range(slots.shape[0]):
        for k in range(slots.shape[1]):
            if not 0 <= slots[run, k] < capacity:
                return False
            row = run * capacity + slots[run, k]
            rows[run, k] = row
            prefetch(memory, row * row_size)
            prefetch(memory, (row + 1) * row_size - 1)
    return True


class RingStorage:
    """Rows in the slots of a ring for each run.

    Args:
        row: dtype of the rows, with fields reward, terminated and truncated.
        capacity, runs, n_step, discount, environments: as in `TransitionStorage`.

    Attributes:
        rows: (runs, capacity) structured array.
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
        self.ring = Ring(np.zeros(self.runs, dtype=np.int64), self.capacity)
        self.rows = np.zeros((self.runs, self.capacity), dtype=np.dtype(row, align=True))
        self.settings: dict[str, Any] = {
            "capacity": self.capacity,
            "row": str(self.rows.dtype.descr),
            "n_step": self.n_step,
            "discount": self.discount,
            "environments": self.environments,
        }
        self._make_views()

    def _make_views(self) -> None:
        """Views of the memory of `rows`. A copy of a storage must make its own."""
        self._all_rows = self.rows.reshape(-1)  # run after run …
        self._memory = self._all_rows.view(np.uint8)  # … and their bytes
        self._ends = self.rows["terminated"], self.rows["truncated"]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out empty rows, and views, which would become separate arrays."""
        kept = {name: value for name, value in vars(self).items() if name not in VIEWS}
        return kept | {"rows": self._stored_rows}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self.rows = np.zeros((self.runs, self.capacity), dtype=kept["rows"].dtype)
        self.rows[:, : kept["rows"].shape[1]] = kept["rows"]
        self._make_views()

    @property
    def leading_axes(self) -> tuple[int, ...]:
        """The leading axes of fields that are added."""
        return (self.runs,)

    @property
    def added(self) -> NDArray[np.int64]:
        """(runs,): transitions ever added."""
        return self.ring.added

    def add(self: Storage, transition: Fields, valid: ArrayLike | None = None) -> Slots:
        """`prepare` and `commit` a step, without a sampler; returns the slots."""
        write = self.prepare(transition, valid)
        self.commit(write)
        return write.slots.copy()

    def episode_lengths(self, slots: Slots) -> NDArray[np.int64]:
        """(runs, n): how many steps are stored of the episodes that end in ``slots``."""
        return self.ring.episode_lengths(slots, *self._ends, self.environments)

    @property
    def state(self) -> State:
        """The arrays that a checkpoint holds."""
        return {"added": self.ring.added, "rows": self._stored_rows}

    @property
    def schema(self) -> Schema:
        """What `restore` takes."""
        return {
            "added": ArraySpec(np.int64, (self.runs,), 0, MAX_ADDED),
            "rows": ArraySpec(self.rows.dtype, (self.runs, range(self.capacity + 1))),
        }

    def check(self, state: State) -> NDArray[np.int64]:
        """Raise ValueError for a wrong number of rows, or an impossible reward or flag.

        Returns the sizes (runs,).
        """
        rows, sizes = state["rows"], Ring(state["added"], self.capacity).sizes
        if rows.shape[1] != sizes.max():
            raise ValueError(f"state: rows must be {sizes.max()} for each run, got {rows.shape[1]}")
        for name in ("terminated", "truncated"):
            if (rows[name].view(np.uint8) > 1).any():
                raise ValueError(f"state: {name} must be True or False everywhere")
        if not np.isfinite(rows["reward"]).all():
            raise ValueError("state: reward must be finite everywhere")
        return sizes

    def restore(self, state: State) -> None:
        """Continue from a checked state."""
        stored = state["rows"].shape[1]
        self.ring.added[:] = state["added"]
        self.rows[:, :stored] = state["rows"]
        self.rows[:, stored:] = np.zeros((), self.rows.dtype)

    @property
    def _stored_rows(self) -> NDArray:
        """(runs, transitions) rows, as many as the fullest run has."""
        stored = int(self.ring.sizes.max())
        if self.rows[:, :stored].flags.c_contiguous:
            return self.rows[:, :stored]
        # As plain bytes: NumPy copies only fields, so files would hold stray memory between them.
        raw = self.rows.view(np.dtype((np.void, self.rows.itemsize)))
        return raw[:, :stored].copy().view(self.rows.dtype)

    def _take(self, slots: Slots) -> NDArray[np.void]:
        """The rows in ``slots`` (runs, batch), copied."""
        rows = np.empty_like(slots)
        if not locate_rows(slots, self.capacity, self._memory, self.rows.itemsize, rows):
            raise IndexError(
                f"slots: must be in [0, {self.capacity}), got {slots.min()} to {slots.max()}"
            )
        return self._all_rows.take(rows)

    def _walk(self, slots: Slots) -> tuple[NDArray[np.float64], Slots, NDArray[np.int64]]:
        """Returns, last slots and steps of the n-step transitions that start in ``slots``."""
        returns = np.empty(slots.shape)
        last_slots, steps = np.empty_like(slots), np.empty_like(slots)
        sum_n_steps(
            *(self.rows["reward"], *self._ends, self.ring.added, self.environments),
            *(slots, self.n_step, self.discount, returns, last_slots, steps),
        )
        return returns, last_slots, steps


def as_field(name: str, values: ArrayLike, dtype: np.dtype, **counts: int) -> NDArray:
    """``values`` as an array with the axes ``counts``, then those of ``dtype``.

    Args:
        dtype: type and inner shape, such as `np.dtype((np.uint8, (4, 84, 84)))`.
        counts: the lengths of the leading axes, such as `runs=1, environments=8`.

    Raises:
        ValueError: the shape is wrong, or a value does not fit ``dtype``.
        TypeError: the type is of another kind, such as float instead of int.
    """
    array = plain_array(name, values)
    wanted = (*counts.values(), *dtype.shape)
    if array.shape != wanted:
        axes = ", ".join(f"{axis} = {n}" for axis, n in counts.items())
        raise ValueError(
            f"{name}: must have the shape {wanted}{axes and f' with {axes}'}, got {array.shape}"
        )
    if array.dtype != dtype.base:
        array = _checked_cast(name, array, dtype.base)
    if name == "reward" and not are_rewards(array):
        raise ValueError(f"reward: must be finite (in {dtype.base}), got {array}")
    return array


def are_rewards(array: NDArray) -> bool:
    """Whether all are finite as float32. NaN fails the comparisons as well."""
    if array.size == 1:  # ten times as fast, for the one that an agent adds at every step
        return abs(array.item()) <= LARGEST_REWARD
    return bool((np.abs(array) <= LARGEST_REWARD).all())


def _checked_cast(name: str, array: NDArray, dtype: np.dtype) -> NDArray:
    """The array, if writing it as ``dtype`` changes no integer and no bool; else an error."""
    if dtype == np.bool_:
        if not ((array == 0) | (array == 1)).all():
            raise ValueError(f"{name}: must be True or False, got {array}")
    elif dtype.kind in "iu" and array.dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if array.size and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
            raise ValueError(
                f"{name}: must be in [{limits.min}, {limits.max}] ({dtype}), "
                f"got {array.min()} to {array.max()}"
            )
    elif array.dtype.kind != dtype.kind and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(f"{name}: must be {dtype}, got {array.dtype}")
    return array


def as_shape(name: str, shape: int | tuple[int, ...] | list[int]) -> tuple[int, ...]:
    """``shape`` as a tuple of ints of at least 1; a single int is the length of one axis."""
    dimensions = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(whole_number(name, dimension) for dimension in dimensions)
