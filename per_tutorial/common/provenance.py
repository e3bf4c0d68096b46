"""What a result was made on and with."""

import platform
from importlib.metadata import PackageNotFoundError, version


def versions(*packages: str) -> dict[str, str]:
    """The version of Python, under "python", then those of the packages, under their names.

    A package that is not installed is left out. None is imported.
    """
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            pass
    return found


def processor() -> str:
    """The processor's model, as far as the system tells it."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
