"""Whether what has been promised fits into memory: one check for all buffers of a process.

NumPy's zeros take memory only when they are written, so a replay buffer that is too large is made
without complaint, and hours later the process is killed.
"""

import re
import warnings
import weakref
from pathlib import Path

_promised: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
_GROUPS = Path("/sys/fs/cgroup")  # of containers


def promise_memory(owner: object, name: str, nbytes: int) -> None:
    """Note that ``owner`` will fill ``nbytes``; warn if all owners need more than there is.

    Args:
        owner: what holds the memory; the promise ends with it.
        name: of the argument that makes it large, for the warning.
    """
    _promised[owner] = nbytes
    total, most = sum(_promised.values()), available_memory()
    if most is not None and total > most:
        warnings.warn(
            f"{name}: all replay buffers together will need {total / 1e9:.1f} GB when they are "
            f"full, and {most / 1e9:.1f} GB are available; choose a smaller one",
            stacklevel=4,
        )


def available_memory() -> int | None:
    """Bytes that this process has or can still get; None where the system does not say (Linux).

    The limit of a container counts as well. What the process holds is part of it, since that may be
    what was promised.
    """
    try:
        free = _kilobytes("/proc/meminfo", "MemAvailable")
        own = _kilobytes("/proc/self/status", "VmRSS")
    except OSError:
        return None
    limits = [free + own]
    for limit in (_GROUPS / "memory.max", _GROUPS / "memory/memory.limit_in_bytes"):
        try:
            limits.append(int(limit.read_text()))
        except (OSError, ValueError):  # no container, or "max"
            continue
    return min(limits)


def _kilobytes(path: str, name: str) -> int:
    """The bytes in a line of a file such as "MemAvailable:  2048 kB"."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(path).read_text(encoding="utf-8"))
    return 1024 * int(found[1]) if found else 0
