"""The recorded results of the worlds' studies, and the gains computed from them.

Their cells were run at an earlier commit (`notebooks/results/RESULTS.md`): thirty pairs of runs a
cell, and for each method the best of eight learning rates over ten other seeds.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.data import data_file
from per_tutorial.statistics import RESAMPLES, Estimate, agreement

LENGTHS = (3, 4, 5, 6, 7, 8)  # of the map
NOISES = (0.0, 0.1, 0.25, 0.5, 1.0)


def load(study: str) -> dict[str, Any]:
    """What a study found: {"study", "seconds", "versions", "cells": {name: …}}.

    Raises:
        FileNotFoundError: there are no results of this name.
    """
    return json.loads(gzip.decompress(data_file(f"when-{study}.json.gz").read_bytes()))


def gains(cell: dict[str, Any], method: str) -> NDArray[np.float64]:
    """log2(area of uniform replay / area of the method) of each pair of runs."""
    return np.log2(np.array(cell["uniform"]["area"]) / np.array(cell[method]["area"]))


class Judged(NamedTuple):
    """The gain of a method in a cell."""

    gain: Estimate
    verdict: str  # "helps", "hurts", "borderline" or "not told apart"


def judged(
    cells: Mapping[str, dict[str, Any]], methods: Sequence[str], resamples: int = RESAMPLES
) -> dict[tuple[str, str], Judged]:
    """The gain of each method over uniform replay in each cell: {(cell, method): `Judged`}.

    All given cells and methods are one family of `agreement`; a clear gain helps, a clear loss
    hurts. All cells must have equally many pairs of runs.
    """
    keys = [(cell, method) for cell in cells for method in methods if method in cells[cell]]
    every = [gains(cells[cell], method) for cell, method in keys]
    family = agreement([(values, np.zeros(len(values))) for values in every], resamples)
    found = {}
    for key, one in zip(keys, family, strict=True):
        clear = "helps" if one.difference.value > 0 else "hurts"
        found[key] = Judged(one.difference, clear if one.verdict == "clear" else one.verdict)
    return found
