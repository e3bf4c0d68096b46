"""The paper's figures 1 and 2: its medians, and our updates until converged, ten runs a point.

Ours were measured at an earlier commit (`notebooks/results/RESULTS.md`) with `learner` and seeds 0
to 9. The paper does not give the α of its linear panel; these are those of its Atari runs, 0.7 for
"rank" and 0.6 for "proportional", and "search" has others for walks of 5 to 12 states.
"""

import os
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

from per_tutorial.common.data import data_file
from per_tutorial.common.tables import read_table

# Medians that we read off the published figure 2, to about 5 %: {transitions on the x axis:
# updates}. Figure 1 shows two curves of its left half.
PAPER: dict[tuple[str, str], dict[int, float]] = {
    ("tabular", "uniform"): {
        62: 956, 254: 4.4e3, 1022: 17.7e3, 4094: 93e3, 8190: 204e3, 32766: 560e3,
    },
    ("tabular", "greedy"): {
        62: 218, 254: 658, 1022: 2.35e3, 4094: 8.7e3, 8190: 17e3, 32766: 67.8e3,
    },
    ("tabular", "oracle"): {62: 178, 254: 317, 1022: 497, 4094: 696, 8190: 822, 32766: 1072},
    ("linear", "uniform"): {62: 1.9e3, 254: 10.7e3, 1022: 47e3, 4094: 192e3, 8190: 377e3},
    ("linear", "rank"): {1022: 2.2e3, 4094: 6.6e3, 8190: 12.2e3, 32766: 42e3},
    ("linear", "proportional"): {62: 600, 1022: 3.2e3, 4094: 9.4e3, 8190: 14.5e3, 131070: 86e3},
    ("linear", "oracle"): {
        62: 410, 254: 704, 1022: 908, 8190: 1.33e3, 32766: 1.7e3, 131070: 2.2e3,
    },
}  # fmt: skip


class Point(NamedTuple):
    """One median of the figures: a sampler at one length of the walk."""

    figure: str  # "tabular" (figure 1 and 2, left), "linear" (2, right) or "search"
    n: int
    sampler: str
    alpha: float


class Walk(NamedTuple):
    """One run, a row of the results."""

    figure: str
    n: int
    sampler: str
    alpha: float
    run: int
    updates: float  # needed to converge; NaN if it never did
    seconds: float


def load_results(path: str | os.PathLike[str] | None = None) -> list[Walk]:
    """The rows of a results file, by default ``cliffwalk.csv`` of `common.data`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged.
    """
    path = data_file("cliffwalk.csv") if path is None else path
    _, rows = read_table(path, Walk._fields)
    try:
        return [
            Walk(figure, int(n), sampler, float(alpha), int(run), float(updates), float(seconds))
            for figure, n, sampler, alpha, run, updates, seconds in rows
        ]
    except ValueError as error:
        raise ValueError(f"path: {os.fspath(path)!r} holds no results ({error})") from error


def updates_by_point(walks: Iterable[Walk]) -> dict[Point, list[float]]:
    """{Point: updates of its runs}; a run that never converged counts as infinite."""
    found: dict[Point, list[float]] = {}
    for walk in walks:
        updates = walk.updates if walk.updates == walk.updates else float("inf")
        found.setdefault(Point(*walk[:4]), []).append(updates)
    return found


class Ratio(NamedTuple):
    """One of our medians divided by the paper's; NaN where nothing was measured."""

    figure: str
    sampler: str
    alpha: float
    x: int  # on the paper's axis
    paper: float  # updates
    by_count: float  # if x is the number of transitions, 2^(n+1) − 2
    by_half: float  # if x is 2^n − 2, which fits some of the paper's curves better


def ratios(walks: Iterable[Walk]) -> Iterator[Ratio]:
    """Yield a `Ratio` for each published median of the samplers that were measured."""
    medians = {point: median(updates) for point, updates in updates_by_point(walks).items()}
    for figure, sampler, alpha in dict.fromkeys((p.figure, p.sampler, p.alpha) for p in medians):
        learner = "linear" if figure == "search" else figure
        for x, paper in PAPER[learner, sampler].items():
            n = (x + 2).bit_length() - 1  # 2^n = x + 2
            by_count, by_half = (
                medians.get(Point(figure, m, sampler, alpha), float("nan")) / paper
                for m in (n - 1, n)
            )
            yield Ratio(figure, sampler, alpha, x, paper, by_count, by_half)
