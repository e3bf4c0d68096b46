"""The machine, the versions and the classes behind a result."""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python (as "python") and of the installed ones of these packages, by name."""
    found = {"python": platform.python_version()}
    for name in packages:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def full_name(kind: type) -> str:
    """Module and name of a class, as files and checkpoints record it."""
    return f"{kind.__module__}.{kind.__qualname__}"


def processor() -> str:
    """The processor's model, or whatever the system reports instead."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
