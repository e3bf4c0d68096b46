"""Files and folders that options name: checked before the work, written after it."""

import os
from collections.abc import Callable

from per_tutorial.common.files import check_writable


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


def write_all(*writers: Callable[[], None]) -> None:
    """Call every one, even where an earlier one cannot write; raise what went wrong at the end."""
    failures = []
    for write in writers:
        try:
            write()
        except OSError as error:
            failures.append(str(error))
    if failures:
        raise OSError("; ".join(failures))
