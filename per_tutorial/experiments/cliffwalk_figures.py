"""The paper's figures 1 and 2 on the Blind Cliffwalk, and the search for what it leaves unsaid.

Results are a tidy CSV file, a line per (figure, n, sampler, alpha, run). The package holds a complete one;
`python -m per_tutorial cliffwalk` makes it anew, and continues where it was stopped.
"""

import csv
import io
import json
import math
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import NamedTuple

from per_tutorial.common.files import atomic_write
from per_tutorial.experiments.blind_cliffwalk import CliffwalkLearner

RESULTS = Path(__file__).parents[1] / "results" / "cliffwalk.csv"
RUNS = 10
LIMIT = 20_000_000  # updates after which a run counts as never converged
SETTINGS = {"runs": RUNS, "step_size": 0.25, "initial_scale": 0.1, "priority_epsilon": 1e-6}
ALPHAS = (0.5, 0.6, 0.7, 0.8, 1.0)

# Medians that we read off the published figure 2, to about 5 %: {x: updates}, where x is the number
# of transitions that the axis shows. Figure 1 shows two of the series on the left.
PAPER = {
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
    """One median to be measured: a sampler at one length of the walk."""

    figure: str  # "tabular" (figure 1 and 2, left), "linear" (2, right) or "search"
    n: int
    sampler: str
    alpha: float


def points(longest=16):
    """All that is measured, for walks of up to `longest` states.

    The paper does not say which α its right panel used: 0.7 and 0.6 are those of its Atari runs, and
    "search" tries others, on short walks.
    """
    alphas = {"rank": 0.7, "proportional": 0.6}
    lengths = range(2, longest + 1)
    series = [("tabular", ("uniform", "greedy", "oracle"))]
    series += [("linear", ("uniform", "rank", "proportional", "oracle"))]
    found = [
        Point(figure, n, sampler, alphas.get(sampler, 0.0))
        for figure, samplers in series
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


def measure(point, run):
    """One row of the results: how many updates a run needs to converge, NaN if it never does."""
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
    # Little is left to learn for an oracle that is stuck, and its every update is slow.
    learner.run(20_000 if point.sampler == "oracle" else LIMIT)
    updates = learner.updates if learner.converged else float("nan")
    seconds = round(time.perf_counter() - start, 4)
    return {**point._asdict(), "run": run, "updates": updates, "seconds": seconds}


def run_study(path, longest=16, progress=lambda point: None):
    """Measure what `path` does not hold yet, saving after each point.

    Args:
        path: CSV file; its folder must exist.
        longest: states of the longest walk.
        progress: called with each `Point` before it is measured.

    Returns all rows. Raises ValueError if the file holds results of other settings.
    """
    rows = load_results(path) if Path(path).exists() else []
    finished = {_key(row) for row in rows}
    for point in points(longest):
        if point in finished:
            continue
        progress(point)
        rows += [measure(point, run) for run in range(RUNS)]
        _save(rows, path)
    return rows


def load_results(path=RESULTS):
    """The rows of a results file: dicts with the fields of `Point`, and run, updates, seconds.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or its settings are not those of this module.
    """
    lines = Path(path).read_text().splitlines()
    try:
        settings = json.loads(lines[0].removeprefix("# "))["settings"]
        kinds = {"n": int, "alpha": float, "run": int, "updates": float, "seconds": float}
        table = csv.DictReader(lines[1:])
        rows = [{name: kinds.get(name, str)(row[name]) for name in row} for row in table]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"path: {os.fspath(path)!r} holds no results ({error})") from error
    if settings != SETTINGS:
        raise ValueError(f"path: {os.fspath(path)!r} was made with {settings}, not {SETTINGS}")
    return rows


def _save(rows, path):
    heading = {
        "settings": SETTINGS,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba")},
        "seconds": round(sum(row["seconds"] for row in rows), 1),
    }
    text = io.StringIO()
    text.write(f"# {json.dumps(heading)}\n")
    table = csv.DictWriter(text, rows[0], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def _key(row):
    return Point(*(row[name] for name in Point._fields))


def updates_by_point(rows):
    """{Point: updates of its runs}; a run that never converged counts as infinite."""
    found = {}
    for row in rows:
        updates = row["updates"] if row["updates"] == row["updates"] else float("inf")
        found.setdefault(_key(row), []).append(updates)
    return found


def ratios(rows):
    """Our medians divided by the paper's: (figure, sampler, α, x, paper, by count, by half) a line.

    "By count" takes the x of the paper's axis for the number of transitions, 2^(n+1) − 2; "by half"
    takes it for 2^n − 2, which fits some of its curves better. NaN where nothing was measured.
    """
    medians = {point: median(updates) for point, updates in updates_by_point(rows).items()}
    for figure, sampler, alpha in dict.fromkeys((p.figure, p.sampler, p.alpha) for p in medians):
        learner = "linear" if figure == "search" else figure
        for x, paper in PAPER[learner, sampler].items():
            n = (x + 2).bit_length() - 1  # 2^n = x + 2
            count, half = (
                medians.get(Point(figure, m, sampler, alpha), float("nan")) / paper
                for m in (n - 1, n)
            )
            yield figure, sampler, alpha, x, paper, count, half


def ratio_table(rows):
    """`ratios` as lines of text, without those where nothing was measured."""
    lines = [
        "Our medians divided by the paper's, if its x counts 2^(n+1) − 2 or 2^n − 2 transitions",
        f"{'figure':8} {'sampler':12} {'α':>4} {'x':>7} {'paper':>8} {'2^(n+1)−2':>10} {'2^n−2':>7}",
    ]
    for figure, sampler, alpha, x, paper, count, half in ratios(rows):
        if math.isnan(count) and math.isnan(half):
            continue
        shown = f"{alpha:.1f}" if alpha else ""
        lines.append(
            f"{figure:8} {sampler:12} {shown:>4} {x:7} {paper:8.0f} {count:10.2f} {half:7.2f}"
        )
    return "\n".join(lines)


def draw_figures(figure, rows):
    """Draw figure 2 (figure 1 is two curves of its left half) into a matplotlib figure.

    Solid: our medians over 2^(n+1) − 2 transitions, the range of the runs faint; dotted: the same over
    2^n − 2; crosses: the paper's medians.
    """
    from per_tutorial.notebook.style import COLORS

    colors = {
        "uniform": COLORS["uniform"],
        "greedy": COLORS["weight"],
        "oracle": COLORS["return"],
        "proportional": COLORS["per"],
        "rank": COLORS["rank"],
    }
    found = updates_by_point(rows)
    for axes, panel in zip(figure.subplots(1, 2), ("tabular", "linear"), strict=True):
        for sampler in dict.fromkeys(p.sampler for p in found if p.figure == panel):
            mine = sorted(p for p in found if p.figure == panel and p.sampler == sampler)
            x = [2 ** (p.n + 1) - 2 for p in mine]
            low, middle, high = ([f(found[p]) for p in mine] for f in (min, median, max))
            color = colors[sampler]
            axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
            axes.plot(x, middle, color=color, label=sampler)
            axes.plot([(a - 2) / 2 for a in x], middle, color=color, linestyle=":", linewidth=1)
            paper = PAPER[panel, sampler]
            axes.plot(list(paper), list(paper.values()), "x", color=color, markersize=6)
        axes.set(xscale="log", yscale="log", title=panel)
        axes.set(xlabel="transitions in the memory", ylabel="updates until converged")
        axes.plot([], [], "x", color=COLORS["quiet"], label="the paper's")
        axes.plot([], [], ":", color=COLORS["quiet"], linewidth=1, label="over 2ⁿ − 2")
        axes.legend(loc="upper left")
