"""Files that are either the old one or the new one, never half of either, and reading them again."""

import os
import tempfile
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np


@contextmanager
def atomic_write(path, mode="wb"):
    """Open a temporary file beside ``path``; on success it replaces ``path`` in one step."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, mode) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_arrays(path):
    """The arrays of an `.npz` file, a dict; nothing is unpickled.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or something else.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"path: no file {os.fspath(path)!r}")
    try:
        with zipfile.ZipFile(path) as file:
            broken = file.testzip()  # reads every member and checks its CRC, before any is parsed
        if broken is not None:
            raise ValueError(f"{broken} is not what was written")
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except MemoryError:
        raise
    except Exception as error:  # a flipped bit may claim anything, even an unknown compression
        raise ValueError(f"path: {os.fspath(path)!r} is damaged or incomplete ({error})") from error


def part_of(arrays, name):
    """Of a dict of arrays, those named ``NAME.REST``: a dict with the keys ``REST``."""
    prefix = f"{name}."
    return {key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)}
