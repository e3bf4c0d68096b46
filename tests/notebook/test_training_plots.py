"""The pictures of training: what is drawn is what was recorded."""

import warnings

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from pictures import alt_texts, pictures

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.experiments.statistics.estimates import bootstrap_interval
from per_tutorial.notebook import page
from per_tutorial.notebook import training_plots as plots
from per_tutorial.notebook.style import COLORS


def recorded(runs=3, steps=400, upto=400, seed=0, **settings):
    """A `History` of `upto` steps: episodes of random lengths, a log point every 100 steps."""
    generator = np.random.default_rng(seed)
    history = History(DQNConfig(steps=steps, **settings), range(runs))
    for run in range(runs):
        step = 0
        while True:
            length = int(generator.integers(5, 40))
            step += length
            if step > upto:
                break
            history.episodes.append((run, step, float(length), length))
    history.step = upto
    history.log_steps = list(range(100, upto + 1, 100))
    points = len(history.log_steps)
    losses = generator.uniform(0.1, 1.0, (points, runs))
    losses[0] = np.nan  # learning has not started
    epsilons = np.repeat(np.linspace(1.0, 0.1, points)[:, None], runs, axis=1)
    history.measures = {"loss": list(losses), "epsilon": list(epsilons)}
    return history


def lines(axes):
    return [(line.get_xdata(), line.get_ydata(), line.get_linewidth()) for line in axes.lines]


# Runs -------------------------------------------------------------------------------------------


def test_draw_runs_draws_every_run_faint_and_the_median_bold():
    axes = Figure().subplots()
    values = np.array([[1.0, 5.0, 2.0], [2.0, 9.0, 4.0]])
    plots.draw_runs(axes, [10, 20], values, "black")
    *faint, (steps, median, width) = lines(axes)
    assert [list(y) for _, y, _ in faint] == values.T.tolist()
    assert (list(steps), list(median)) == ([10, 20], [2.0, 4.0])
    assert all(width > thin for _, _, thin in faint)


def test_draw_runs_begins_where_something_is_measured():
    axes = Figure().subplots()
    values = np.array([[np.nan, np.nan], [1.0, np.nan], [1.0, 3.0]])
    with warnings.catch_warnings(action="error"):
        plots.draw_runs(axes, [1, 2, 3], values, "black")
    steps, median, _ = lines(axes)[-1]
    assert (list(steps), list(median)) == ([2, 3], [1.0, 2.0])


def test_draw_runs_draws_a_single_run_once():
    axes = Figure().subplots()
    plots.draw_runs(axes, [1, 2], np.array([[1.0], [2.0]]), "black")
    assert len(axes.lines) == 1


# Histories --------------------------------------------------------------------------------------


def test_the_three_panels_hold_what_was_recorded():
    history = recorded()
    figure = Figure()
    plots.draw_history(figure, history)
    score, loss, epsilon = (lines(axes)[-1] for axes in figure.axes)
    curve = history.learning_curve(history.log_steps)
    np.testing.assert_allclose(score[1], np.median(curve, axis=1))
    np.testing.assert_allclose(loss[1], np.median(history.measure("loss")[1:], axis=1))
    np.testing.assert_allclose(epsilon[1], history.measure("epsilon")[:, 0])
    assert [len(axes.lines) for axes in figure.axes] == [4, 4, 1]  # runs and median; ε is the same
    assert [axes.get_xlim() for axes in figure.axes] == [(0, 400)] * 3
    assert figure.axes[1].get_yscale() == "log"


def test_a_training_that_has_just_begun_is_drawn_without_warnings():
    history = recorded(upto=100)
    history.episodes = []  # not even one is over
    figure = Figure(layout="constrained")
    with warnings.catch_warnings(action="error"):
        plots.draw_history(figure, history)
        figure.draw_without_rendering()
    assert figure.axes[0].get_xlim() == (0, 400)


def test_the_score_axis_begins_at_zero_unless_scores_are_negative():
    history = recorded()
    figure = Figure()
    plots.draw_history(figure, history)
    assert figure.axes[0].get_ylim()[0] == 0
    history.episodes = [
        (run, step, -value, length) for run, step, value, length in history.episodes
    ]
    figure.clear()
    plots.draw_history(figure, history)
    assert figure.axes[0].get_ylim()[0] < -5  # every episode lasts at least so long


@pytest.mark.slow
def test_live_plot_shows_one_picture_and_updates_it_at_the_end(shown):
    live = plots.LivePlot()
    for upto in (100, 200, 300, 400):  # faster than the interval between two pictures
        live(recorded(upto=upto))
    assert ["display_id" in options for _, options in shown] == [True, *[False] * (len(shown) - 1)]
    assert 2 <= len(shown) <= 3
    assert pictures(shown)[-1] != pictures(shown)[0]
    assert set(alt_texts(shown)) == {
        "Score, loss and epsilon over 400 environment steps of 3 runs, each faint and their median "
        "bold"
    }
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_live_plot_redraws_when_it_is_due(shown, monkeypatch):
    live = plots.LivePlot()
    live(recorded(upto=100))
    clock = page.time.perf_counter
    monkeypatch.setattr(page.time, "perf_counter", lambda: clock() + 10)
    live(recorded(upto=200))
    assert len(shown) == 2


@pytest.mark.slow
def test_a_live_plot_takes_at_most_a_tenth_of_a_training(shown, monkeypatch):
    """Drawing that takes half a second, and a row of measurements every twentieth."""
    clock, drawn = [100.0], []
    monkeypatch.setattr(page.time, "perf_counter", lambda: clock[0])

    def slow(figure, alt):
        clock[0] += 0.5
        drawn.append(0.5)
        return {"text/plain": alt}, {}

    monkeypatch.setattr(page, "_picture", slow)
    live, history = plots.LivePlot(), recorded(upto=100)
    for _ in range(1200):
        live(history)
        clock[0] += 0.05
    assert 4 <= len(drawn) and sum(drawn) <= 0.1 * (clock[0] - 100)


# Learning curves --------------------------------------------------------------------------------


@pytest.mark.slow
def test_learning_curves_are_the_mean_and_its_interval():
    history = recorded(runs=5)
    axes = Figure().subplots()
    plots.draw_learning_curves(axes, {"a": history})
    grid, values, _ = lines(axes)[-1]
    curve = history.learning_curve(grid)
    assert grid[-1] == 400
    np.testing.assert_allclose(values, curve.mean(axis=1))
    band = axes.collections[0].get_paths()[0].vertices
    low, high = bootstrap_interval(curve, statistic=np.mean)
    for place, bottom, top in zip(grid, low, high, strict=True):
        heights = band[band[:, 0] == place, 1]
        assert (heights.min(), heights.max()) == pytest.approx((bottom, top))


def test_learning_curves_begin_when_every_run_has_finished_an_episode():
    history = recorded(runs=2)
    history.episodes = [(0, 60, 60.0, 60), (1, 210, 210.0, 210), (0, 300, 240.0, 240)]
    axes = Figure().subplots()
    plots.draw_learning_curves(axes, {"a": history})
    grid, values, _ = lines(axes)[-1]
    assert list(grid) == list(range(212, 401, 4))
    np.testing.assert_allclose(values, np.where(grid < 300, 135.0, 180.0))


@pytest.mark.slow
def test_learning_curves_have_the_colour_of_their_sampler_unless_told():
    histories = {name: recorded(sampler=name) for name in ("uniform", "proportional", "rank")}
    axes = Figure().subplots()
    plots.draw_learning_curves(axes, histories, threshold=195)
    drawn = {text.get_text() for text in axes.get_legend().get_texts()}
    labelled = {line.get_label(): line.get_color() for line in axes.lines}
    assert drawn == {*histories, "threshold 195"}
    assert [labelled[name] for name in histories] == [
        COLORS[name] for name in ("uniform", "per", "rank")
    ]
    assert list(axes.lines[-1].get_ydata()) == [195, 195]
    plots.draw_learning_curves(axes, {"told": histories["rank"]}, colors={"told": "#123456"})
    assert axes.lines[-1].get_color() == "#123456"


@pytest.mark.slow
def test_learning_curves_have_the_linestyle_of_their_network():
    networks = {"-": {}, "--": {"double": True}, ":": {"dueling": True}}
    networks["-."] = {"double": True, "dueling": True}
    histories = {style: recorded(runs=2, **settings) for style, settings in networks.items()}
    axes = Figure().subplots()
    plots.draw_learning_curves(axes, histories)
    drawn = {line.get_label(): line.get_linestyle() for line in axes.lines}
    assert {style: drawn[style] for style in histories} == {style: style for style in histories}
