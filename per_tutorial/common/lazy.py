"""Names that are imported when they are first used, so that a package loads nothing heavy by itself."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` (PEP 562) of a package.

    Type checkers and editors see none of this: the package also imports the same names under
    ``if TYPE_CHECKING``. A test holds the two lists together.

    Args:
        package: its ``__name__``.
        homes: module, relative to the package → the names that it holds.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next use is an ordinary one
        return value

    return list(home_of), get, lambda: sorted({*vars(sys.modules[package]), *home_of})
