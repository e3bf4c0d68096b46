"""How the loops of this room are compiled."""

from collections.abc import Callable
from typing import Any

from numba import njit


def njit_cached(function: Callable | None = None, **options: Any) -> Any:
    """``numba.njit`` that keeps the machine code on disk, where there is a place for it.

    numba writes beside the source file, or else below the user's home. A package that root
    installed, run by a user without a home, has neither: then every process compiles by itself.
    """

    def compiled(function: Callable) -> Any:
        try:
            return njit(function, cache=True, **options)
        except RuntimeError:  # numba: "no locator available"
            return njit(function, **options)

    return compiled if function is None else compiled(function)
