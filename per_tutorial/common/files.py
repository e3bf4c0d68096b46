"""Files that are whole or absent: atomic writing, and arrays that are checked before they are used.

A file of arrays is an uncompressed `.npz`: a heading as JSON, and arrays. Nothing is unpickled.
`open_arrays` reads its checksums through; then `require_like` compares names, dtypes and shapes
with one's own arrays, and `copy_arrays` reads into these.
"""

import json
import math
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

PathLike = str | os.PathLike[str]
T = TypeVar("T")

HEADING = "heading"
CHUNK = 2**20  # bytes that are read at once


@contextmanager
def atomic_write(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path``; on success it replaces ``path`` in one step.

    A new file gets the permissions that the umask leaves, an existing one keeps its own. Symbolic
    links are followed. If anything fails, an existing file is unchanged. Raises what
    `check_writable` raises.
    """
    check_writable(path)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, mode)  # whatever the umask is
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: PathLike, name: str = "path") -> None:
    """Raise an OSError before long work, rather than after it, if its result cannot be written.

    Args:
        path: what `atomic_write` will be called with.
        name: of the argument or option, for the error.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a folder; or a device, which would be replaced
        raise FileExistsError(f"{name}: must be a file, got {str(path)!r}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder for {str(path)!r}")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"{name}: {str(path)!r} cannot be written")


class SavedArray(NamedTuple):
    """An array in a file that `open_arrays` opened; its data are not in memory."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    file: zipfile.ZipFile
    member: str

    def copy_to(self, target: NDArray[Any]) -> None:
        """Read the data into an array of this dtype and shape, a piece at a time."""
        with self.file.open(self.member) as file:
            _header(file)
            for part in _contiguous_parts(target):
                data = part.reshape(-1).view(np.uint8).data
                for start in range(0, len(data), CHUNK):
                    piece = data[start : start + CHUNK]
                    piece[:] = file.read(len(piece))

    def read(self) -> NDArray[Any]:
        """A new array."""
        array = np.empty(self.shape, self.dtype)
        self.copy_to(array)
        return array


#: An array in memory, or one in an open file.
AnyArray = NDArray[Any] | SavedArray


def write_arrays(
    path: PathLike, heading: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a heading, which JSON can hold, and arrays. Atomic; copies nothing."""
    members = {HEADING: np.array(json.dumps(heading)), **arrays}
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = np.lib.format.header_data_from_array_1_0(array) | {"fortran_order": False}
                np.lib.format.write_array_header_2_0(member, header)
                for part in _contiguous_parts(array):
                    member.write(part.reshape(-1).view(np.uint8).data)


@contextmanager
def open_arrays(path: PathLike) -> Iterator[tuple[dict[str, Any], dict[str, SavedArray]]]:
    """The heading and the arrays of a file that `write_arrays` made.

    All data are read once to compare their checksums, so a damaged file is never half used.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or no such file, such as one of an earlier version.
    """
    shown = repr(os.fspath(path))
    if not Path(path).is_file():
        raise FileNotFoundError(f"path: no file {shown}")
    with open(path, "rb") as opened:
        try:
            archive = zipfile.ZipFile(opened)
            if broken := archive.testzip():
                raise ValueError(f"the checksum of {broken} differs")
            arrays = {
                member.filename.removesuffix(".npy"): _saved(archive, member)
                for member in archive.infolist()
            }
            if HEADING not in arrays:
                raise ValueError("it has no heading: another program or version wrote it")
            heading = json.loads(str(arrays.pop(HEADING).read()))
            if not isinstance(heading, dict):
                raise ValueError("the heading is not a JSON object")
        except Exception as error:  # a flipped bit may claim anything
            raise ValueError(
                f"path: {shown} is damaged, or is not such a file ({error})"
            ) from error
        yield heading, arrays


def require_like(own: Mapping[str, NDArray[Any]], saved: Mapping[str, AnyArray]) -> None:
    """Raise ValueError, "state: …", unless ``saved`` has arrays like all of one's ``own``."""
    for name, array in own.items():
        if name not in saved:
            raise ValueError(f"state: must have {name}, got {', '.join(saved) or 'nothing'}")
        other = saved[name]
        if (other.dtype, other.shape) != (array.dtype, array.shape):
            raise ValueError(
                f"state: {name} must be {array.dtype} of the shape {array.shape}, "
                f"got {other.dtype} of the shape {other.shape}"
            )


def copy_arrays(own: Mapping[str, NDArray[Any]], saved: Mapping[str, AnyArray]) -> None:
    """Copy ``saved`` into one's ``own`` arrays, which `require_like` has compared."""
    for name, array in own.items():
        other = saved[name]
        if isinstance(other, SavedArray):
            other.copy_to(array)
        else:
            array[...] = other


def join_parts(**parts: Mapping[str, T]) -> dict[str, T]:
    """The arrays of several dicts in one dict, with the keys ``PART.NAME``."""
    return {f"{part}.{name}": each[name] for part, each in parts.items() for name in each}


def part_of(arrays: Mapping[str, T], name: str) -> dict[str, T]:
    """The part of this name, as `join_parts` got it."""
    prefix = f"{name}."
    return {key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)}


def _saved(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> SavedArray:
    """Dtype and shape of a member; ValueError unless its data have the size that follows."""
    with archive.open(member) as file:
        shape, dtype = _header(file)
        if dtype.hasobject or file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError(f"{member.filename} is not an array")
    return SavedArray(dtype, shape, archive, member.filename)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of an array; its data come next in the file."""
    if np.lib.format.read_magic(file) != (2, 0):
        raise ValueError("unknown format of an array")
    shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    return shape, dtype


def _contiguous_parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Parts of an array in turn, each one block of memory, so that none is copied."""
    if array.flags.c_contiguous:
        yield array
    else:
        for part in array:
            yield from _contiguous_parts(part)
