"""The recorded results of the worlds' studies, and the gains computed from them.

Their cells were run at an earlier commit (`notebooks/results/RESULTS.md`): thirty pairs of runs a
cell, and for each method the best of eight learning rates over ten other seeds.
"""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NOISES = (0.0, 0.1, 0.25, 0.5, 1.0)  # of the map


def load_cells(study: str, folder: str | os.PathLike[str] = "results") -> dict[str, Any]:
    """The cells of a study in a folder: the name of a world → method → what was measured.

    Raises:
        FileNotFoundError: there are no results of this name.
    """
    data = Path(folder, f"when-{study}.json.gz").read_bytes()
    return json.loads(gzip.decompress(data))["cells"]


def gains(cell: dict[str, Any], method: str) -> NDArray[np.float64]:
    """log2(area of uniform replay / area of the method) of each pair of runs."""
    return np.log2(np.array(cell["uniform"]["area"]) / np.array(cell[method]["area"]))
