"""Checks of arguments: the error names the argument, what came and what is allowed."""

import math

import numpy as np


def whole_number(name, value, minimum=1):
    """``value`` as an int of at least ``minimum``; TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name}: must be at least {minimum}, got {value}")
    return int(value)


def real_number(name, value, low=-math.inf, high=math.inf, *, above=None):
    """``value`` as a finite float in [low, high], and > ``above`` if that is given."""
    if isinstance(value, bool) or not isinstance(value, (float, int, np.floating, np.integer)):
        raise TypeError(f"{name}: must be a number, got {value!r}")
    if above is not None and not value > above:
        raise ValueError(f"{name}: must be greater than {above:g}, got {value}")
    if not (low <= value <= high and math.isfinite(value)):
        allowed = "finite" if low == -high == -math.inf else f"in [{low:g}, {high:g}]"
        raise ValueError(f"{name}: must be {allowed}, got {value}")
    return float(value)


def one_of(name, value, allowed):
    """``value`` if it is among ``allowed``; ValueError with the choices otherwise."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}: must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def index_array(name, values):
    """``values`` as an int64 array; TypeError unless they are integers."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name}: must be integers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def float_array(name, values):
    """``values`` as a float64 array; TypeError unless they are real numbers."""
    if hasattr(values, "detach"):  # a torch tensor, on any device, with or without gradient
        values = values.detach().cpu()
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name}: must be numbers, got {array.dtype}")
    return array.astype(np.float64, copy=False)
