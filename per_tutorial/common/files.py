"""Atomic writing (a file is the old one or the new one, never half of either) and reading."""

import errno
import io
import json
import math
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]
T = TypeVar("T")


# ---------------------------------------------------------------- writing


@contextmanager
def atomic_write(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path``; on success it replaces ``path`` in one step.

    A new file gets the permissions that the umask leaves, an existing one keeps its own. Symbolic
    links are followed. A device or FIFO, such as `/dev/stdout`, is written to directly.

    Raises:
        OSError: ``path`` cannot be written; an existing file is unchanged. The error names
            ``path``.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    opened = (
        _beside(path, mode)
        if mode is None or stat.S_ISREG(mode)
        else _open_special_file(path, mode)
    )
    try:
        with opened as file:
            yield file
    except OSError as error:
        if error.errno and error.filename is None:  # such as for a full disk
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def _beside(path: Path, mode: int | None) -> Iterator[IO[bytes]]:
    """A temporary file that replaces ``path``; ``mode`` is that of an existing file."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    # Never more than the final permissions; for a new file, the umask removes some.
    permissions = 0o666 if mode is None else stat.S_IMODE(mode)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        try:
            handle = os.open(temporary, flags, permissions)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, permissions)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _open_special_file(path: Path, mode: int) -> IO[bytes]:
    """Open a device or FIFO directly: it has no content that could be lost or half-written."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISSOCK(mode):
        raise OSError(errno.EOPNOTSUPP, "a socket cannot be written like a file", str(path))
    return _Stream(io.FileIO(path, "wb"))


class _Stream(io.BufferedWriter):
    """A writer that cannot seek: some devices answer every seek with 0, and zipfile believes it."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise io.UnsupportedOperation("a stream has no position")


def check_writable(path: PathLike, name: str = "path") -> None:
    """Raise an error before long work, rather than after it, if its result cannot be written.

    Args:
        path: what `atomic_write` will be called with.
        name: of the argument or option, for the error.

    Raises:
        FileNotFoundError: the folder of the file does not exist.
        IsADirectoryError: ``path`` is a folder.
        PermissionError: the folder, or the device at ``path``, is not writable.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{name}: {str(path)!r} is a folder")
    special = path.exists() and not path.is_file()
    place = path if special else Path(os.path.realpath(path)).parent
    if not special and not place.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder for {str(path)!r}")
    if not os.access(place, os.W_OK) or not (special or _takes_a_file(place)):
        raise PermissionError(f"{name}: {str(path)!r} cannot be written")


def _takes_a_file(folder: Path) -> bool:
    """Whether a file can be made in a folder; below `/proc`, for example, only trying shows."""
    trial = folder / f".{secrets.token_hex(8)}"
    try:
        os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        trial.unlink()
    except OSError:
        return False
    return True


@contextmanager
def locked(folder: PathLike) -> Iterator[bool]:
    """Hold the lock of a folder; wait while another process holds it.

    The lock leaves no file behind and ends with the process. It only excludes processes on this
    machine that ask for it too. Yields whether it is held: Windows and some network drives have no
    locks.
    """
    if fcntl is None:
        yield False
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            held = True
        except OSError:
            held = False
        yield held
    finally:
        os.close(handle)


# ---------------------------------------------------------------- arrays

MAX_HEADING = 16 * 2**20  # bytes of a heading, as NumPy holds its text: four for each character
MAX_MEMBERS = 10_000

Spec = tuple[np.dtype[Any], tuple[int, ...]]


def write_arrays(
    path: PathLike,
    heading_name: str,
    heading: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write an uncompressed `.npz` file: a heading as JSON under its name, and arrays. Atomic."""
    members: dict[str, Any] = {heading_name: np.array(json.dumps(heading)), **arrays}
    with atomic_write(path) as file:
        np.savez(file, **members)


class ArrayFile:
    """An `.npz` file that `write_arrays` made, read piece by piece; it need not be trusted.

    Opening it reads dtypes and shapes but no data: compare `specs` with what you expect, then
    `read`. Nothing is unpickled. Compressed members are rejected, so nothing takes more memory than
    the file takes on disk. Use it in a ``with`` statement.

    Args:
        path: the file.

    Attributes:
        specs: name → (dtype, shape) of every member, including the heading.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or not such a file.
    """

    def __init__(self, path: PathLike) -> None:
        if not Path(path).is_file():
            raise FileNotFoundError(f"path: no file {os.fspath(path)!r}")
        self._path = os.fspath(path)
        self._file = open(path, "rb")
        try:
            with self._errors_name_the_file():
                self._zip = zipfile.ZipFile(self._file)
                self._members = self._listed()
                self.specs: dict[str, Spec] = {
                    name: self._spec(member) for name, member in self._members.items()
                }
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def heading(self, name: str) -> dict[str, Any]:
        """The heading of this name. ValueError if it is damaged or missing."""
        with self._errors_name_the_file():
            dtype, shape = self.specs.get(name, (None, ()))
            if dtype is None or dtype.kind != "U" or shape != () or dtype.itemsize > MAX_HEADING:
                raise ValueError(f"{name} is not text of a reasonable length")
        text = str(self.read(name))
        with self._errors_name_the_file():
            heading = json.loads(text)
            if not isinstance(heading, dict):
                raise ValueError(f"{name} is not a JSON object")
        return heading

    def read(self, name: str) -> NDArray[Any]:
        """The array of this name, as in `specs`. ValueError if it is damaged."""
        member = self._members[name]
        with self._errors_name_the_file(), self._zip.open(member) as file:
            # zipfile checks the CRC when the last byte is read.
            array = np.lib.format.read_array(file, allow_pickle=False)
            if (array.dtype, array.shape) != self.specs[name]:
                raise ValueError(f"{name} changed while it was read")
            return array

    def _listed(self) -> dict[str, zipfile.ZipInfo]:
        """The members by array name; ValueError unless they look like those of `write_arrays`."""
        listed = self._zip.infolist()
        if len(listed) > MAX_MEMBERS:
            raise ValueError(f"{len(listed)} members")
        for member in listed:
            if not member.filename.endswith(".npy"):
                raise ValueError(f"{member.filename} is not an array")
            if (
                member.compress_type != zipfile.ZIP_STORED
                or member.file_size != member.compress_size
            ):
                raise ValueError(f"{member.filename} is compressed")
        members = {member.filename.removesuffix(".npy"): member for member in listed}
        if len(members) < len(listed):
            raise ValueError("two members have the same name")
        if sum(member.file_size for member in listed) > os.fstat(self._file.fileno()).st_size:
            raise ValueError("members overlap")
        return members

    def _spec(self, member: zipfile.ZipInfo) -> Spec:
        """Dtype and shape by the header of a member; ValueError unless its data have that size."""
        with self._zip.open(member) as file:
            version = np.lib.format.read_magic(file)
            if version not in _HEADERS:
                raise ValueError(f"{member.filename} has the unknown format {version}")
            try:
                shape, _, dtype = _HEADERS[version](file)
            except MemoryError:  # of the parser, at thousands of brackets
                raise ValueError(f"{member.filename} has an invalid header") from None
            if dtype.hasobject or not dtype.itemsize or any(length < 0 for length in shape):
                raise ValueError(f"{member.filename} cannot hold {dtype} of the shape {shape}")
            if file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
                raise ValueError(f"{member.filename} does not have the length that its header says")
        return dtype, shape

    @contextmanager
    def _errors_name_the_file(self) -> Iterator[None]:
        try:
            yield
        except MemoryError:
            raise
        except Exception as error:  # a flipped bit may claim anything, even an unknown compression
            raise ValueError(f"path: {self._path!r} is damaged or incomplete ({error})") from error


_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def join_parts(**parts: Mapping[str, T]) -> dict[str, T]:
    """The arrays of several dicts in one dict, with the keys ``PART.NAME``."""
    return {f"{part}.{name}": each[name] for part, each in parts.items() for name in each}


def part_of(arrays: Mapping[str, T], name: str) -> dict[str, T]:
    """The part of this name, as `join_parts` got it."""
    prefix = f"{name}."
    return {key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)}
