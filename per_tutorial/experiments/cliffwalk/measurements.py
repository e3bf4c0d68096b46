"""How many updates the Blind Cliffwalk takes, by sampler and by length.

Results are a tidy CSV file, one line per (figure, n, sampler, alpha, run). A complete
file is in `notebooks/results`; `python -m per_tutorial cliffwalk` makes one, or resumes.
"""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from per_tutorial.common.data import data_file
from per_tutorial.common.provenance import versions
from per_tutorial.common.tables import read_table, write_table
from per_tutorial.experiments.cliffwalk.learner import CliffwalkLearner

RESULTS = "cliffwalk.csv"  # of `common.data`
RUNS = 10
LIMIT = 20_000_000  # updates after which a run counts as never converged
# An oracle that is stuck gains little from further updates, and they are slow.
ORACLE_LIMIT = 20_000
SETTINGS = {"runs": RUNS, "step_size": 0.25, "initial_scale": 0.1, "priority_epsilon": 1e-6}
ALPHAS = (0.5, 0.6, 0.7, 0.8, 1.0)


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

    @property
    def point(self) -> Point:
        return Point(self.figure, self.n, self.sampler, self.alpha)


def points(longest: int = 16) -> list[Point]:
    """All points to measure, for walks of up to `longest` states.

    The paper does not give the α of its right panel. We use those of its Atari runs, 0.7 and 0.6;
    "search" tries others on walks of 5 to 12 states.
    """
    alphas = {"rank": 0.7, "proportional": 0.6}
    lengths = range(2, longest + 1)
    panels = {
        "tabular": ("uniform", "greedy", "oracle"),
        "linear": ("uniform", "rank", "proportional", "oracle"),
    }
    found = [
        Point(figure, n, sampler, alphas.get(sampler, 0.0))
        for figure, samplers in panels.items()
        for sampler in samplers
        for n in lengths
    ]
    return found + [
        Point("search", n, sampler, alpha)
        for sampler in alphas
        for alpha in ALPHAS
        for n in lengths
        if 5 <= n <= 12
    ]


def measure(point: Point, run: int) -> Walk:
    """Train one run until it converges or reaches its limit."""
    start = time.perf_counter()
    learner = CliffwalkLearner(
        point.n,
        point.sampler,
        linear=point.figure != "tabular",
        alpha=point.alpha,
        priority_epsilon=SETTINGS["priority_epsilon"],
        initial_scale=SETTINGS["initial_scale"],
        step_size=SETTINGS["step_size"],
        seed=run,
    )
    learner.run(ORACLE_LIMIT if point.sampler == "oracle" else LIMIT)
    updates = learner.updates if learner.converged else float("nan")
    return Walk(*point, run, updates, round(time.perf_counter() - start, 4))


def measure_walks(
    path: str | os.PathLike[str],
    longest: int = 16,
    progress: Callable[[Point], object] = lambda point: None,
) -> list[Walk]:
    """Measure the points that are missing from `path`, saving after each.

    Args:
        path: CSV file; its folder must exist.
        longest: states of the longest walk.
        progress: called with each `Point` before it is measured.

    Returns all rows. Raises ValueError if the file is damaged or was made with other settings.
    """
    walks = load_results(path) if Path(path).exists() else []
    finished = {walk.point for walk in walks}
    for point in points(longest):
        if point in finished:
            continue
        progress(point)
        walks += [measure(point, run) for run in range(RUNS)]
        heading = {
            "settings": SETTINGS,
            **versions("numpy", "numba"),
            "seconds": round(sum(walk.seconds for walk in walks), 1),
        }
        write_table(path, heading, Walk._fields, walks)
    return walks


def load_results(path: str | os.PathLike[str] | None = None) -> list[Walk]:
    """The rows of a results file, by default `RESULTS`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or its settings are not those of this module.
    """
    path = data_file(RESULTS) if path is None else path
    heading, rows = read_table(path, Walk._fields)
    if heading.get("settings") != SETTINGS:
        raise ValueError(
            f"path: {os.fspath(path)!r} was made with {heading.get('settings')}, not {SETTINGS}"
        )
    kinds = {(point.figure, point.sampler) for point in points()}
    try:
        walks = [
            Walk(figure, int(n), sampler, float(alpha), int(run), float(updates), float(seconds))
            for figure, n, sampler, alpha, run, updates, seconds in rows
        ]
        for walk in walks:
            if (walk.figure, walk.sampler) not in kinds or walk.n < 2:
                raise ValueError(f"no such point: {walk.figure}, {walk.sampler}, n = {walk.n}")
        return walks
    except ValueError as error:
        raise ValueError(f"path: {os.fspath(path)!r} holds no results ({error})") from error


def updates_by_point(walks: Iterable[Walk]) -> dict[Point, list[float]]:
    """{Point: updates of its runs}; a run that never converged counts as infinite."""
    found: dict[Point, list[float]] = {}
    for walk in walks:
        updates = walk.updates if walk.updates == walk.updates else float("inf")
        found.setdefault(walk.point, []).append(updates)
    return found
