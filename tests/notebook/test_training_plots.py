"""The pictures of training: what is drawn is what was recorded."""

import warnings

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from pictures import alt_texts, pictures

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.notebook import page
from per_tutorial.notebook import training_plots as plots
from per_tutorial.notebook.style import COLORS


def recorded(upto=400, runs=3, score=20.0, **settings):
    """A `History` with episodes of random lengths and a log point every 100 steps."""
    generator = np.random.default_rng(0)
    config = DQNConfig(steps=400, **settings)
    history = History(config, range(runs), {"sampler": config.sampler})
    for run in range(runs):
        ends = np.cumsum(generator.integers(5, 40, 40))
        history.episodes += [(run, int(end), score + run, 20) for end in ends if end <= upto]
    history.step = upto
    history.log_steps = list(range(100, upto + 1, 100))
    losses = generator.uniform(0.1, 1.0, (upto // 100, runs))
    losses[0] = np.nan  # learning has not started
    epsilons = np.repeat(np.linspace(1.0, 0.1, upto // 100)[:, None], runs, axis=1)
    history.measures = {"loss": list(losses), "epsilon": list(epsilons)}
    return history


def watch(live, *steps, **settings):
    """Show one training to a `LivePlot` at these steps."""
    history = recorded(**settings)
    for step in steps:
        vars(history).update(vars(recorded(upto=step, **settings)))
        live(history)


def test_draw_runs_draws_every_run_faint_and_the_median_bold_once_measured():
    axes = Figure().subplots()
    values = np.array([[np.nan, np.nan, np.nan], [1.0, 5.0, 2.0], [2.0, 9.0, 4.0]])
    with warnings.catch_warnings(action="error"):
        plots.draw_runs(axes, [5, 10, 20], values, "black")
    *faint, bold = axes.lines
    assert [list(line.get_ydata()[1:]) for line in faint] == values.T[:, 1:].tolist()
    assert (list(bold.get_xdata()), list(bold.get_ydata())) == ([10, 20], [2.0, 4.0])
    assert all(bold.get_linewidth() > line.get_linewidth() for line in faint)


@pytest.mark.parametrize(("upto", "runs"), [(100, 3), (400, 3), (400, 1)])
def test_the_panels_hold_what_was_recorded(upto, runs):
    history = recorded(upto, runs)
    figure = Figure()
    with warnings.catch_warnings(action="error"):
        plots.draw_history(figure, history)
    score, loss, epsilon = figure.axes
    curve = history.learning_curve(history.log_steps)
    np.testing.assert_allclose(score.lines[-1].get_ydata(), np.median(curve, axis=1))
    if runs == 1:
        np.testing.assert_array_equal(score.lines[0].get_xydata().T, history.returns(0))
        assert (score.lines[0].get_linestyle(), score.lines[0].get_marker()) == ("None", ".")
    area = epsilon.collections[0].get_paths()[0].vertices
    assert set(history.measure("epsilon")[:, 0]) <= set(area[:, 1])
    assert (epsilon.get_ylim(), epsilon.yaxis.get_ticks_position()) == ((0, 1), "right")
    assert epsilon.get_zorder() < score.get_zorder() and not score.patch.get_visible()
    assert [axes.get_xlim() for axes in figure.axes] == [(0, 400)] * 3
    assert score.get_ylim()[0] == 0
    assert loss.get_yscale() == ("log" if upto == 400 else "linear")


@pytest.mark.slow
def test_live_plot_shows_a_picture_of_each_training_and_updates_it_at_the_end(shown, monkeypatch):
    drawn, draw, live = [], plots.draw_history, plots.LivePlot()
    monkeypatch.setattr(plots, "draw_history", lambda *given: draw(*given) or drawn.append(1))
    watch(live, 100)  # is interrupted
    for _ in range(2):
        watch(live, 100, 200, 300, 400)  # faster than the interval between two pictures
    new = ["display_id" in options for _, options in shown]
    assert new == [True, *[True, False] * 2] and len(drawn) == len(new)
    assert pictures(shown)[-1] != pictures(shown)[-2]
    assert set(alt_texts(shown)) == {
        "Score, loss and epsilon over 400 environment steps of 3 runs, each faint and their median "
        "bold"
    }
    assert plt.get_fignums() == []


def test_a_live_plot_says_how_many_steps_and_seconds_are_left(monkeypatch):
    clock, said = [50.0], []
    monkeypatch.setattr(plots.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(page.LiveFigure, "due", True)

    def shown(_, figure):
        said.append(figure.axes[1].get_title(loc="right"))
        clock[0] += 30
        left, bottom, right, top = figure.get_tightbbox().extents
        assert left > 0 and bottom > 0 and (right, top) < tuple(figure.get_size_inches())

    monkeypatch.setattr(page.LiveFigure, "update", shown)
    watch(plots.LivePlot(), 100, 300, 400, score=-1000.0)
    assert said == ["100 of 400 steps", "300 of 400 steps, 15 s left", ""]


@pytest.mark.slow
def test_learning_curves_are_means_in_the_colours_of_their_samplers():
    histories = {
        "uniform": recorded(sampler="uniform"),
        "per": recorded(sampler="proportional"),
    }
    axes = Figure().subplots()
    plots.draw_learning_curves(axes, histories)
    lines = {line.get_label(): line for line in axes.lines}
    curve = histories["per"].learning_curve(lines["per"].get_xdata())
    np.testing.assert_allclose(lines["per"].get_ydata(), curve.mean(axis=1))
    assert [lines[name].get_color() for name in histories] == [COLORS[name] for name in histories]
    plots.draw_learning_curves(axes, {"told": histories["per"]}, colors={"told": "#123456"})
    assert axes.lines[-1].get_color() == "#123456"
