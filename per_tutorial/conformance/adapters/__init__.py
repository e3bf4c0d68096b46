"""Adapters by name: those of this package's buffers, alone and inside other libraries."""

import importlib
import importlib.util
import os

from per_tutorial.conformance.adapter import Adapter, as_adapter

#: name → module and class, which are imported when needed.
#:
#: >>> ADAPTERS["proportional"]
#: 'ours:Proportional'
ADAPTERS = {
    "proportional": "ours:Proportional",
    "rank": "ours:RankBased",
    "uniform": "ours:Uniform",
    "plain": "ours:PlainAdapter",
    "our-sb3": "integrations:OurSB3",
    "our-tianshou": "integrations:OurTianshou",
    "our-torchrl": "integrations:OurTorchRL",
}


def find_adapter(name: str) -> Adapter:
    """The adapter with a name in `ADAPTERS`, or from ``path/to/file.py:ClassName``.

    Raises:
        ValueError: there is no such adapter, or the file has no such class, or cannot be run.
        TypeError: the class is not an adapter.
        FileNotFoundError: there is no such file.
        ImportError: the library is not installed.

    Example:
        >>> from per_tutorial.conformance import find_adapter
        >>> find_adapter("rank").distribution
        'rank'
    """
    if name in ADAPTERS:
        place, _, kind = ADAPTERS[name].partition(":")
        return getattr(importlib.import_module(f"{__name__}.{place}"), kind)()
    path, colon, kind = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        known = f"{', '.join(ADAPTERS)}, or file.py:ClassName"
        raise ValueError(f"NAME: must be one of {known}, got {name!r}")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"NAME: no file {path!r}")
    spec = importlib.util.spec_from_file_location("examined", path)
    assert spec is not None and spec.loader is not None  # it ends in .py
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"NAME: {path!r} cannot be run: {said}") from error
    found = getattr(module, kind, None)
    if not isinstance(found, type):
        raise ValueError(f"NAME: {path!r} has no class {kind!r}")
    return as_adapter(found)
