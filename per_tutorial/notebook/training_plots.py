"""Pictures of a training: live while it runs, afterwards, and learning curves to compare."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from per_tutorial.notebook.comparison_plots import draw_curves
from per_tutorial.notebook.page import LiveFigure
from per_tutorial.notebook.style import COLORS, label_steps, sampler_color, start_at_zero

if TYPE_CHECKING:
    from per_tutorial.dqn.history import History

WINDOW = 20  # the score of a run is the mean return of its last WINDOW episodes


class LivePlot:
    """Watch a training: pass it to `train(..., callbacks=[LivePlot()])`.

    The picture is that of `draw_history`, with the steps and the time that are left, redrawn so
    rarely that it takes at most a tenth of the time, and at the end.
    """

    def __init__(self) -> None:
        self._live: LiveFigure | None = None
        self._began = 0.0, 0  # the time and the step of the first call

    def __call__(self, history: History) -> None:
        over = history.step == history.config.steps
        if self._live is None:
            runs = len(history.seeds)
            many = f"{runs} runs, each faint and their median bold" if runs > 1 else "one run"
            steps = f"{history.config.steps} environment steps"
            self._live = LiveFigure(f"Score, loss and epsilon over {steps} of {many}")
            self._began = time.monotonic(), history.step
        if self._live.due or over:
            # Outside pyplot, so that an interrupted training leaves no open figure behind. Finding
            # a layout would take more time than all the rest, so it is fixed; to save or to clear
            # a figure undoes this, so each picture has a new one.
            figure = Figure(figsize=(9.6, 2.7), layout="none")  # type: ignore[arg-type]
            figure.subplots_adjust(left=0.05, right=0.985, bottom=0.19, top=0.89, wspace=0.26)
            draw_history(figure, history)
            if not over:
                self._say_what_is_left(figure, history)
            self._live.update(figure)
        if over:
            self._live.close()

    def _say_what_is_left(self, figure: Figure, history: History) -> None:
        text = f"{history.step:,} of {history.config.steps:,} steps"
        time_before, step_before = self._began
        if history.step > step_before:
            pace = (time.monotonic() - time_before) / (history.step - step_before)
            text += f"\n{pace * (history.config.steps - history.step):.0f} s left"
        axes = figure.axes[-1]  # epsilon falls, so the upper right corner is free
        axes.text(0.97, 0.95, text, transform=axes.transAxes, ha="right", va="top", fontsize=8)


def draw_history(figure: FigureBase, history: History) -> None:
    """Draw score, loss and ε of a `History`, finished or not, over the environment steps: all runs
    faint, their median bold.
    """
    score_axes, loss_axes, epsilon_axes = figure.subplots(1, 3)
    steps = np.array(history.log_steps)
    scores = history.learning_curve(steps, WINDOW)
    losses = history.measure("loss")
    draw_runs(score_axes, steps, scores, COLORS["return"])
    draw_runs(loss_axes, steps, losses, COLORS["loss"])
    draw_runs(epsilon_axes, steps, history.measure("epsilon")[:, :1], COLORS["epsilon"])
    score_axes.set_title(f"score (mean of {WINDOW} episodes)")
    start_at_zero(score_axes)
    loss_axes.set_title("loss (log scale)")
    if (losses > 0).any():  # before the first update there is none
        loss_axes.set_yscale("log")
        loss_axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        loss_axes.yaxis.set_major_formatter("{x:g}")  # shorter than 5 × 10⁻¹
        loss_axes.yaxis.set_minor_formatter(NullFormatter())
    epsilon_axes.set_title(r"exploration $\epsilon$")
    epsilon_axes.set_ylim(0, 1.05)
    for axes in (score_axes, loss_axes, epsilon_axes):
        axes.set_xlim(0, history.config.steps)
        label_steps(axes)


def draw_runs(axes: Axes, steps: ArrayLike, values: NDArray[np.floating], color: str) -> None:
    """Draw every run of `values` (steps, runs) faint, and their median bold."""
    if values.shape[1] > 1:
        axes.plot(steps, values, color=color, alpha=0.3, linewidth=0.8)
    measured = ~np.isnan(values).all(axis=1)
    median = np.nanmedian(values[measured], axis=1)
    axes.plot(np.asarray(steps)[measured], median, color=color)


def draw_learning_curves(
    axes: Axes,
    histories: Mapping[str, History],
    *,
    colors: Mapping[str, str] | None = None,
) -> None:
    """Draw the learning curves of {label: `History`} with `draw_curves`; the runs are the sample.

    The colours are those of the samplers by default.
    """
    curves = {}
    for label, history in histories.items():
        grid = np.linspace(0, history.step, 101)[1:].astype(int)
        curves[label] = grid, history.learning_curve(grid, WINDOW)
    own = {label: sampler_color(history.sampler) for label, history in histories.items()}
    draw_curves(axes, curves, colors=colors or own)
    axes.set_ylabel(f"score (mean of {WINDOW} episodes)")
