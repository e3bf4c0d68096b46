"""Files and folders named by options: checked before the work, written after it."""

import os
from typing import TYPE_CHECKING

from per_tutorial.common.files import check_writable

if TYPE_CHECKING:
    from per_tutorial.dqn.history import History


def check_folders(**options: str | None) -> None:
    """Raise unless every path is a folder or does not exist yet; None: option not given."""
    for option, path in options.items():
        if path == "":
            raise ValueError(f"--{option}: must not be empty")
        if path and os.path.exists(path) and not os.path.isdir(path):
            raise NotADirectoryError(f"--{option}: {path!r} is not a folder")


def check_targets(**options: str | None) -> None:
    """Check before hours of work that the files can be written; None: nothing to write."""
    targets: dict[str, str] = {}
    for option, path in options.items():
        if path is None:
            continue
        check_writable(path, f"--{option}")
        other = targets.setdefault(os.path.realpath(path), option)
        if other != option:
            raise ValueError(f"--{option}: must not be the file of --{other}, {path!r}")


def save_results(history: "History", out: str | None, save: str | None) -> None:
    """Write a history and its agents, if requested; the agents even if the history fails."""
    try:
        if out is not None:
            history.save(out)
    finally:
        if save is not None:
            history.agent.save(save)
