"""The arrays of a replay buffer: one each, or a dict of them for Dict observations."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import psutil
except ImportError:  # SB3 does without it, too
    psutil = None


def for_each(function: Callable[..., Any], arrays: Any) -> Any:
    """Apply a function to an array, or to each array in a dict."""
    if isinstance(arrays, dict):
        return {key: function(array) for key, array in arrays.items()}
    return function(arrays)


def grown(array: NDArray, rows: int) -> NDArray:
    """``array`` padded with zeros to this many rows."""
    if len(array) == rows:
        return array
    longer = np.zeros((rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def warn_if_too_large(size: int) -> None:
    """Warn if the buffer exceeds the available memory: arrays of zeros are allocated lazily."""
    available = None if psutil is None else psutil.virtual_memory().available
    if available is not None and size > available:
        warnings.warn(
            f"The replay buffer will need {size / 1e9:.1f} GB when it is full, and the machine has "
            f"{available / 1e9:.1f} GB left. For stacked pictures, FrameReplayBuffer needs an "
            f"eighth.",
            stacklevel=4,
        )
