"""Checks of a state before it is used: names, types, shapes, ranges.

A *state* is a dict of arrays in a checkpoint. It may come from a file, so it cannot be trusted, and
compiled code would follow a wrong index out of its arrays. Every component therefore declares a
*schema*, and `checked_state` checks a state against it before anything is written.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


class ArraySpec(NamedTuple):
    """What one array of a state must be.

    Attributes:
        dtype: exactly this one.
        shape: a length for each axis, or a `range` of lengths.
        low, high: bounds of all numbers, which exclude NaN; both None: any number or NaN.
    """

    dtype: DTypeLike
    shape: tuple[int | range, ...]
    low: float | None = None
    high: float | None = None


Schema = Mapping[str, ArraySpec]
State = dict[str, NDArray]


def fits(spec: ArraySpec, dtype: np.dtype, shape: tuple[int, ...]) -> bool:
    """Whether a dtype and a shape fit the spec; numbers are not checked."""
    return (
        dtype == np.dtype(spec.dtype)
        and len(shape) == len(spec.shape)
        and all(
            length in allowed if isinstance(allowed, range) else length == allowed
            for length, allowed in zip(shape, spec.shape, strict=True)
        )
    )


def wanted(spec: ArraySpec) -> str:
    """A spec in words, such as "int64 of the shape (3, 0 to 5)"."""
    lengths = [
        f"{allowed.start} to {allowed.stop - 1}" if isinstance(allowed, range) else str(allowed)
        for allowed in spec.shape
    ]
    shape = f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})"
    return f"{np.dtype(spec.dtype)} of the shape {shape}"


def checked_state(state: Mapping[str, ArrayLike], schema: Schema) -> State:
    """The arrays that a schema names, each checked against it.

    Raises:
        ValueError: one is missing or does not fit; "state: …" names it.
    """
    missing = [name for name in schema if name not in state]
    if missing:
        raise ValueError(f"state: lacks {', '.join(missing)}")
    arrays = {name: np.asarray(state[name]) for name in schema}
    for name, spec in schema.items():
        array = arrays[name]
        if not fits(spec, array.dtype, array.shape):
            raise ValueError(
                f"state: {name} must be {wanted(spec)}, got {array.dtype} of the shape "
                f"{array.shape}"
            )
        low = -np.inf if spec.low is None else spec.low
        high = np.inf if spec.high is None else spec.high
        if (spec.low, spec.high) != (None, None) and not ((array >= low) & (array <= high)).all():
            raise ValueError(f"state: {name} must be in [{low:g}, {high:g}] everywhere")
    return arrays
