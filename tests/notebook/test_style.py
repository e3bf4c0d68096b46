"""The look of the series: every sampler has its colour, every network its linestyle."""

import re

import pytest
from matplotlib.figure import Figure

from per_tutorial.notebook import style
from per_tutorial.notebook.style import COLORS


def test_colours_are_distinct_and_the_same_wherever_a_sampler_is_drawn():
    colors = [*style.SAMPLER_COLORS.values(), COLORS["quiet"]]
    assert all(re.fullmatch("#[0-9A-F]{6}", color) for color in colors)
    assert len(set(colors)) == len(colors)
    assert style.sampler_color("new") == COLORS["quiet"]
    assert COLORS["priority"] == COLORS["per"] == style.sampler_color("proportional")


def test_steps_are_in_thousands():
    axes = Figure().subplots()
    style.label_steps(axes)
    texts = [axes.xaxis.get_major_formatter()(x, 0) for x in (0, 500, 20_000)]
    assert texts == ["0", "0.5k", "20k"]


@pytest.mark.parametrize("span", [(0.9, 1.1), (0.03, 40), (1e-6, 1e2)])
def test_a_log_axis_has_ticks_whatever_it_spans(span):
    axes = Figure(figsize=(4, 2.8)).subplots()
    axes.plot(span)
    style.log_scale(axes)
    axes.figure.draw_without_rendering()
    ticks = axes.yaxis.get_major_ticks()
    texts = [tick.label1.get_text() for tick in ticks if axes.viewLim.contains(0, tick.get_loc())]
    assert axes.get_yscale() == "log" and 3 <= len(set(texts)) <= 10
