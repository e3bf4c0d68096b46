"""Experiments made of cells. Each cell is run once and kept in a file: a killed run can resume.

In the end all cells are written into one file.
"""

import gzip
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from per_tutorial.common.data import data_file
from per_tutorial.common.files import atomic_write
from per_tutorial.common.provenance import versions


def run_cells(
    experiment: str,
    cells: Iterable[Any],
    run_cell: Callable[[Any], Any],
    folder: Path,
    packages: tuple[str, ...] = ("numpy", "numba"),
) -> Path:
    """Run the cells that have no file yet, and write all into ``folder/EXPERIMENT.json.gz``.

    Args:
        experiment: its name.
        cells: each has a unique `name`, which becomes a file name.
        run_cell: a function from a cell to a result that JSON can hold.
        folder: where ``EXPERIMENT/CELL.json`` are kept.
        packages: packages whose versions are recorded.
    """
    parts = folder / experiment
    parts.mkdir(parents=True, exist_ok=True)
    found, seconds = {}, 0.0
    for cell in cells:
        path = parts / f"{cell.name}.json"
        if not path.exists():
            start = time.perf_counter()
            result = run_cell(cell)
            result = {"found": result, "seconds": round(time.perf_counter() - start, 2)}
            with atomic_write(path) as file:
                file.write(json.dumps(result).encode())
            print(cell.name, result["seconds"], flush=True)
        part = json.loads(path.read_text(encoding="utf-8"))
        found[cell.name] = part["found"]
        seconds += part["seconds"]
    heading = {
        "study": experiment,
        "seconds": round(seconds),
        "versions": versions(*packages),
        "cells": found,
    }
    whole = folder / f"{experiment}.json.gz"
    with atomic_write(whole) as file:
        file.write(gzip.compress(json.dumps(heading).encode(), mtime=0))
    return whole


def load_cells(experiment: str) -> dict[str, Any]:
    """What an experiment found: {"study", "seconds", "versions", "cells": {name: ...}}.

    Looks into ``results/`` of the working directory first, then among the data of the series.

    Raises:
        FileNotFoundError: neither holds it.
    """
    path = Path("results") / f"{experiment}.json.gz"
    if not path.exists():
        path = data_file(path.name)
    return json.loads(gzip.decompress(path.read_bytes()))
