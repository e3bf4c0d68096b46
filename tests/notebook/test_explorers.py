"""Explorers: the sliders move what the static pictures show, and the panel trains what it says."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from pictures import alt_texts, pictures

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.notebook import explorers


def draw_power(figure, exponent, scale):
    axes = figure.subplots()
    x = np.linspace(0, 1)
    axes.plot(x, scale * x**exponent)


def test_explore_draws_again_when_a_slider_moves(shown):
    controls = explorers.explore(
        draw_power, "x to the power {exponent}", exponent=range(1, 6), scale=(0.0, 2.0, 0.5)
    )
    assert (controls["exponent"].value, controls["scale"].value) == (3, 1.0)
    controls["exponent"].value = 5
    controls["scale"].value = 2.0
    assert alt_texts(shown) == ["x to the power 3", "x to the power 5", "x to the power 5"]
    assert len(set(pictures(shown))) == 3
    assert plt.get_fignums() == []
    with pytest.raises(TypeError, match="scale: must be a widget, a range, "):
        explorers.explore(draw_power, "x", exponent=range(3), scale="large")


@pytest.mark.parametrize("count", [1, 3])
def test_a_gallery_shows_every_setting_in_one_picture(shown, count):
    drawn = []

    def draw(figure, **values):
        drawn.append(values)
        draw_power(figure, **values)

    settings = [{"exponent": k, "scale": 1.0} for k in range(count)]
    explorers.gallery(draw, settings, "powers of x")
    assert drawn == settings
    assert alt_texts(shown) == ["powers of x"]


TINY = DQNConfig(
    steps=60, hidden=(8,), batch_size=4, learning_starts=20, max_episode_steps=10, capacity=100
)
CONTROLS = {"double": True, "sampler": ["uniform", "proportional"], "hidden": [(8, 8), (8,)]}


@pytest.mark.slow
def test_a_panel_trains_what_its_controls_say(shown, capsys):
    panel = explorers.TrainPanel(TINY, [3, 4], **CONTROLS, learning_rate=(0.001, 0.003, 0.001))
    panel.train()
    panel.controls["double"].value = False
    panel.controls["hidden"].value = (8,)
    panel.train()
    labels = [
        "double, sampler uniform, hidden (8, 8), learning rate 0.002",
        "sampler uniform, hidden (8,), learning rate 0.002",
    ]
    assert list(panel.histories) == labels
    printed = capsys.readouterr().out
    assert all(f"{label}: greedy score " in printed for label in labels)
    configs = [history.config for history in panel.histories.values()]
    assert [(each.double, each.hidden) for each in configs] == [(True, (8, 8)), (False, (8,))]
    assert alt_texts(shown)[-1] == f"Learning curves of {'; '.join(labels)}"
    assert (panel.config, plt.get_fignums()) == (TINY, [])


def test_the_button_of_a_panel_waits_until_the_training_is_over(shown, monkeypatch):
    panel = explorers.TrainPanel(TINY, [3, 4], **CONTROLS)
    panel._ipython_display_()
    *controls, button, _ = shown[-1][0].children
    assert controls == list(panel.controls.values())
    enabled = []
    monkeypatch.setattr(panel, "train", lambda: enabled.append(not button.disabled))
    button.click()
    button.click()
    assert (enabled, button.disabled) == ([False, False], False)
