"""The paper's figures 1 and 2 on the Blind Cliffwalk, beside ours (`measurements`)."""

import math
from collections.abc import Iterable, Iterator
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from per_tutorial.experiments.cliffwalk.measurements import Point, Walk, updates_by_point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colours of `notebook.style`, which this package must not import.
COLORS = {"uniform": "#0072B2", "proportional": "#D55E00", "rank": "#661A66"}
COLORS |= {"greedy": "#00857A", "oracle": "#333333"}
QUIET = "#8A8A8A"  # legend entries that belong to no sampler

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


def ratio_table(walks: Iterable[Walk]) -> str:
    """`ratios` as a table in text, without those where nothing was measured."""
    lines = [
        "Our medians divided by the paper's, if its x counts 2^(n+1) − 2 or 2^n − 2 transitions",
        f"{'figure':8} {'sampler':12} {'α':>4} {'x':>7} {'paper':>8} {'2^(n+1)−2':>10} "
        f"{'2^n−2':>7}",
    ]
    for figure, sampler, alpha, x, paper, by_count, by_half in ratios(walks):
        if math.isnan(by_count) and math.isnan(by_half):
            continue
        shown = f"{alpha:.1f}" if alpha else ""
        lines.append(
            f"{figure:8} {sampler:12} {shown:>4} {x:7} {paper:8.0f} {by_count:10.2f} {by_half:7.2f}"
        )
    return "\n".join(lines)


def draw_figures(figure: "Figure", walks: Iterable[Walk]) -> None:
    """Draw figure 2 (figure 1 is two curves of its left half) into a matplotlib figure.

    Solid: our medians over 2^(n+1) − 2 transitions; shaded: the range of the runs; dotted: our
    medians over 2^n − 2; crosses: the paper's medians.
    """
    found = updates_by_point(walks)
    for axes, panel in zip(figure.subplots(1, 2), ("tabular", "linear"), strict=True):
        for sampler in dict.fromkeys(p.sampler for p in found if p.figure == panel):
            mine = sorted(p for p in found if p.figure == panel and p.sampler == sampler)
            x = [2 ** (p.n + 1) - 2 for p in mine]
            low, middle, high = ([f(found[p]) for p in mine] for f in (min, median, max))
            color = COLORS[sampler]
            axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
            axes.plot(x, middle, color=color, label=sampler)
            axes.plot([(a - 2) / 2 for a in x], middle, color=color, linestyle=":", linewidth=1)
            paper = PAPER[panel, sampler]
            x, y = list(paper), list(paper.values())
            axes.plot(x, y, "x", color="white", markersize=9, markeredgewidth=4, zorder=3)
            axes.plot(x, y, "x", color=color, markersize=8, markeredgewidth=2, zorder=4)
        axes.set(xscale="log", yscale="log", title=panel)
        axes.set(xlabel="transitions in the memory", ylabel="updates until converged")
        axes.plot([], [], "x", color=QUIET, markersize=8, markeredgewidth=2, label="the paper's")
        axes.plot([], [], ":", color=QUIET, linewidth=1, label="over 2ⁿ − 2")
        axes.legend(loc="upper left")
