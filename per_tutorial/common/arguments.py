"""Checks of arguments: errors name the argument, its value and what is allowed."""

from collections.abc import Collection
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 2**63 - 1  # int64, for arrays and compiled code


def whole_number(name: str, value: Any, minimum: int = 1, maximum: int | None = LARGEST) -> int:
    """``value``, an int or a NumPy integer, as an int; TypeError or ValueError otherwise.

    Without a ``maximum`` (None) it may be larger than an int64.
    """
    if type(value) is int and maximum is not None and minimum <= value <= maximum:
        return value  # fast path: this is called at every step
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name}: must be at least {minimum}, got {value}")
    if maximum is not None and value > maximum:
        raise ValueError(f"{name}: must be at most {maximum}, got {value}")
    return int(value)


def real_number(
    name: str, value: Any, low: float = -inf, high: float = inf, *, above: float | None = None
) -> float:
    """``value`` as a finite float in [low, high], and > ``above`` if that is given."""
    if isinstance(value, bool) or not isinstance(value, (float, int, np.floating, np.integer)):
        raise TypeError(f"{name}: must be a number, got {value!r}")
    if above is not None and not value > above:
        raise ValueError(f"{name}: must be greater than {above:g}, got {value}")
    if not (low <= value <= high and isfinite(value)):
        allowed = "finite" if low == -high == -inf else f"in [{low:g}, {high:g}]"
        raise ValueError(f"{name}: must be {allowed}, got {value}")
    return float(value)


def up_to_one(name: str, value: Any) -> float:
    """``value`` as a float in [0, 1]; up to 1e-6 above 1 counts as a rounding error."""
    if type(value) is float and 0 <= value <= 1:
        return value  # fast path: this is called at every step
    return min(real_number(name, value, 0, 1 + 1e-6), 1.0)


def one_of(name: str, value: Any, allowed: Collection[str]) -> str:
    """``value`` if it is among ``allowed``; else a ValueError that lists them."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}: must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def index_array(name: str, values: Any) -> NDArray[np.int64]:
    """``values`` as an int64 array: TypeError unless they are integers, ValueError if too large."""
    if type(values) is np.ndarray and values.dtype == np.int64:  # as in a minibatch
        return values
    array = plain_array(name, values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name}: must be integers, got {array.dtype}")
    if array.dtype == np.uint64 and array.max(initial=0) > LARGEST:  # it would wrap around
        raise ValueError(f"{name}: must be at most {LARGEST}, got {array.max()}")
    return array.astype(np.int64, copy=False)


def indices_below(limit: int, indices: Any) -> NDArray[np.int64]:
    """``indices`` as an int64 array: IndexError unless all are in [0, limit)."""
    array = index_array("indices", indices)
    outside = (array < 0) | (array >= limit)
    if outside.any():
        raise IndexError(f"indices: must be in [0, {limit}), got {array[outside].flat[0]}")
    return array


def by_run(name: str, array: NDArray, runs: int | None) -> NDArray:
    """``array`` as (runs, batch), or ValueError; for None, an array of any shape is one run's."""
    if runs is None:
        return array.reshape(1, -1)
    if array.ndim != 2 or len(array) != runs:
        raise ValueError(f"{name}: must have the shape ({runs}, batch), got {array.shape}")
    return array


def float_array(name: str, values: Any) -> NDArray[np.float64]:
    """``values`` as a float64 array; TypeError unless they are real numbers."""
    if type(values) is np.ndarray and values.dtype == np.float64:  # as in a minibatch
        return values
    array = plain_array(name, values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name}: must be numbers, got {array.dtype}")
    return array.astype(np.float64, copy=False)


def plain_array(name: str, values: Any) -> NDArray[Any]:
    """A torch tensor, or what `numpy.asarray` takes, as an array; ValueError for masked entries."""
    if type(values) is np.ndarray:  # by far the most frequent case
        return values
    if hasattr(values, "detach"):  # a torch tensor, on any device, with or without gradient
        values = values.detach().cpu()
        if "bfloat16" in str(values.dtype):  # autocast gives it, and NumPy has none
            values = values.float()
    if np.ma.is_masked(values):  # `asarray` would treat what is under the mask as data
        raise ValueError(f"{name}: must have no masked entries, got {np.ma.count_masked(values)}")
    return np.asarray(values)
