"""Explorers: the sliders move what the static pictures show."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from pictures import alt_texts, pictures

from per_tutorial.notebook import explorers


def draw_power(figure, exponent, scale=1.5):
    axes = figure.subplots()
    x = np.linspace(0, 1)
    axes.plot(x, scale * x**exponent)


@pytest.mark.slow
def test_explore_draws_again_when_a_slider_moves(shown):
    controls = explorers.explore(
        draw_power, "x to the power {exponent}", exponent=range(1, 6), scale=(0.0, 2.0, 0.5)
    )
    assert (controls["exponent"].value, controls["scale"].value) == (
        3,
        1.5,
    )  # the middle, and the default
    controls["exponent"].value = 5
    controls["scale"].value = 2.0
    assert alt_texts(shown) == ["x to the power 3", "x to the power 5", "x to the power 5"]
    assert len(set(pictures(shown))) == 3
    assert plt.get_fignums() == []
    with pytest.raises(TypeError, match=r"scale: must be a range, \(low, high, step\) or a list"):
        explorers.explore(draw_power, "x", exponent=range(3), scale="large")


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.slow
def test_a_gallery_shows_every_setting_in_one_picture(shown, count):
    drawn = []

    def draw(figure, **values):
        drawn.append(values)
        draw_power(figure, **values)

    settings = [{"exponent": k, "scale": 1.0} for k in range(count)]
    explorers.gallery(draw, settings, "powers of x")
    assert drawn == settings
    assert alt_texts(shown) == ["powers of x"]
