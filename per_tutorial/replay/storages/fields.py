"""What the fields of a transition may be: conversions that change no value, or an error."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import plain_array, whole_number


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
        _check_cast(name, array, dtype.base)
    if dtype.base.kind in "fc" and name != "action":
        if array.dtype == dtype.base:
            fits = np.isfinite(array)
        else:
            fits = np.abs(array) <= np.finfo(dtype.base).max  # NaN fails the comparison as well
        if not fits.all():
            raise ValueError(f"{name}: must be finite (in {dtype.base}), got {array[~fits][0]}")
    return array.astype(dtype.base, copy=False)


def as_shape(name: str, shape: int | tuple[int, ...] | list[int]) -> tuple[int, ...]:
    """``shape`` as a tuple of ints of at least 1; a single int is the length of one axis."""
    dimensions = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(whole_number(name, dimension) for dimension in dimensions)


def _check_cast(name: str, array: NDArray, dtype: np.dtype) -> None:
    """Raise an error if writing the array as ``dtype`` would change an integer or a bool."""
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
    elif dtype.kind == "f" and array.dtype.itemsize >= dtype.itemsize and name != "reward":
        exact = 2 ** (np.finfo(dtype).nmant + 1)  # beyond this, not even integers are exact
        large = (np.abs(array) > exact) & np.isfinite(array)
        if large.any():
            said = f"{name}: {dtype} rounds numbers beyond {exact}"
            hint = "a storage can have another dtype"
            if array.dtype.kind in "iu":
                raise ValueError(f"{said}, got {array[large][0]} ({hint})")
            # Once for each place that calls `add`, so without the number
            warnings.warn(f"{said}; {hint}", stacklevel=8)
