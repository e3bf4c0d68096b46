"""The short way of a transition into a storage: no arrays are made, and one compiled call writes it.

An agent adds a transition at every step, nearly always with fields of the very types and shapes that
are kept. These go, field by field, into a row beside the ring, and from there into their slot. What
is interrupted before the compiled call has changed nothing; the call itself cannot be interrupted.
"""

from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.copying import copy_bytes
from per_tutorial.replay.storages.ring import LARGEST_REWARD, are_rewards

UINT8 = np.dtype(np.uint8)
REWARDS = (float, np.float32, np.float64)
PLAIN = {"b": bool, "i": int, "u": int, "f": float}  # Python's types of a single number


@njit_cached
def put_rows(memory, capacity, added, rows, row_size, valid, slots, counts):
    """Copy a row of each run, from the bytes `rows`, to its next slot in the bytes `memory`.

    Runs that are not `valid` have nothing to add. Written: `added` (runs,), the `slots` (runs, 1), −1
    where there is nothing to add, and what is in `added` then into `counts` (runs,).
    """
    for run in range(len(added)):
        slots[run, 0] = -1
        if valid[run]:
            slots[run, 0] = added[run] % capacity
            place = run * capacity + slots[run, 0]
            copy_bytes(rows, run * row_size, memory, place * row_size, row_size)
            added[run] += 1
        counts[run] = added[run]


@njit_cached
def put_columns(memory, capacity, added, columns, row_size, offsets, slots, counts):
    """`put_rows` of the next n transitions of each run, from the bytes of each field in `columns`.

    Args:
        offsets: (fields,) where in a row each field begins.
        slots: (runs, n).
    """
    runs, n = slots.shape
    for run in range(runs):
        for k in range(n):
            slots[run, k] = (added[run] + k) % capacity
    for field in range(len(columns)):
        size = len(columns[field]) // (runs * n)
        for run in range(runs):
            for k in range(n):
                place = (run * capacity + slots[run, k]) * row_size + offsets[field]
                copy_bytes(columns[field], (run * n + k) * size, memory, place, size)
    for run in range(runs):
        added[run] += n
        counts[run] = added[run]


# Where the values of a field are written, of which dtypes and shape they must be to be written as they
# are, and of which types if they are a single number. (Plain tuples, which are unpacked the fastest.)
Place = tuple[NDArray, tuple[np.dtype, ...], tuple[int, ...], tuple[type, ...]]


class StagedRows:
    """A row of each run on its way into the ring.

    Args:
        runs: number of runs.
        dtype: of the rows, whose fields are those of a `Transition`.

    Attributes:
        memory: the bytes of the rows, run after run.
    """

    def __init__(self, runs: int, dtype: np.dtype) -> None:
        self.runs, self.dtype = runs, dtype
        rows = np.zeros(runs, dtype)
        self.memory = rows.view(np.uint8)
        fields = {name: rows[name] for name in dtype.names or ()}
        self.offsets = np.array([dtype.fields[name][1] for name in fields])  # type: ignore[index]
        self._of_runs = [_place(name, field) for name, field in fields.items()]
        self._of_one = [
            _place(name, field[:1].reshape(field.shape[1:])) for name, field in fields.items()
        ]

    def fill(self, fields: tuple[ArrayLike, ...], stacked: bool) -> bool:
        """Write the rows; False if a field is not of the type and shape that is kept.

        Args:
            fields: those of a `Transition`, in the same order.
            stacked: whether they begin with an axis for runs.
        """
        if not _are_rewards(fields[2]):
            return False
        places = self._of_runs if stacked else self._of_one
        try:
            # `strict` would add a third to the time.
            for value, (target, dtypes, shape, numbers) in zip(fields, places):  # noqa: B905
                if type(value) is ndarray:
                    if value.dtype not in dtypes or value.shape != shape:
                        return False
                elif type(value) not in numbers:
                    return False
                target[...] = value
        except OverflowError:  # an int that its field cannot hold
            return False
        return True

    def columns(
        self, fields: tuple[ArrayLike, ...], n: int, stacked: bool
    ) -> tuple[NDArray[np.uint8], ...] | None:
        """The bytes of fields shaped (runs, n, ...), or (n, ...); None where `fill` says False."""
        axes, bytes_of = ((self.runs, n) if stacked else (n,)), []
        if not _are_rewards(fields[2]):
            return None
        for value, (_, dtypes, shape, _) in zip(fields, self._of_runs, strict=True):
            if type(value) is not ndarray or value.dtype not in dtypes:
                return None
            if value.shape != axes + shape[1:]:
                return None
            if value.dtype != dtypes[0]:
                value = value.astype(dtypes[0])
            bytes_of.append(np.ascontiguousarray(value).reshape(-1).view(UINT8))
        return tuple(bytes_of)


def _place(name: str, target: NDArray) -> Place:
    shape = target.shape
    # Most environments return rewards as float64.
    dtypes = (target.dtype, *([np.dtype(np.float64)] if name == "reward" else []))
    numbers = (PLAIN.get(target.dtype.kind, object), *(dtype.type for dtype in dtypes))
    return target, dtypes, shape, () if shape else numbers


def _are_rewards(value: Any) -> bool:
    """Whether these are floats that fit into a float32."""
    if type(value) is ndarray:
        return value.dtype.kind == "f" and are_rewards(value)
    return type(value) in REWARDS and abs(value) <= LARGEST_REWARD
