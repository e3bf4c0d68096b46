"""The shipped results of this folder's studies, and the gains computed from them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.experiments.cells import load_cells
from per_tutorial.experiments.statistics.estimates import RESAMPLES, Estimate
from per_tutorial.experiments.statistics.families import agreement


def load(study: str) -> dict[str, Any]:
    """What a study of this folder found: see `load_cells`."""
    return load_cells(f"when-{study}")


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
