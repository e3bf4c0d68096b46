"""Files that are whole or absent: atomic writing, tables, and arrays that are checked before use.

A file of arrays is an uncompressed `.npz`: a heading as JSON, and arrays. Nothing is unpickled.
`open_arrays` first compares their checksums, so a damaged file is never half used;
`require_settings` compares the heading, and `require_like` names, dtypes and shapes, with one's
own; `copy_arrays` reads into one's own arrays.
"""

import csv
import gzip
import io
import json
import math
import os
import secrets
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

PathLike = str | os.PathLike[str]


@contextmanager
def atomic_write(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path``; on success it replaces ``path`` in one step.

    A new file gets the permissions that the umask leaves, an existing one keeps its own. Links are
    followed. If anything fails, an existing file is unchanged. Raises what `check_writable` does.
    """
    check_writable(path)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            if target.exists():
                shutil.copymode(target, temporary)  # before anybody can read what is private
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: PathLike, name: str = "path") -> None:
    """Raise an OSError, with this name of the argument, if `atomic_write` could not write there.

    Call it before long work, rather than lose its result.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a folder; or a device, which would be replaced
        raise FileExistsError(f"{name}: must be a file, got {str(path)!r}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder for {str(path)!r}")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"{name}: {str(path)!r} cannot be written")


def write_table(
    path: PathLike, heading: Mapping[str, Any], columns: Sequence[str], rows: Iterable[Any]
) -> None:
    """Write a table: "# JSON" in the first line, then CSV with a line of column names. Atomic.

    `pandas.read_csv(path, comment="#")` reads it, too. The same content makes the same bytes, and
    no float loses a bit. If the path ends in ".gz", the file is compressed. The number of rows is
    added to the heading as "rows", so that a truncated file can be noticed.
    """
    rows = list(rows)
    text = io.StringIO()
    text.write(f"# {json.dumps({**heading, 'rows': len(rows)})}\n")
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    data = text.getvalue().encode()
    if str(path).endswith(".gz"):
        data = gzip.compress(data, mtime=0)  # without the time of writing
    with atomic_write(path) as file:
        file.write(data)


class SavedArray(NamedTuple):
    """An array in a file that `open_arrays` opened; its data are not in memory."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    file: zipfile.ZipFile
    member: str
    start: int  # of the data, in bytes

    def copy_to(self, target: NDArray[Any]) -> None:
        """Read the data into an array of this dtype and shape, a piece at a time."""
        flags: Any = ["external_loop", "buffered", "zerosize_ok"]
        size = max(1, 2**20 // self.dtype.itemsize)  # a MiB at once
        pieces: Any = np.nditer(target, flags, ["writeonly"], order=self.order, buffersize=size)
        with self.file.open(self.member) as file, pieces:
            file.seek(self.start)
            for piece in pieces:
                piece[...] = np.frombuffer(file.read(piece.nbytes), self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """A new array, such as `np.asarray` asks for."""
        array = np.empty(self.shape, self.dtype)
        self.copy_to(array)
        return array


#: An array in memory, or one in an open file.
AnyArray = NDArray[Any] | SavedArray


def write_arrays(
    path: PathLike, heading: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a heading, which JSON can hold, and arrays. Atomic; copies no array."""
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in {"heading": np.array(json.dumps(heading)), **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, (2, 0), allow_pickle=False)


@contextmanager
def open_arrays(path: PathLike) -> Iterator[tuple[dict[str, Any], dict[str, SavedArray]]]:
    """The heading and the arrays of a file that `write_arrays` made.

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
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            arrays = {name: _saved(archive, name) for name in names}
            heading = json.loads(str(np.asarray(arrays.pop("heading"))))
            if not isinstance(heading, dict):
                raise ValueError("the heading is not a JSON object")
        except Exception as error:  # a flipped bit may claim anything
            said = f"path: {shown} is damaged, or is not such a file ({error})"
            raise ValueError(said) from error
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


def require_settings(what: str, own: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
    """Raise ValueError, "``what`` was saved with …", unless all of one's ``own`` settings match."""
    differences = [
        f"{name} = {saved.get(name)!r}, not {value!r}"
        for name, value in own.items()
        if saved.get(name) != value
    ]
    if differences:
        raise ValueError(f"{what} was saved with {'; '.join(differences)}")


def copy_arrays(own: Mapping[str, NDArray[Any]], saved: Mapping[str, AnyArray]) -> None:
    """Copy ``saved`` into one's ``own`` arrays, which `require_like` has compared."""
    for name, array in own.items():
        other = saved[name]
        if isinstance(other, SavedArray):
            other.copy_to(array)
        else:
            array[...] = other


def join_parts(**parts: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of several dicts in one dict, with the keys ``PART.NAME``."""
    return {f"{part}.{name}": each[name] for part, each in parts.items() for name in each}


def part_of(arrays: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The part of this name, as `join_parts` got it."""
    prefix = f"{name}."
    return {key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)}


def _saved(archive: zipfile.ZipFile, name: str) -> SavedArray:
    """An array of the archive; ValueError unless its data have the size that its heading says."""
    with archive.open(f"{name}.npy") as file:
        np.lib.format.read_magic(file)
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
        size = file.tell() + math.prod(shape) * dtype.itemsize
        if dtype.hasobject or size != archive.getinfo(file.name).file_size:
            raise ValueError(f"{name} is not an array")
        return SavedArray(dtype, shape, "F" if fortran else "C", archive, file.name, file.tell())
