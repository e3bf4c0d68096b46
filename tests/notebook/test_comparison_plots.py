"""The pictures that compare: what is drawn is what was estimated."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from per_tutorial.notebook import comparison_plots as plots
from per_tutorial.statistics import Estimate, t_interval

RNG = np.random.default_rng(0)


def test_curves_are_the_runs_their_mean_and_its_interval():
    values = RNG.normal(size=(3, 8))
    axes = Figure().subplots()
    plots.draw_curves(
        axes,
        {
            "a": ([10, 20, 30], values),
            "b": ([15], RNG.normal(size=(1, 4))),
            "one run": ([10, 20], [[1.0], [2.0]]),
        },
        colors={"a": "red", "b": "blue", "one run": "black"},
    )
    *faint, bold = axes.lines[:9]
    assert [list(line.get_ydata()) for line in faint] == values.T.tolist()
    assert all(line.get_alpha() < 0.5 for line in faint)
    np.testing.assert_array_equal(bold.get_ydata(), np.mean(values, axis=1))
    assert (bold.get_color(), bold.get_label()) == ("red", "a")
    band = axes.collections[0].get_paths()[0].vertices
    at_20 = band[band[:, 0] == 20, 1]
    assert (at_20.min(), at_20.max()) == pytest.approx(t_interval(values[1])[1:])
    assert axes.lines[-2].get_label() != "one run" and list(axes.lines[-1].get_ydata()) == [1, 2]
    assert axes.get_xlim() == (0, 30)
    assert axes.get_ylim()[0] < values.min()  # negative: the axis does not begin at zero
    axes.figure.draw_without_rendering()
    legend = axes.get_legend().get_window_extent()
    drawn = np.concatenate([line.get_xydata() for line in axes.lines])
    assert legend.count_contains(axes.transData.transform(drawn)) == 0


def test_curves_begin_where_all_runs_have_a_value_and_many_have_their_legend_outside():
    values = np.array([[np.nan, np.nan], [1.0, np.nan], [3.0, 3.1], [4.0, 4.1]])
    curves = {"a": (np.arange(4), values), "never": (np.arange(4), np.full((4, 2), np.nan))}
    curves |= {str(k): (np.arange(4), values + k) for k in range(3)}
    axes = Figure().subplots()
    with warnings.catch_warnings(action="error"):
        plots.draw_curves(axes, curves, colors=dict.fromkeys(curves, "black"))
    drawn = {line.get_label(): line for line in axes.lines}
    assert list(drawn["a"].get_xdata()) == [2, 3] and list(drawn["a"].get_ydata()) == [3.05, 4.05]
    assert len(drawn["never"].get_xdata()) == 0
    assert axes.get_ylim()[0] == 0
    axes.figure.draw_without_rendering()
    assert axes.get_legend().get_window_extent().x0 >= axes.bbox.x1


ESTIMATES = {
    "gain": Estimate(12.0, 3.0, 21.5),
    "open": Estimate(-1.0, -4.0, 2.0),
    "same": Estimate(-0.04, -0.04, 0.0),
    "loss": Estimate(-8.0, -12.0, -3.0),
}


def test_estimates_stand_in_rows_with_their_numbers():
    axes = Figure().subplots()
    plots.draw_estimates(axes, ESTIMATES, colors=dict.fromkeys(ESTIMATES, "blue"))
    assert [label.get_text() for label in axes.get_yticklabels()] == list(ESTIMATES)
    assert axes.yaxis_inverted()
    texts = ["+12.0 [+3.0, +21.5]", "−1.0 [−4.0, +2.0]", "+0.0 [+0.0, +0.0]"]
    texts.append("−8.0 [−12.0, −3.0]")
    assert [text.get_text() for text in axes.texts] == texts
    for row, (value, low, high) in enumerate(ESTIMATES.values()):
        bar, dot = axes.lines[2 * row : 2 * row + 2]
        assert (list(bar.get_xdata()), bar.get_solid_capstyle()) == ([low, high], "butt")
        assert (list(dot.get_xdata()), list(dot.get_ydata())) == ([value], [row])
        hollow = dot.get_markerfacecolor() == "white"
        assert (hollow, bar.get_linewidth() < 2) == ((row in (1, 2),) * 2)
    assert list(axes.lines[-1].get_xdata()) == [0, 0]
    assert plots.rows_size(10) > plots.rows_size(3)
