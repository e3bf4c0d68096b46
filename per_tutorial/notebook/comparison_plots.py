"""Pictures that compare arms of an experiment: curves, and estimates with intervals."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from per_tutorial.notebook.style import COLORS, label_steps, start_at_zero
from per_tutorial.statistics import Estimate, t_interval


def draw_curves(
    axes: Axes,
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    colors: Mapping[str, str],
) -> None:
    """Draw every run faint, and their mean bold, in its pointwise 95 % t interval; one run alone
    is just a line.

    A curve begins where all of its runs have a value: before, only the fastest runs have one.

    Args:
        axes: where to draw.
        curves: {label: (grid (points,) of environment steps, values (points, runs))}; NaN where a
            run has no value yet.
        colors: {label: colour}.
    """
    faint = min(1, 4 / len(curves))  # the more curves, the fainter their runs and bands
    for label, (grid, runs) in curves.items():
        started = ~np.isnan(runs).any(axis=1)
        steps, values = np.asarray(grid)[started], np.asarray(runs)[started]
        color = colors[label]
        if values.shape[1] > 1:
            _, low, high = np.reshape([t_interval(at) for at in values], (-1, 3)).T
            axes.plot(steps, values, color=color, alpha=0.2 * faint, linewidth=0.7)
            axes.fill_between(steps, low, high, color=color, alpha=0.25 * faint, linewidth=0)
        axes.plot(steps, values.mean(axis=1), color=color, label=label)
    axes.set_xlim(0, max(np.asarray(grid)[-1] for grid, _ in curves.values()))
    start_at_zero(axes)
    label_steps(axes)
    if len(curves) <= 4:
        axes.legend(loc="best")
    else:  # inside, it would cover the curves
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")


def draw_estimates(
    axes: Axes,
    estimates: Mapping[str, Estimate],
    *,
    colors: Mapping[str, str] | None = None,
) -> None:
    """Draw estimates with their intervals, one per row, and their numbers at the right.

    An interval without 0 is a thick bar with a filled dot, any other is thin and hollow.

    Args:
        axes: where to draw; `rows_size` tells how much room it takes.
        estimates: {label: `Estimate`}, from top to bottom.
        colors: {label: colour}; that of PER by default.
    """
    for row, (label, (value, low, high)) in enumerate(estimates.items()):
        color = colors[label] if colors else COLORS["per"]
        width, face = (1.2, "white") if low <= 0 <= high else (3.5, color)
        # Other caps than butt would make a bar look longer than its interval.
        axes.plot([low, high], [row, row], color=color, linewidth=width, solid_capstyle="butt")
        (dot,) = axes.plot(value, row, "o", color=color, markersize=7, clip_on=False)
        dot.set_markerfacecolor(face)
        mean, *ends = (
            f"{round(each, 1) + 0.0:+.1f}".replace("-", "−")  # + 0.0: not −0.0
            for each in (value, low, high)
        )
        right = axes.get_yaxis_transform()
        text = f"{mean} [{', '.join(ends)}]"
        axes.text(1.03, row, text, transform=right, va="center", fontsize="small")
    axes.axvline(0, color="black", linewidth=1, zorder=1)
    axes.set_yticks(range(len(estimates)), estimates)
    axes.set_ylim(len(estimates) - 0.5, -0.5)  # the first at the top
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def rows_size(rows: int, width: float = 7.0) -> tuple[float, float]:
    """The size in inches of a figure with ``rows`` rows of `draw_estimates`."""
    return width, 1.0 + 0.42 * rows
