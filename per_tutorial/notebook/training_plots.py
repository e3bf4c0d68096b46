"""Pictures of a training: live while it runs, afterwards, and learning curves to compare."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from numpy.typing import ArrayLike, NDArray

from per_tutorial.notebook.comparison_plots import draw_curves
from per_tutorial.notebook.page import LiveFigure
from per_tutorial.notebook.style import (
    COLORS,
    label_steps,
    log_scale,
    sampler_color,
    start_at_zero,
)

if TYPE_CHECKING:
    from per_tutorial.dqn.history import History

WINDOW = 20  # the score of a run is the mean return of its last WINDOW episodes


class LivePlot:
    """Watch trainings: pass it to `train(..., callbacks=[LivePlot()])`.

    Each training has a picture of its own: that of `draw_history`, with the steps and the time that
    are left. It is redrawn so rarely that this takes at most a tenth of the time, and at the end.
    """

    def __init__(self) -> None:
        self._history: History | None = None  # of the training that is shown
        self._live: LiveFigure
        self._began = 0.0, 0  # the time and the step of its first call

    def __call__(self, history: History) -> None:
        if history is not self._history:
            self._history = history
            runs = len(history.seeds)
            many = f"{runs} runs, each faint and their median bold" if runs > 1 else "one run"
            steps = f"{history.config.steps} environment steps"
            self._live = LiveFigure(f"Score, loss and epsilon over {steps} of {many}")
            self._began = time.monotonic(), history.step
        over = history.step == history.config.steps
        if self._live.due or over:
            # Finding a layout would take more time than all the rest, so it is fixed; to save or to
            # clear a figure undoes this, so each picture has a new one.
            figure = Figure(figsize=(9.6, 2.8), layout="none")  # type: ignore[arg-type]
            figure.subplots_adjust(left=0.08, right=0.98, bottom=0.18, top=0.89, wspace=0.31)
            draw_history(figure, history)
            if not over:
                figure.axes[1].set_title(self._left(history), loc="right", fontsize=8)
            self._live.update(figure)
        if over:
            self._live.close()
            self._history = None

    def _left(self, history: History) -> str:
        """How many steps are done, and how many seconds are left."""
        text = f"{history.step:,} of {history.config.steps:,} steps"
        time_before, step_before = self._began
        if history.step > step_before:
            pace = (time.monotonic() - time_before) / (history.step - step_before)
            text += f", {pace * (history.config.steps - history.step):.0f} s left"
        return text


def draw_history(figure: FigureBase, history: History) -> None:
    """Draw a `History`, finished or not, over the environment steps: the score before ε, a pale
    area, and beside it the loss.

    Runs are faint and their median is bold. If there is one run, its episodes are dots: their mean
    lags behind them.
    """
    score_axes, loss_axes = figure.subplots(1, 2)
    steps = np.array(history.log_steps)
    scores = history.learning_curve(steps, WINDOW)
    losses = history.measure("loss")
    score_axes.set_title(f"score (mean of {WINDOW} episodes)")
    if len(history.seeds) == 1:
        score_axes.set_title(f"score (dots), mean of {WINDOW} episodes (line)")
        dots = {"color": COLORS["return"], "alpha": 0.4, "markeredgewidth": 0}
        score_axes.plot(*history.returns(0), ".", markersize=5, **dots)
    draw_runs(score_axes, steps, scores, COLORS["return"])
    draw_runs(loss_axes, steps, losses, COLORS["loss"])
    start_at_zero(score_axes)
    draw_epsilon(score_axes, steps, history.measure("epsilon")[:, 0])
    loss_axes.set_title("loss (log scale)")
    if (losses > 0).any():  # before the first update there is none
        log_scale(loss_axes)
    for axes in (score_axes, loss_axes):
        axes.set_xlim(0, history.config.steps)
        label_steps(axes)


def draw_epsilon(axes: Axes, steps: ArrayLike, epsilon: ArrayLike) -> None:
    """Draw ε as a pale area behind all that `axes` shows, on an axis of its own at the right."""
    behind = axes.twinx()
    behind.set_zorder(axes.get_zorder() - 1)
    axes.patch.set_visible(False)
    behind.fill_between(steps, epsilon, color=COLORS["epsilon"], alpha=0.15, linewidth=0)
    behind.set(ylim=(0, 1), yticks=[0, 0.5, 1])
    behind.set_ylabel("exploration ε", color=COLORS["epsilon"])
    behind.tick_params(axis="y", colors=COLORS["epsilon"], length=0)
    behind.grid(visible=False)


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
