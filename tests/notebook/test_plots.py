"""The plots of training: what is drawn is what was recorded."""

import itertools
import warnings

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.text import Text

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.experiments.estimates import Estimate, bootstrap_interval, interquartile_mean
from per_tutorial.notebook import page as notebook
from per_tutorial.notebook import plots
from per_tutorial.notebook.plots import COLORS


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


@pytest.fixture
def shown(monkeypatch):
    """Every picture shown or updated: a list of (data, metadata, display_id)."""
    pictures = []

    class Handle:
        def update(self, data, *, metadata, raw):
            pictures.append((data, metadata, None))

    def display(data, *, metadata, raw, display_id=None):
        pictures.append((data, metadata, display_id))
        return Handle()

    monkeypatch.setattr(notebook, "display", display)
    return pictures


def lines(axes):
    return [(line.get_xdata(), line.get_ydata(), line.get_linewidth()) for line in axes.lines]


# Runs -------------------------------------------------------------------------------------------


def test_draw_runs_draws_every_run_faint_and_the_median_bold():
    axes = Figure().subplots()
    values = np.array([[1.0, 5.0, 2.0], [2.0, 9.0, 4.0]])
    plots.draw_runs(axes, [10, 20], values, "black", label="median")
    *faint, (steps, median, width) = lines(axes)
    assert [list(y) for _, y, _ in faint] == values.T.tolist()
    assert (list(steps), list(median)) == ([10, 20], [2.0, 4.0])
    assert all(width > thin for _, _, thin in faint)
    assert [line.get_label() for line in axes.lines[-1:]] == ["median"]


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


def test_steps_are_written_in_thousands():
    axes = Figure().subplots()
    plots.label_steps(axes)
    texts = [axes.xaxis.get_major_formatter()(x, 0) for x in (0, 500, 20_000)]
    assert texts == ["0", "0.5k", "20k"]


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


def test_a_training_that_has_just_begun_is_drawn_without_complaint():
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


def test_plot_history_shows_one_picture_with_alternative_text(shown):
    plots.plot_history(recorded())
    plots.plot_history(recorded(runs=1), alt="one run")
    automatic, given = (metadata["image/png"]["alt"] for _, metadata, _ in shown)
    assert "3 runs" in automatic and given == "one run"
    assert plt.get_fignums() == []


def test_live_plot_shows_one_picture_and_updates_it_at_the_end(shown):
    live = plots.LivePlot()
    for upto in (100, 200, 300, 400):  # faster than the interval between two pictures
        live(recorded(upto=upto))
    assert shown[0][2] is True and {display_id for _, _, display_id in shown[1:]} == {None}
    assert 2 <= len(shown) <= 3
    assert shown[-1][0]["image/png"] != shown[0][0]["image/png"]
    assert {metadata["image/png"]["alt"] for _, metadata, _ in shown} == {
        "Score, loss and epsilon over 400 environment steps of 3 runs, each faint and their median "
        "bold"
    }
    plots.plot_history(recorded(upto=400), "the end")
    assert shown[-1][0]["image/png"] == shown[-2][0]["image/png"]
    assert plt.get_fignums() == []


def test_live_plot_redraws_when_it_is_due(shown, monkeypatch):
    live = plots.LivePlot()
    live(recorded(upto=100))
    clock = notebook.time.perf_counter
    monkeypatch.setattr(notebook.time, "perf_counter", lambda: clock() + 10)
    live(recorded(upto=200))
    assert len(shown) == 2


# Learning curves --------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_learning_curves_are_the_statistic_and_its_interval(statistic):
    history = recorded(runs=5)
    axes = Figure().subplots()
    plots.draw_learning_curves(axes, {"a": history}, statistic=statistic, window=3, points=8)
    grid, values, _ = lines(axes)[-1]
    curve = history.learning_curve(grid, window=3)
    assert list(grid) == [50 * k for k in range(1, 9)]
    np.testing.assert_allclose(values, statistic(curve, axis=1))
    band = axes.collections[0].get_paths()[0].vertices
    low, high = bootstrap_interval(curve, statistic=statistic)
    for place, bottom, top in zip(grid, low, high, strict=True):
        heights = band[band[:, 0] == place, 1]
        assert (heights.min(), heights.max()) == pytest.approx((bottom, top))


def test_learning_curves_begin_when_every_run_has_finished_an_episode():
    history = recorded(runs=2)
    history.episodes = [(0, 60, 60.0, 60), (1, 210, 210.0, 210), (0, 300, 240.0, 240)]
    axes = Figure().subplots()
    plots.draw_learning_curves(axes, {"a": history}, points=4)
    grid, values, _ = lines(axes)[-1]
    assert list(grid) == [300, 400]
    np.testing.assert_allclose(values, [(150.0 + 210.0) / 2] * 2)


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


def test_learning_curves_have_the_linestyle_of_their_network():
    networks = {"-": {}, "--": {"double": True}, ":": {"dueling": True}}
    networks["-."] = {"double": True, "dueling": True}
    histories = {style: recorded(runs=2, **settings) for style, settings in networks.items()}
    axes = Figure().subplots()
    plots.draw_learning_curves(axes, histories, points=4)
    drawn = {line.get_label(): line.get_linestyle() for line in axes.lines}
    assert {style: drawn[style] for style in histories} == {style: style for style in histories}


def test_plot_learning_curves_passes_its_options_on(shown):
    plots.plot_learning_curves({"a": recorded()}, "two curves", threshold=20, points=5)
    assert [metadata["image/png"]["alt"] for _, metadata, _ in shown] == ["two curves"]


# Comparisons ------------------------------------------------------------------------------------


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def styled():
    with plt.rc_context():
        plots.use_style()
        yield


def misplaced(figure):
    """Texts that stick out of the figure, and pairs of texts that are drawn over one another."""
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for place, label in zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True):
            if not low <= place <= high:  # it exists, but is not drawn
                texts.remove(label)
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    page = figure.bbox.padded(1)
    cut = [text for text, box in boxes if not (page.fully_contains(*box.min))]
    cut += [text for text, box in boxes if not (page.fully_contains(*box.max))]
    return cut, [
        (one, other)
        for (one, box), (other, its) in itertools.combinations(boxes, 2)
        if box.overlaps(its)
    ]


@pytest.mark.usefixtures("styled")
def test_misplaced_texts_are_noticed():
    figure = Figure()
    axes = figure.subplots()
    axes.set(xticks=[0.5], yticks=[])
    axes.text(0.5, 0.5, "one")
    assert misplaced(figure) == ([], [])
    axes.text(0.5, 0.5, "other")
    axes.text(1.5, 0.5, "outside", in_layout=False)
    assert misplaced(figure) == (["outside"] * 2, [("one", "other")])


NETWORKS = ("DQN", "double", "dueling", "double dueling")
SAMPLERS = ("uniform", "proportional", "rank-based")
ARMS = [f"{sampler}, {network}" for network in NETWORKS for sampler in SAMPLERS]


def test_curves_are_the_runs_the_statistic_and_its_interval(rng):
    curves = {"a": ([10, 20, 30], rng.normal(size=(3, 8))), "b": ([15], rng.normal(size=(1, 4)))}
    axes = Figure().subplots()
    plots.draw_curves(
        axes,
        curves,
        colors={"a": "red", "b": "blue"},
        linestyles={"a": ":", "b": "-"},
        statistic=interquartile_mean,
    )
    values = curves["a"][1]
    *faint, bold = axes.lines[:9]
    assert [list(line.get_ydata()) for line in faint] == values.T.tolist()
    np.testing.assert_array_equal(bold.get_ydata(), interquartile_mean(values))
    assert (bold.get_color(), bold.get_linestyle(), bold.get_label()) == ("red", ":", "a")
    assert all(line.get_alpha() < 0.5 and line.get_linestyle() == "-" for line in faint)
    band = axes.collections[0].get_paths()[0].vertices
    low, high = bootstrap_interval(values, statistic=interquartile_mean)
    at_20 = band[band[:, 0] == 20, 1]
    assert (at_20.min(), at_20.max()) == pytest.approx((low[1], high[1]))
    assert axes.get_xlim() == (0, 30)
    assert axes.get_ylim()[0] < values.min()  # negative: the axis does not begin at zero


def test_curves_begin_where_all_runs_have_a_value():
    values = np.array([[np.nan, np.nan], [1.0, np.nan], [1.0, 3.0], [2.0, 4.0]])
    never = np.full((4, 2), np.nan)
    axes = Figure().subplots()
    with warnings.catch_warnings(action="error"):
        plots.draw_curves(
            axes,
            {"a": (np.arange(4), values), "never": (np.arange(4), never)},
            colors={"a": "red", "never": "blue"},
        )
    drawn = {line.get_label(): line for line in axes.lines}
    assert list(drawn["a"].get_xdata()) == [2, 3] and list(drawn["a"].get_ydata()) == [2.0, 3.0]
    assert len(drawn["never"].get_xdata()) == 0
    assert axes.get_ylim()[0] == 0


@pytest.mark.usefixtures("styled")
def test_the_legend_of_many_curves_covers_none(rng):
    curves = {arm: (np.arange(1, 6) * 1000, rng.uniform(0, 500, (5, 3))) for arm in ARMS}
    figure = Figure(figsize=(7, 3.8), dpi=100)
    axes = figure.subplots()
    plots.draw_curves(axes, curves, colors=dict.fromkeys(ARMS, "black"), threshold=475)
    axes.set_title("a title")
    assert misplaced(figure) == ([], [])
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == [*ARMS, "threshold 475"]
    assert axes.get_legend().get_window_extent().x0 >= axes.bbox.x1


ESTIMATES = {
    "gain": Estimate(12.0, 3.0, 21.5),
    "open": Estimate(-1.0, -4.0, 2.0),
    "loss": Estimate(-5.0, -8.0, -2.0),
    "same": Estimate(0.0, 0.0, 0.0),
}


def test_estimates_stand_in_rows_with_their_numbers():
    axes = Figure().subplots()
    plots.draw_estimates(axes, ESTIMATES, colors=dict.fromkeys(ESTIMATES, "blue"))
    assert [label.get_text() for label in axes.get_yticklabels()] == list(ESTIMATES)
    assert axes.yaxis_inverted()
    assert [text.get_text() for text in axes.texts] == [
        "+12.0 [+3.0, +21.5]",
        "−1.0 [−4.0, +2.0]",
        "−5.0 [−8.0, −2.0]",
        "+0.0 [+0.0, +0.0]",
    ]
    for row, (value, low, high) in enumerate(ESTIMATES.values()):
        interval, point = axes.lines[2 * row : 2 * row + 2]
        assert list(interval.get_xdata()) == [low, high]
        assert (list(point.get_xdata()), list(point.get_ydata())) == ([value], [row])
        assert point.get_color() == "blue"
    assert list(axes.lines[-1].get_xdata()) == [0, 0]


@pytest.mark.parametrize(
    ("reference", "settled"),
    [(0.0, ["gain", "loss"]), (-3.0, ["gain", "same"]), (None, list(ESTIMATES))],
)
def test_intervals_that_leave_out_the_reference_are_filled_and_thick(reference, settled):
    axes = Figure().subplots()
    plots.draw_estimates(axes, ESTIMATES, reference=reference)
    intervals, points = axes.lines[0:8:2], axes.lines[1:8:2]
    filled = [point.get_markerfacecolor() != "white" for point in points]
    thick = [interval.get_linewidth() > 2 for interval in intervals]
    assert filled == thick == [label in settled for label in ESTIMATES]
    assert len(axes.lines) == 8 + (reference is not None)


@pytest.mark.usefixtures("styled")
def test_estimates_of_many_comparisons_fit_the_page():
    estimates = {
        f"{one} − {other}, {network}": Estimate(-1234.5, -2345.6, 345.6)
        for network in NETWORKS
        for one, other in itertools.combinations(SAMPLERS, 2)
    }
    figure = Figure(figsize=plots.rows_size(12), dpi=100)
    axes = figure.subplots()
    plots.draw_estimates(axes, estimates)
    axes.set(title="a title", xlabel="difference")
    assert misplaced(figure) == ([], [])
    assert axes.bbox.width > 150  # pixels that remain for the intervals


def test_scores_show_each_run_as_one_dot(rng):
    scores = {
        "spread": np.minimum(200, rng.normal(180, 30, 30)),
        "same": np.full(50, 200.0),  # all in one place
        "one": np.array([-20.0]),
    }
    axes = Figure().subplots()
    colors = {"spread": "red", "same": "blue", "one": "green"}
    plots.draw_scores(axes, scores, colors=colors, threshold=195, statistic=np.mean)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(scores)
    assert axes.yaxis_inverted()
    for row, (label, values) in enumerate(scores.items()):
        dots, tick = axes.lines[2 * row : 2 * row + 2]
        x, y = dots.get_data()
        np.testing.assert_array_equal(x, np.sort(values))
        assert len(set(zip(x, np.round(y, 9), strict=True))) == len(values)
        assert np.abs(y - row).max() <= 0.41, label  # within its row
        assert dots.get_color() == colors[label]
        assert list(tick.get_xdata()) == pytest.approx([values.mean()] * 2)
    assert list(axes.lines[-1].get_xdata()) == [195, 195]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["mean", "threshold 195"]


@pytest.mark.usefixtures("styled")
def test_scores_of_many_arms_fit_the_page(rng):
    scores = {arm: rng.normal(-200, 80, 30) for arm in ARMS}
    figure = Figure(figsize=plots.rows_size(len(scores)), dpi=100)
    axes = figure.subplots()
    plots.draw_scores(axes, scores, threshold=-100, statistic=interquartile_mean)
    axes.set_title("a title")
    assert misplaced(figure) == ([], [])


def test_greedy_scores_are_the_means_of_each_run(monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "show", lambda figure, alt: figures.append((figure, alt)))
    scores = {"a": [[1, 3], [5, 5], [0, 1]], "b": np.full((10, 5), 200.0)}
    plots.plot_greedy_scores(scores, "dots", threshold=195, width=5.0)
    ((figure, alt),) = figures
    assert alt == "dots"
    (axes,) = figure.axes
    assert list(axes.lines[0].get_xdata()) == [0.5, 2.0, 5.0]
    assert list(axes.lines[1].get_xdata()) == [2.0, 2.0]  # the median
    assert axes.lines[0].get_color() == COLORS["uniform"]
    assert figure.get_figwidth() == 5.0
    assert "greedy" in axes.get_xlabel()


@pytest.mark.usefixtures("styled")
def test_a_grid_has_its_numbers_in_it():
    matrix = np.array([[1.25, -20.0, 3.0], [np.nan, 50.0, 6.0]])
    figure = Figure(figsize=(7, 3.6), dpi=100)
    axes = figure.subplots()
    plots.draw_grid(axes, matrix, [0.4, 0.6], ["0", "½", "1"], number=".1f", vmax=100)
    texts = {text.get_position(): text for text in axes.texts}
    assert {place: text.get_text() for place, text in texts.items()} == {
        (0, 0): "1.2",
        (1, 0): "−20.0",
        (2, 0): "3.0",
        (0, 1): "–",
        (1, 1): "50.0",
        (2, 1): "6.0",
    }
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "½", "1"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0.4", "0.6"]
    assert axes.images[0].get_clim() == (-20, 100)
    assert misplaced(figure) == ([], [])


def test_the_numbers_of_a_grid_stand_out():
    values = np.linspace(0, 1, 101)[None]
    axes = Figure().subplots()
    plots.draw_grid(axes, values, ["row"], range(101))
    channels = axes.images[0].to_rgba(values)[0, :, :3]
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722)  # of WCAG 2
    for text, light in zip(axes.texts, luminance, strict=True):
        contrast = 1.05 / (light + 0.05) if text.get_color() == "white" else (light + 0.05) / 0.05
        assert contrast > 4.5  # what WCAG 2 asks of text
    assert (np.diff(luminance) > 0).all()  # it can be read in grey, too


def test_a_grid_has_a_label_for_each_row_and_column():
    with pytest.raises(ValueError, match=r"matrix: must have the shape \(2, 3\), got \(3, 2\)"):
        plots.draw_grid(Figure().subplots(), np.zeros((3, 2)), "ab", "abc")
