"""The decorator that compiles loops."""

from collections.abc import Callable
from typing import Any

from numba import njit


def njit_cached(function: Callable | None = None, **options: Any) -> Any:
    """``numba.njit`` that caches the machine code on disk if it can.

    numba writes beside the source file, or else below the user's home. If neither is writable (root
    installed the package, and the user has no home), every process compiles for itself.
    """

    def compiled(function: Callable) -> Any:
        try:
            return njit(function, cache=True, **options)
        except RuntimeError:  # numba: "no locator available"
            return njit(function, **options)

    return compiled if function is None else compiled(function)
