"""Pictures that compare arms of an experiment: curves, estimates with intervals, scores, grids."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from per_tutorial.common.arguments import float_array, one_of
from per_tutorial.notebook.style import COLORS, label_steps, start_at_zero
from per_tutorial.statistics import (
    Estimate,
    Statistic,
    Verdict,
    bootstrap_interval,
)

# How `draw_estimates` shows a verdict: the width of the bar, and the face of the dot.
VERDICT_STYLES: dict[str, tuple[float, dict[str, Any]]] = {
    "clear": (3.5, {}),
    "borderline": (2.2, {"fillstyle": "left", "markerfacecoloralt": "white"}),
    "not told apart": (1.2, {"markerfacecolor": "white"}),
}


def draw_curves(
    axes: Axes,
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    colors: Mapping[str, str],
    statistic: Statistic = np.mean,
    threshold: float | None = None,
    linestyles: Mapping[str, str] | None = None,
) -> None:
    """Draw curves to compare: every run faint, a statistic over runs bold, with its interval.

    The band is the pointwise 95 % bootstrap interval of the statistic over runs. A curve begins
    where all of its runs have a value: before that, only the fastest runs have one, and their
    statistic would mislead.

    Args:
        axes: where to draw.
        curves: {label: (grid (points,) of environment steps, values (points, runs))}; NaN where a
            run has no value yet.
        colors: {label: colour}.
        statistic: function(values, axis=-1), such as `np.mean` or `np.median`.
        threshold: a value to mark by a dashed line.
        linestyles: {label: linestyle} of the statistic; solid by default.
    """
    faint = min(1, 4 / len(curves))  # the more curves, the fainter their runs and bands
    for label, (grid, runs) in curves.items():
        values = np.asarray(runs)
        started = ~np.isnan(values).any(axis=1)
        steps, values = np.asarray(grid)[started], values[started]
        low, high = bootstrap_interval(values, axis=-1, statistic=statistic)
        color = colors[label]
        style = linestyles[label] if linestyles else "-"
        axes.plot(steps, values, color=color, alpha=0.2 * faint, linewidth=0.7)
        axes.fill_between(steps, low, high, color=color, alpha=0.25 * faint, linewidth=0)
        axes.plot(steps, statistic(values, axis=-1), color=color, linestyle=style, label=label)
    if threshold is not None:
        line = axes.axhline(threshold, color=COLORS["quiet"], linestyle="--", linewidth=1, zorder=1)
        line.set_label(f"threshold {threshold:g}")
    axes.set_xlim(0, max(np.asarray(grid)[-1] for grid, _ in curves.values()))
    start_at_zero(axes)
    label_steps(axes)
    if len(curves) <= 4:
        axes.legend(loc="lower right")
    else:  # inside, it would cover the curves
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")


def draw_estimates(
    axes: Axes,
    estimates: Mapping[str, Estimate],
    *,
    colors: Mapping[str, str] | None = None,
    verdicts: Mapping[str, Verdict] | None = None,
    stars: Collection[str] = (),
    number: str = "+.1f",
    fontsize: str = "small",
) -> None:
    """Draw estimates with their intervals, one per row, and their numbers at the right.

    A clear difference is a thick bar with a filled dot, a borderline one a thinner bar with a
    half-filled dot. Arms that are not told apart have the thinnest bar and a hollow dot.

    Args:
        axes: where to draw; `rows_size` tells how much room it takes.
        estimates: {label: `Estimate`}, from top to bottom.
        colors: {label: colour}; that of PER by default.
        verdicts: {label: `verdict` of the two arms}; by default a difference is clear if its
            interval excludes 0, and otherwise not told apart.
        stars: the labels whose numbers get a star.
        number: format of the numbers.
        fontsize: of the numbers.

    Raises:
        ValueError: an unknown verdict, or an unknown label to star.
    """
    for label in stars:
        one_of("stars", label, estimates)
    for row, (label, (value, low, high)) in enumerate(estimates.items()):
        if verdicts is None:
            verdict = "not told apart" if low <= 0 <= high else "clear"
        else:
            verdict = one_of("verdicts", verdicts[label], VERDICT_STYLES)
        width, face = VERDICT_STYLES[verdict]
        color = colors[label] if colors else COLORS["per"]
        # Other caps than butt would make a bar look longer than its interval.
        axes.plot([low, high], [row, row], color=color, linewidth=width, solid_capstyle="butt")
        axes.plot(value, row, "o", color=color, markersize=7, clip_on=False, **face)
        text = f"{_written(value, number)} [{_written(low, number)}, {_written(high, number)}]"
        right = axes.get_yaxis_transform()
        star = " ∗" if label in stars else ""
        axes.text(1.03, row, text + star, transform=right, va="center", fontsize=fontsize)
    axes.axvline(0, color="black", linewidth=1, zorder=1)
    _label_rows(axes, estimates)


def draw_scores(axes: Axes, scores: Mapping[str, ArrayLike], *, colors: Mapping[str, str]) -> None:
    """Draw the spread of scores over runs, one arm per row: a dot for each run, stacked where many
    agree, and a tick at their median.

    Args:
        axes: where to draw; `rows_size` tells how much room it takes.
        scores: {label: (runs,) scores}, from top to bottom; the numbers of runs may differ.
        colors: {label: colour}.
    """
    every = np.concatenate([np.asarray(values) for values in scores.values()])
    edges = np.histogram_bin_edges(every, bins=60)
    tallest = max(np.histogram(values, edges)[0].max() for values in scores.values())
    spacing = min(0.16, 0.8 / tallest)  # of dots in a stack, in rows; stacks never meet
    for row, (label, runs) in enumerate(scores.items()):
        values = np.sort(runs)
        bins = np.digitize(values, edges[1:-1])
        place = np.arange(len(values)) - np.searchsorted(bins, bins)  # 0, 1, … within its bin
        aside = (place + 1) // 2 * (-1) ** place  # 0, −1, 1, −2, …: from the middle to both sides
        height, color = row + spacing * aside, colors[label]
        axes.plot(values, height, "o", color=color, markersize=4.5, markeredgewidth=0, alpha=0.7)
        middle = np.median(values)
        name = "median" if row == 0 else None
        axes.plot([middle, middle], [row - 0.42, row + 0.42], color="black", label=name)
    axes.set_xlabel("score")
    axes.margins(x=0.02)
    _label_rows(axes, scores)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)


def draw_grid(
    axes: Axes,
    matrix: ArrayLike,
    rows: Sequence[Any],
    columns: Sequence[Any],
    *,
    number: str = ".0f",
    **options: Any,
) -> None:
    """Draw a matrix of results as a heat map with the numbers in it; higher is brighter.

    Args:
        axes: where to draw; set its labels and title yourself.
        matrix: (rows, columns) results; NaN where there is none.
        rows, columns: labels beside and below it.
        number: format of the numbers.
        options: of `Axes.imshow`. Give ``vmin`` and ``vmax`` where the colours must mean the same
            in several grids, or where a small difference must not look like a large one.

    Raises:
        ValueError: the matrix has another shape.
    """
    results = float_array("matrix", matrix)
    if results.shape != (len(rows), len(columns)):
        shape = (len(rows), len(columns))
        raise ValueError(f"matrix: must have the shape {shape}, got {results.shape}")
    # Cividis is perceptually uniform and looks alike to colour-blind readers.
    image = axes.imshow(results, **{"cmap": "cividis", "aspect": "auto", **options})
    faces = image.to_rgba(results)
    for (row, column), value in np.ndenumerate(results):
        missing = np.isnan(value)
        dark = not missing and np.dot(faces[row, column, :3], (0.3, 0.6, 0.1)) < 0.46
        axes.text(
            column,
            row,
            "–" if missing else _written(value, number),
            color="white" if dark else "black",
            ha="center",
            va="center",
        )
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.grid(visible=False)


def rows_size(rows: int, width: float = 7.0) -> tuple[float, float]:
    """The size in inches of a figure with ``rows`` rows of `draw_estimates` or `draw_scores`."""
    return width, 1.0 + 0.42 * rows


def _written(value: float, number: str) -> str:
    """A number with the minus sign "−"; a value that rounds to zero has none."""
    text = f"{value:{number}}"
    if not text.strip("+-0.%"):
        text = f"{0.0:{number}}"
    return text.replace("-", "−")


def _label_rows(axes: Axes, labels: Collection[str]) -> None:
    """Write the labels beside rows 0, 1, …, the first at the top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
