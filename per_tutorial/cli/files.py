"""Files and folders that options name: checked before the work, written after it."""

import os
from typing import TYPE_CHECKING

from per_tutorial.common.files import check_writable

if TYPE_CHECKING:
    from per_tutorial.dqn.history import History


def check_folders(**options: str | None) -> None:
    """An option that names a folder must name one; None: it was not given."""
    for option, path in options.items():
        if path == "":
            raise ValueError(f"--{option}: must name a folder, got nothing")
        if path and os.path.exists(path) and not os.path.isdir(path):
            raise NotADirectoryError(f"--{option}: {path!r} is no folder")


def check_targets(**options: str | None) -> None:
    """Say now, not after hours, that a file could not be written; None: nothing to write."""
    targets: dict[str, str] = {}
    for option, path in options.items():
        if path is None:
            continue
        if not path:
            raise ValueError(f"--{option}: must name a file, got nothing")
        check_writable(path, f"--{option}")
        other = targets.setdefault(os.path.realpath(path), option)
        if other != option:
            raise ValueError(f"--{option}: must not be the file of --{other}, {path!r}")


def save_results(history: "History", out: str | None, save: str | None) -> None:
    """Write a history and its agents where that was asked for; where one fails, the other still is.

    OSError, when both were tried, says what went wrong.
    """
    assert history.agent is not None, "a training leaves its agent"
    failures = []
    for result, path in ((history, out), (history.agent, save)):
        try:
            if path is not None:
                result.save(path)
        except OSError as error:
            failures.append(str(error))
    if failures:
        raise OSError("; ".join(failures))
