"""Staged rows: transitions are checked and converted here before they are written into the ring.

An agent adds a transition at every step, nearly always with fields of exactly the stored types and
shapes. Such a field is written directly into a staged row; any other one is converted first, or
rejected. One compiled call (`write_rows`) then copies the row into its slot.
"""

import math
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import plain_array
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Fields
from per_tutorial.replay.intrinsics import copy_bytes
from per_tutorial.replay.storages.ring import LARGEST_REWARD, are_rewards, as_field

PLAIN = {"b": bool, "i": int, "u": int, "f": float}  # Python's types of a single number
OBSERVATIONS = ("observation", "next_observation")


@njit_cached
def write_rows(memory, capacity, added, columns, offsets, row_size, slots, counts):
    """Copy rows to `slots` (runs, n) in the bytes `memory`; negative slots are skipped.

    `added` (runs,) becomes `counts`. The last row for a slot stays.

    Args:
        columns: the bytes of whole rows, or of each of their fields; (runs, n) items each.
        offsets: (columns,) the offset of each in a row.
    """
    runs, n = slots.shape
    for column in range(len(columns)):
        size = len(columns[column]) // max(runs * n, 1)
        for run in range(runs):
            for k in range(n):
                if slots[run, k] >= 0:
                    start = (run * capacity + slots[run, k]) * row_size + offsets[column]
                    copy_bytes(columns[column], (run * n + k) * size, memory, start, size)
    added[:] = counts


@njit_cached
def find_nan(numbers, firsts, row_length, count):
    """Whether any row has a NaN among the `count` numbers that start at any of `firsts`.

    `numbers` are those of all rows in turn, `row_length` per row.
    """
    nan = False  # no early exit, so that the loop is vectorised
    for first in firsts:
        for start in range(first, len(numbers), row_length):
            for k in range(start, start + count):
                nan |= numbers[k] != numbers[k]
    return nan


class StagedRows:
    """One row per run, to be written into the ring.

    Args:
        runs: number of runs.
        dtype: of the rows, whose fields are those of a `Transition`.

    Attributes:
        memory: the bytes of the rows, run after run.
        offsets: (fields,) the offset of each field in a row.
    """

    def __init__(self, runs: int, dtype: np.dtype) -> None:
        self.dtype = dtype
        self._names = dtype.names or ()
        self.rows = np.zeros(runs, dtype)
        self.memory = self.rows.view(np.uint8)
        self.offsets = np.array([dtype.fields[name][1] for name in self._names])  # type: ignore[index]
        self._nowhere = np.zeros(runs, dtype=bool)
        fields = [(name, self.rows[name]) for name in self._names]
        self._of_runs = [_target(name, field) for name, field in fields]
        self._of_one = [_target(name, field[:1].reshape(field.shape[1:])) for name, field in fields]
        number = dtype["observation"].base
        self._may_be_nan = number.kind in "fc"
        self._numbers: tuple[Any, ...] | None = None  # for `find_nan`, if it knows the type
        if number in (np.float32, np.float64):
            starts = [dtype.fields[name][1] // number.itemsize for name in OBSERVATIONS]  # type: ignore[index]
            row_length, count = dtype.itemsize // number.itemsize, dtype["observation"].shape
            self._numbers = self.rows.view(number), np.array(starts), row_length, math.prod(count)

    def fill(self, transition: Fields, valid: NDArray[np.bool_], stacked: bool) -> None:
        """Write a transition of each run; fields are (runs, ...), or (...) if not ``stacked``.

        ``truncated`` may be a single False. Raises ValueError or TypeError for a field that does
        not fit, and ValueError for a NaN in an observation of a ``valid`` (runs,) run.
        """
        if stacked and transition[5] is False:
            transition = (*transition[:5], self._nowhere)
        if not _is_reward(transition[2]):
            self._convert("reward", transition[2], stacked)  # raises
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
        if self._may_be_nan and (self._numbers is None or find_nan(*self._numbers)):
            for name in OBSERVATIONS:
                self._refuse_nan(name, self.rows[name][valid])

    def _convert(self, name: str, value: ArrayLike, stacked: bool) -> NDArray:
        """The value as an array that fits its field, or ValueError or TypeError."""
        runs = {"runs": len(self.rows)} if stacked else {}
        return self._as_field(name, value, runs)

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

    def columns(self, transitions: Fields, stacked: bool) -> tuple[NDArray[np.uint8], ...]:
        """The bytes of fields shaped (runs, n, ...), or (n, ...) if not ``stacked``.

        Fields already in the stored type and layout are not copied. Raises what `fill` raises.
        """
        arrays = [plain_array(*field) for field in zip(self._names, transitions, strict=True)]
        counts = {"runs": len(self.rows)} if stacked else {}
        counts["transitions"] = (*arrays[0].shape, 1, 1)[len(counts)]
        columns = []
        for name, array in zip(self._names, arrays, strict=True):
            field = self._as_field(name, array, counts)
            field = np.ascontiguousarray(field, self.dtype[name].base)
            self._refuse_nan(name, field)
            columns.append(field.reshape(-1).view(np.uint8))
        return tuple(columns)

    def _refuse_nan(self, name: str, field: NDArray) -> None:
        if self._may_be_nan and name in OBSERVATIONS and np.isnan(field).any():
            raise ValueError(f"{name}: must have no NaN, got {field}")


def _target(name: str, field: NDArray) -> tuple[str, NDArray, tuple, tuple[int, ...], tuple]:
    """Name and view of a field; the dtypes, the shape and the scalar types that fit it as is."""
    # Most environments return rewards as float64.
    dtypes = (field.dtype, *([np.dtype(np.float64)] if name == "reward" else []))
    types = (PLAIN.get(field.dtype.kind, object), *(dtype.type for dtype in dtypes))
    return name, field, dtypes, field.shape, () if field.shape else types


def _is_reward(value: Any) -> bool:
    """False for a float, or an array of floats, that is not finite as float32."""
    if type(value) is ndarray:
        return value.dtype.kind != "f" or are_rewards(value)
    return not isinstance(value, (float, np.floating)) or abs(float(value)) <= LARGEST_REWARD
