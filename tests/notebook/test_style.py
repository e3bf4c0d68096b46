"""The look of the series: every sampler has its colour, and bars end where their intervals end."""

import re

import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.notebook import style
from per_tutorial.notebook.style import COLORS
from per_tutorial.replay.registry import SAMPLERS


def test_no_two_samplers_have_the_same_colour():
    assert style.SAMPLER_COLORS.keys() <= SAMPLERS.keys()
    colors = [*style.SAMPLER_COLORS.values(), COLORS["quiet"]]
    assert all(re.fullmatch("#[0-9A-F]{6}", color) for color in colors)
    assert len(set(colors)) == len(colors)


def test_a_new_sampler_is_grey():
    assert style.sampler_color("new") == COLORS["quiet"]


def test_the_colours_of_concepts_agree_with_those_of_samplers():
    names = {"uniform": "uniform", "per": "proportional", "rank": "rank"}
    assert {concept: COLORS[concept] for concept in names} == {
        concept: style.sampler_color(name) for concept, name in names.items()
    }
    assert COLORS["priority"] == COLORS["per"]


@pytest.mark.parametrize(
    ("settings", "linestyle"),
    [
        ({}, "-"),
        ({"double": True}, "--"),
        ({"dueling": True}, ":"),
        ({"double": True, "dueling": True}, "-."),
    ],
)
def test_networks_have_linestyles(settings, linestyle):
    assert style.network_linestyle(DQNConfig(**settings)) == linestyle


@pytest.mark.usefixtures("styled")
def test_a_bar_is_not_longer_than_its_interval():
    figure, axes = plt.subplots()
    (bar,) = axes.plot([0, 1], [0, 0], linewidth=20)
    assert bar.get_solid_capstyle() == "butt"
    plt.close(figure)


def test_steps_are_written_in_thousands():
    axes = Figure().subplots()
    style.label_steps(axes)
    texts = [axes.xaxis.get_major_formatter()(x, 0) for x in (0, 500, 20_000)]
    assert texts == ["0", "0.5k", "20k"]
