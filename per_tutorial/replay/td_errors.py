"""Checks of TD errors before they reach a sampler: stored transitions, finite values."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import float_array
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Floats


@njit_cached
def are_valid(indices, td_errors, added):
    """Whether all `indices` (runs, batch) were added and all TD errors are within ±1e100."""
    for run in range(indices.shape[0]):
        for k in range(indices.shape[1]):
            if not (0 <= indices[run, k] < added[run] and abs(td_errors[run, k]) <= 1e100):
                return False
    return True


def errors_like(indices: NDArray[np.int64], td_errors: ArrayLike) -> Floats:
    """TD errors as floats, in the shape of ``indices``; ValueError if theirs differs."""
    errors = float_array("td_errors", td_errors)
    if errors.shape != indices.shape:
        raise ValueError(
            f"td_errors: must have the shape of indices {indices.shape}, got {errors.shape}"
        )
    return errors


def refuse(indices: NDArray[np.int64], td_errors: Floats, added: NDArray[np.int64]) -> None:
    """Raise the error for a value that `are_valid` rejected."""
    outside = (indices < 0) | (indices >= added[:, None])
    if outside.any():
        raise IndexError(
            f"indices: must be in [0, {added[outside.any(axis=1)].min()}), "
            f"got {indices[outside][0]}"
        )
    refuse_infinite(td_errors)


def refuse_infinite(td_errors: Floats) -> None:
    """Raise ValueError if one is NaN or too large: sums of priorities must stay finite."""
    wrong = ~(np.abs(td_errors) <= 1e100)  # NaN fails the comparison as well
    if wrong.any():
        raise ValueError(f"td_errors: must be finite (|δ| ≤ 1e100), got {td_errors[wrong][0]}")
