"""Explorers: the sliders move what the static pictures show, and the panel trains what it says."""

import io
import logging
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot as plt
from pictures import alt_texts, pictures

from per_tutorial.dqn import training
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.training import evaluate
from per_tutorial.notebook import explorers, training_plots


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


def test_explore_knows_its_kinds_of_controls():
    with pytest.raises(TypeError, match="scale: must be a widget, a range, "):
        explorers.explore(draw_power, "x", exponent=range(3), scale="large")


@pytest.mark.parametrize("count", [1, 3, 4])
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
SWITCHES = {"double": True, "sampler": ["uniform", "proportional"]}


def displayed_panel(panel, shown):
    """The button and the output of a panel, and its controls from top to bottom."""
    panel._ipython_display_()
    *controls, button, output = shown[-1][0].children
    return button, output, controls


@pytest.mark.slow
def test_a_panel_trains_what_its_controls_say(shown, capsys):
    panel = explorers.TrainPanel(TINY, [3, 4], **SWITCHES)
    panel.train()
    panel.controls["double"].value = False
    panel.controls["sampler"].value = "proportional"
    panel.train()
    changes = {
        "double, sampler uniform": {"double": True, "sampler": "uniform"},
        "sampler proportional": {"double": False, "sampler": "proportional"},
    }
    assert list(panel.histories) == list(changes)
    printed = capsys.readouterr().out
    for label, history in panel.histories.items():
        assert (history.config, history.seeds) == (TINY.replace(**changes[label]), [3, 4])
        assert history.step == 60
        greedy = evaluate(history.agent).mean()
        assert f"\n{label}: greedy score {greedy:.0f} (runs: " in printed
    assert panel.config == TINY


@pytest.mark.slow
def test_a_panel_draws_the_curves_of_all_that_it_has_trained(shown, monkeypatch):
    drawn = []

    def draw(axes, histories, *, colors):
        drawn.append((dict(histories), [colors[label] for label in histories]))

    monkeypatch.setattr(training_plots, "draw_learning_curves", draw)
    panel = explorers.TrainPanel(TINY, [3, 4], **SWITCHES)
    for double, sampler in [(True, "uniform"), (True, "proportional"), (True, "uniform")]:
        panel.controls["double"].value = double
        panel.controls["sampler"].value = sampler
        panel.train()
    labels = ["double, sampler uniform", "double, sampler proportional"]
    assert [list(histories) for histories, _ in drawn] == [labels[:1], labels, labels]
    assert drawn[2][0]["double, sampler uniform"] is not drawn[1][0]["double, sampler uniform"]
    assert alt_texts(shown)[-1] == f"Learning curves of {'; '.join(labels)}"
    first, second = drawn[-1][1]
    assert first != second and drawn[0][1] == [first]  # a curve keeps its colour
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_a_panel_may_train_more_settings_than_it_has_colours(shown):
    count = len(explorers.PANEL_COLORS) + 1
    panel = explorers.TrainPanel(TINY, [3, 4], batch_size=range(4, 4 + count))
    for batch_size in range(4, 4 + count):
        panel.controls["batch_size"].value = batch_size
        panel.train()
    assert list(panel.histories) == [f"batch size {4 + k}" for k in range(count)]
    assert len(alt_texts(shown)) == count


@pytest.mark.parametrize(
    ("controls", "label"),
    [
        ({"double": True, "dueling": True}, "double, dueling"),
        ({"double": False, "dueling": True, "sampler": ["rank"]}, "dueling, sampler rank"),
        ({"double": False, "dueling": False}, "all off"),
        ({"tau": (0.1, 0.5, 0.1)}, "tau 0.3"),  # 0.1 + 2 · 0.1 is 0.30000000000000004
        ({"learning_rate": [3e-4]}, "learning rate 0.0003"),
        ({"hidden": [(8, 8)], "max_grad_norm": [None]}, "hidden (8, 8), max grad norm None"),
    ],
)
def test_a_panel_says_in_words_what_is_switched(shown, monkeypatch, controls, label):
    def train(config, seeds, callbacks):
        return SimpleNamespace(config=config, agent=object())

    monkeypatch.setattr(training, "train", train)
    monkeypatch.setattr(training, "evaluate", lambda agent: np.zeros((1, 10)))
    monkeypatch.setattr(training_plots, "draw_learning_curves", lambda *_, **options: None)
    panel = explorers.TrainPanel(TINY, [3, 4], **controls)
    panel.train()
    assert list(panel.histories) == [label]


def test_the_button_of_a_panel_trains_and_waits_until_it_is_over(shown, monkeypatch):
    panel = explorers.TrainPanel(TINY, [3, 4], **SWITCHES)
    button, _, controls = displayed_panel(panel, shown)
    assert controls == list(panel.controls.values())
    enabled = []
    monkeypatch.setattr(panel, "train", lambda: enabled.append(not button.disabled))
    button.click()
    button.click()
    assert enabled == [False, False]
    assert not button.disabled


@pytest.mark.slow
def test_the_button_of_a_panel_can_be_used_again_after_an_error(shown, monkeypatch):
    panel = explorers.TrainPanel(TINY, [3, 4], sampler=["best", "uniform"])
    button, _, _ = displayed_panel(panel, shown)
    reported = io.StringIO()  # ipywidgets logs errors itself
    monkeypatch.setattr(button.log, "handlers", [logging.StreamHandler(reported)])
    button.click()
    assert "sampler: must be one of 'uniform', 'proportional', 'rank'" in reported.getvalue()
    assert "got 'best'" in reported.getvalue()
    assert not button.disabled and panel.histories == {}
    panel.controls["sampler"].value = "uniform"
    button.click()
    assert list(panel.histories) == ["sampler uniform"]


def test_choices_may_be_pairs():
    controls = explorers.TrainPanel(TINY, [3, 4], hidden=[(64, 64), (8,), ()]).controls
    assert controls["hidden"].value == (64, 64)
    controls["hidden"].value = ()
    assert controls["hidden"].label == "()"


def test_a_panel_refuses_too_few_seeds_and_what_is_no_setting_or_no_control():
    with pytest.raises(ValueError, match=r"seeds: at least two are needed, got \[3\]"):
        explorers.TrainPanel(TINY, [3], **SWITCHES)
    with pytest.raises(ValueError, match="controls: must be one of 'env', .*, got 'sampelr'"):
        explorers.TrainPanel(TINY, [3, 4], double=True, sampelr=["uniform"])
    with pytest.raises(TypeError, match="tau: must be a widget, a range"):
        explorers.TrainPanel(TINY, [3, 4], tau=0.1)
