"""Whether what has been promised fits into memory: one check for all buffers of a process.

NumPy's zeros take memory only when they are written, so a replay buffer that is too large is made
without complaint, and hours later the process is killed.
"""

import re
import warnings
import weakref
from pathlib import Path

_promised: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()


def promise_memory(owner: object, name: str, nbytes: int) -> None:
    """Note that ``owner`` may fill ``nbytes`` while it lives; warn, with this name of the argument
    that makes it large, if all owners need more than there is."""
    _promised[owner] = nbytes
    total, most = sum(_promised.values()), available_memory()
    if most is not None and total > most:
        warnings.warn(
            f"{name}: all replay buffers together will need {total / 1e9:.1f} GB when they are "
            f"full, and {most / 1e9:.1f} GB are available; choose a smaller one",
            stacklevel=4,
        )


def available_memory() -> int | None:
    """Bytes that this process holds or can still get; None where the system doesn't say."""
    try:
        texts = [Path(f"/proc/{name}").read_text("utf-8") for name in ("meminfo", "self/status")]
    except OSError:
        return None
    found = re.findall(r"(?:MemAvailable|VmRSS):\s+(\d+) kB", "".join(texts))
    return 1024 * sum(map(int, found))
