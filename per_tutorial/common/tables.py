"""Tables: "# JSON" in the first line, then CSV with a line of column names.

`pandas.read_csv(path, comment="#")` reads them too. The JSON heading holds the number of rows, so a
truncated file is noticed.
"""

import csv
import gzip
import io
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from per_tutorial.common.files import atomic_write

LARGEST = 2**30  # bytes of a table; a few kilobytes of something else could unpack to more


def write_table(
    path: str | os.PathLike[str],
    heading: Mapping[str, Any],
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
) -> None:
    """Write a table to a file. Atomic.

    Args:
        path: if it ends in ".gz", the file is compressed. The same content makes the same bytes.
        heading: what JSON can hold; the number of rows is added to it as "rows".
        columns: their names.
        rows: each as long as ``columns``. Floats are written by `str`, which loses no bit.
    """
    rows = list(rows)
    text = io.StringIO()
    text.write(f"# {json.dumps({**heading, 'rows': len(rows)})}\n")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows)
    data = text.getvalue().encode()
    if Path(path).suffix == ".gz":
        data = gzip.compress(data, mtime=0)  # without the time of writing
    with atomic_write(path) as file:
        file.write(data)


def read_table(
    path: str | os.PathLike[str], columns: Sequence[str], *, fault: str = "holds no results"
) -> tuple[dict[str, Any], list[list[str]]]:
    """The heading and the rows of a file that `write_table` made.

    Args:
        path: if it ends in ".gz", the file is unpacked.
        columns: the names that the file must have, in this order.
        fault: what the error says about a file that cannot be used.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, incomplete or not such a table.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"path: no file {os.fspath(path)!r}")
    try:
        return _parsed(_content(path), columns)
    except (ValueError, csv.Error, gzip.BadGzipFile, zlib.error, EOFError, RecursionError) as error:
        raise ValueError(f"path: {os.fspath(path)!r} {fault} ({error})") from error


def _content(path: str | os.PathLike[str]) -> str:
    with gzip.open(path) if Path(path).suffix == ".gz" else open(path, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it has more than {LARGEST} bytes")
    return data.decode()


def _parsed(text: str, columns: Sequence[str]) -> tuple[dict[str, Any], list[list[str]]]:
    if not text.endswith("\n"):  # a number cut short would still be a number
        raise ValueError("the last line is not whole")
    lines = io.StringIO(text)
    first = lines.readline()
    if not first.startswith("# "):
        raise ValueError("the first line is not a heading")
    heading = json.loads(first.removeprefix("# "))
    if not isinstance(heading, dict):
        raise ValueError("the heading is not a JSON object")
    table = csv.reader(lines)
    names = next(table, [])
    if names != list(columns):
        raise ValueError(f"the columns are {', '.join(names)}")
    rows = []
    for number, row in enumerate(table, start=1):
        if len(row) != len(names):  # at once: a file of only newlines would fill large lists
            raise ValueError(f"row {number} has {len(row)} of {len(names)} values")
        rows.append(row)
    # The Blind Cliffwalk's file of version 0.1.0 has no number of rows.
    if heading.get("rows", len(rows)) != len(rows):
        raise ValueError(f"{len(rows)} of {heading['rows']} rows")
    return heading, rows
