"""The comparisons of all studies, read from the one table that `tools/comparisons.py` writes."""

import csv
import itertools
import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

COLUMNS = (
    *("family", "comparison", "world", "method", "baseline", "setting"),
    *("study", "seed", "score", "baseline_score", "range"),
)


class Row(NamedTuple):
    """One comparison: all pairs of runs with the same settings."""

    world: str
    method: str  # what is compared with the baseline
    setting: str  # steps, network, limit and learning rate in words
    studies: NDArray[np.str_]  # (pairs,) where each was run
    scores: tuple[NDArray[np.float64], NDArray[np.float64]]  # (pairs,) of method and baseline
    range: float  # highest minus lowest point of the baseline's mean learning curve


def read_comparisons(path: str | os.PathLike[str]) -> dict[str, list[Row]]:
    """The comparisons of each family.

    PER is compared with uniform replay in "one rate", "a quarter of the rate", which PER has,
    "other exponents" and "best rates", each side's own. "newer methods" are compared with PER.
    """
    families: dict[str, list[Row]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        next(file)  # how many rows there are
        for _, group in itertools.groupby(csv.DictReader(file), lambda pair: pair["comparison"]):
            pairs = list(group)
            first = pairs[0]
            ours, theirs = (
                np.array([float(pair[side]) for pair in pairs])
                for side in ("score", "baseline_score")
            )
            row = Row(
                world=first["world"],
                method=first["method"],
                setting=first["setting"],
                studies=np.array([pair["study"] for pair in pairs]),
                scores=(ours, theirs),
                range=float(first["range"]),
            )
            families.setdefault(first["family"], []).append(row)
    return families
