"""The pictures that compare: what is drawn is what was estimated, and nothing covers anything."""

import itertools
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from per_tutorial.notebook import comparison_plots as plots
from per_tutorial.notebook.style import COLORS
from per_tutorial.statistics import (
    Estimate,
    bootstrap_interval,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


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
        statistic=np.median,
    )
    values = curves["a"][1]
    *faint, bold = axes.lines[:9]
    assert [list(line.get_ydata()) for line in faint] == values.T.tolist()
    np.testing.assert_array_equal(bold.get_ydata(), np.median(values, axis=-1))
    assert (bold.get_color(), bold.get_linestyle(), bold.get_label()) == ("red", ":", "a")
    assert all(line.get_alpha() < 0.5 and line.get_linestyle() == "-" for line in faint)
    band = axes.collections[0].get_paths()[0].vertices
    low, high = bootstrap_interval(values, statistic=np.median)
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


@pytest.mark.slow
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


def test_intervals_that_leave_out_zero_are_filled_and_thick():
    axes = Figure().subplots()
    plots.draw_estimates(axes, ESTIMATES)
    intervals, points = axes.lines[0:8:2], axes.lines[1:8:2]
    filled = [point.get_markerfacecolor() != "white" for point in points]
    thick = [interval.get_linewidth() > 2 for interval in intervals]
    assert filled == thick == [label in ("gain", "loss") for label in ESTIMATES]


def test_estimates_show_the_verdicts_they_are_given():
    names = ("clear", "borderline", "not told apart", "not told apart")
    axes = Figure().subplots()
    plots.draw_estimates(axes, ESTIMATES, verdicts=dict(zip(ESTIMATES, names, strict=True)))
    widths = [bar.get_linewidth() for bar in axes.lines[0:8:2]]
    assert widths[0] > widths[1] > widths[2] == widths[3]
    points = axes.lines[1:8:2]
    assert [point.get_fillstyle() for point in points] == ["full", "left", "full", "full"]
    assert [point.get_markerfacecolor() for point in points[:2]] == [COLORS["per"]] * 2
    assert points[1].get_markerfacecoloralt() == "white"
    assert [point.get_markerfacecolor() for point in points[2:]] == ["white"] * 2


def test_estimates_know_three_verdicts():
    with pytest.raises(ValueError, match="verdicts: must be one of 'clear', .*, got 'perhaps'"):
        plots.draw_estimates(
            Figure().subplots(), ESTIMATES, verdicts=dict.fromkeys(ESTIMATES, "perhaps")
        )


def test_the_numbers_of_some_estimates_have_a_star():
    axes = Figure().subplots()
    plots.draw_estimates(axes, ESTIMATES, stars=["loss"], fontsize="medium")
    assert [text.get_text().endswith("] ∗") for text in axes.texts] == [False, False, True, False]
    assert {text.get_fontsize() for text in axes.texts} == {Text(fontsize="medium").get_fontsize()}
    with pytest.raises(ValueError, match="stars: must be one of 'gain', .*, got 'lost'"):
        plots.draw_estimates(Figure().subplots(), ESTIMATES, stars=["lost"])


def test_the_bar_of_an_estimate_is_as_long_as_its_interval():
    axes = Figure().subplots()  # without the style of the series
    plots.draw_estimates(axes, ESTIMATES)
    assert {bar.get_solid_capstyle() for bar in axes.lines[0:8:2]} == {"butt"}


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
    plots.draw_scores(axes, scores, colors=colors)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(scores)
    assert axes.yaxis_inverted()
    for row, (label, values) in enumerate(scores.items()):
        dots, tick = axes.lines[2 * row : 2 * row + 2]
        x, y = dots.get_data()
        np.testing.assert_array_equal(x, np.sort(values))
        assert len(set(zip(x, np.round(y, 9), strict=True))) == len(values)
        assert np.abs(y - row).max() <= 0.41, label  # within its row
        assert dots.get_color() == colors[label]
        assert list(tick.get_xdata()) == pytest.approx([np.median(values)] * 2)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["median"]


@pytest.mark.usefixtures("styled")
def test_scores_of_many_arms_fit_the_page(rng):
    scores = {arm: rng.normal(-200, 80, 30) for arm in ARMS}
    figure = Figure(figsize=plots.rows_size(len(scores)), dpi=100)
    axes = figure.subplots()
    plots.draw_scores(axes, scores, colors=dict.fromkeys(ARMS, "black"))
    axes.set_title("a title")
    assert misplaced(figure) == ([], [])


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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("value", "number", "written"),
    [(-0.4, ".0f", "0"), (-0.04, "+.1f", "+0.0"), (-0.001, ".0%", "0%"), (-0.6, ".0f", "−1")],
)
def test_zero_has_no_minus(value, number, written):
    axes = Figure().subplots()
    plots.draw_grid(axes, [[value]], ["row"], ["column"], number=number)
    plots.draw_estimates(axes, {"row": Estimate(value, value, value)}, number=number)
    texts = [text.get_text() for text in axes.texts]
    assert texts == [written, f"{written} [{written}, {written}]"]


def test_grids_may_share_a_range_of_colours():
    axes = Figure().subplots()
    plots.draw_grid(axes, [[-1.0, 2.0]], ["row"], ["a", "b"], vmin=-50, vmax=50)
    assert axes.images[0].get_clim() == (-50, 50)


def test_a_grid_has_a_label_for_each_row_and_column():
    with pytest.raises(ValueError, match=r"matrix: must have the shape \(2, 3\), got \(3, 2\)"):
        plots.draw_grid(Figure().subplots(), np.zeros((3, 2)), "ab", "abc")
