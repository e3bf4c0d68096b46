"""The results of this folder's studies, as they are shipped, and gains from them."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import per_tutorial

SHIPPED = Path(per_tutorial.__file__).parent / "results"


def load(study: str) -> dict[str, Any]:
    """What a study found: {"study", "seconds", "versions", "cells": {name: ...}}.

    Looks into ``results/`` of the working directory first, then into the package.

    Raises:
        FileNotFoundError: neither holds it.
    """
    for folder in (Path("results"), SHIPPED):
        path = folder / f"when-{study}.json.gz"
        if path.exists():
            return json.loads(gzip.decompress(path.read_bytes()))
    raise FileNotFoundError(f"study: no results of {study!r}; run it first")


def gains(cell: dict[str, Any], method: str) -> NDArray[np.float64]:
    """log2(area of uniform replay / area of the method) of each pair of runs."""
    return np.log2(np.array(cell["uniform"]["area"]) / np.array(cell[method]["area"]))
