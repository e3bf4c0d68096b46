"""The look of the series: every sampler has its colour, every network its linestyle."""

import re

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
