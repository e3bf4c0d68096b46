"""The showing side: pictures with alternative text, videos, explorers and the exercises' checks."""

import base64
import importlib
import io
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from matplotlib import pyplot as plt
from PIL import Image

from per_tutorial import SumTree
from per_tutorial.dqn import training
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.training import evaluate
from per_tutorial.notebook import exercises, explorers, plots, videos
from per_tutorial.notebook import page as notebook
from per_tutorial.notebook.plots import COLORS, draw_shares, draw_tree

# Pictures ---------------------------------------------------------------------------------------


class Handle:
    """What `display(..., display_id=True)` returns; keeps what it is given."""

    def __init__(self):
        self.updates = []

    def update(self, data, **options):
        self.updates.append(data)


@pytest.fixture
def shown(monkeypatch):
    """What was displayed: a list of (object, options), the pictures' bundles among them."""
    displayed = []

    def display(thing, **options):
        displayed.append((thing, options))
        return Handle() if options.get("display_id") else None

    for module in (notebook, explorers, videos):
        monkeypatch.setattr(module, "display", display)
    return displayed


def alt_texts(shown):
    return [
        options["metadata"]["image/png"]["alt"] for _, options in shown if "metadata" in options
    ]


def decoded(bundle):
    return Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))


def line(to=1.0):
    figure, axes = plt.subplots()
    axes.plot([0, 1], [0, to], color=COLORS["per"])
    return figure


def test_show_displays_a_png_with_alternative_text_and_closes_the_figure(shown):
    figure = line()
    notebook.show(figure, "a rising line")
    ((bundle, options),) = shown
    assert decoded(bundle).format == "PNG"
    assert options["raw"] and options["metadata"]["image/png"]["alt"] == "a rising line"
    assert not plt.fignum_exists(figure.number)


def test_pictures_keep_the_colours(shown):
    notebook.show(line(), "a line")
    colors = {color for _, color in decoded(shown[0][0]).convert("RGB").getcolors(2**20)}
    wanted = np.array([int(COLORS["per"][k : k + 2], 16) for k in (1, 3, 5)])
    assert min(np.abs(np.array(color) - wanted).max() for color in colors) <= 4


def test_a_live_figure_changes_seldom_and_ends_with_the_last_state(shown, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(notebook.time, "perf_counter", lambda: clock[0])
    live = notebook.LiveFigure("a growing line", interval=1.0)
    figure, axes = plt.subplots()
    for k in range(10):  # 2.25 seconds
        axes.plot([0, k], [0, k])
        live.update(figure)
        clock[0] += 0.25
    handle = live._handle
    assert len(shown) == 1 and len(handle.updates) == 2
    live.close()
    assert len(handle.updates) == 3
    assert handle.updates[-1] != handle.updates[-2]
    assert not plt.fignum_exists(figure.number)


def test_budget_and_fast_mode_follow_the_environment(monkeypatch):
    try:
        for value, fast, chosen in [("1", True, 3), ("0", False, 1000), (None, False, 1000)]:
            if value is None:
                monkeypatch.delenv("PER_TUTORIAL_FAST")
            else:
                monkeypatch.setenv("PER_TUTORIAL_FAST", value)
            importlib.reload(notebook)
            assert notebook.FAST is fast
            assert notebook.budget(1000, 3) == chosen
    finally:
        monkeypatch.undo()
        importlib.reload(notebook)


def test_the_stamp_is_one_line_that_names_mode_and_versions(capsys):
    notebook.stamp()
    text = capsys.readouterr().out
    assert text.count("\n") == 1
    for word in (
        "full mode" if not notebook.FAST else "fast mode",
        "Python 3.",
        "numpy 2",
        "threads",
    ):
        assert word in text


@pytest.mark.parametrize(("capacity", "runs"), [(1, None), (5, None), (16, None), (3, 4)])
def test_trees_of_every_form_can_be_drawn(capacity, runs):
    tree = SumTree(capacity, runs)
    figure, axes = plt.subplots()
    draw_tree(axes, tree.nodes, capacity=capacity, first_root=tree.first_root, path=[1])
    texts = [text.get_text() for text in axes.texts]
    assert texts.count(f"[{capacity - 1}]") == tree.first_root
    plt.close(figure)


def test_shares_leave_out_empty_leaves():
    figure, axes = plt.subplots()
    draw_shares(axes, [2.0, 0.0, 1.0], prefixes=[2.5], picked=[2])
    assert [bar.get_width() for bar in axes.patches if bar.get_width() in (1, 2)] == [2, 1]
    assert axes.get_xlim() == (0, 3)
    plt.close(figure)


# Videos -----------------------------------------------------------------------------------------


def moving_square(count, height, width):
    for k in range(count):
        frame = np.zeros((height, width, 3), dtype=np.uint8)
        frame[10:30, 5 * k : 5 * k + 20] = 255
        yield frame


def test_save_video_writes_all_frames_in_an_even_size(tmp_path):
    path = tmp_path / "new" / "square.mp4"
    videos.save_video(moving_square(12, 65, 101), path, fps=10)
    frames = list(videos.read_frames(path))
    assert len(frames) in (12, 13)  # moviepy 1 repeats the last frame
    assert frames[0].shape == (64, 100, 3)
    for k in (0, 11):  # compressed, so not exact
        assert frames[k][12:28, 5 * k + 4 : 5 * k + 16].min() > 200
        assert frames[k][40:].max() < 50
    assert [entry.name for entry in path.parent.iterdir()] == ["square.mp4"]
    assert b"avc1" in path.read_bytes()  # H.264


def test_save_video_needs_frames_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "square.mp4"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="frames: at least one"):
        videos.save_video([], path, fps=10)

    def broken():
        yield np.zeros((64, 64, 3), dtype=np.uint8)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        videos.save_video(broken(), path, fps=10)
    assert path.read_bytes() == b"old"


def test_record_episode_returns_the_return_and_films_every_step(tmp_path):
    path = tmp_path / "episode.mp4"
    observations = []

    def policy(observation):
        observations.append(observation)
        return 1

    episode_return = videos.record_episode(policy, "CartPole-v1", path, seed=3)
    env = gym.make("CartPole-v1")
    first, _ = env.reset(seed=3)
    assert (observations[0] == first).all()
    assert episode_return == len(observations) < 20  # always to the right: the pole soon falls
    frames = len(list(videos.read_frames(path)))
    assert abs(frames - (1 + len(observations))) <= 1  # moviepy reckons with seconds, and rounds
    assert [entry.name for entry in tmp_path.iterdir()] == ["episode.mp4"]


def test_record_episode_stops_filming_at_max_frames_and_plays_on(tmp_path):
    def balance(observation):
        return int(observation[2] + observation[3] > 0)

    path = tmp_path / "episode.mp4"
    options = {"seed": 0, "max_episode_steps": 60, "max_frames": 25}
    assert videos.record_episode(balance, "CartPole-v1", path, **options) == 60
    assert abs(len(list(videos.read_frames(path))) - 25) <= 1


def test_an_error_in_the_policy_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError):
        videos.record_episode(lambda _: 1 // 0, "CartPole-v1", tmp_path / "episode.mp4", seed=0)
    assert list(tmp_path.iterdir()) == []


def test_the_film_strip_is_evenly_spaced_from_first_to_last(tmp_path):
    path = tmp_path / "square.mp4"
    videos.save_video(moving_square(11, 64, 100), path, fps=10)
    figure = videos.film_strip(path, count=3)
    filled = [axes for axes in figure.axes if axes.images]
    assert len(filled) == 3
    lit = [axes.images[0].get_array()[20, :, 0] > 128 for axes in filled]
    starts = [int(np.flatnonzero(row)[0]) for row in lit]
    assert np.abs(np.array(starts) - [0, 25, 50]).max() <= 6
    assert filled[0].get_title(loc="left") == "0.0 s"
    plt.close(figure)


def test_show_video_is_a_picture_and_a_player_with_the_file_inside(tmp_path, shown):
    path = tmp_path / "square.mp4"
    videos.save_video(moving_square(5, 64, 100), path, fps=10)
    videos.show_video(path, 'a "white" square', caption="It moves & ends.")
    assert alt_texts(shown) == ['Film strip: a "white" square']
    player = shown[-1][0].data
    inside = player.partition("data:video/mp4;base64,")[2].partition('"')[0]
    assert base64.b64decode(inside) == path.read_bytes()
    assert "<source" not in player  # JupyterLab drops it from notebooks that it does not trust
    assert "a &quot;white&quot; square" in player
    assert "<figcaption>It moves &amp; ends.</figcaption>" in player


def test_videos_of_a_fast_run_do_not_replace_the_published_ones(monkeypatch, tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "videos").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    monkeypatch.setattr(videos, "FAST", False)
    assert videos.video_file("a.mp4").resolve() == tmp_path / "videos" / "a.mp4"
    monkeypatch.setattr(videos, "FAST", True)
    assert tmp_path / "videos" not in videos.video_file("a.mp4").resolve().parents


# Explorers --------------------------------------------------------------------------------------


def draw_power(figure, exponent, scale):
    axes = figure.subplots()
    x = np.linspace(0, 1)
    axes.plot(x, scale * x**exponent)


def test_explore_draws_anew_when_a_slider_moves(shown):
    controls = explorers.explore(
        draw_power, "x to the power {exponent}", exponent=range(1, 6), scale=(0.0, 2.0, 0.5)
    )
    assert (controls["exponent"].value, controls["scale"].value) == (3, 1.0)
    controls["exponent"].value = 5
    controls["scale"].value = 2.0
    assert alt_texts(shown) == [
        "x to the power 3",
        "x to the power 5",
        "x to the power 5",
    ]
    pictures = [thing["image/png"] for thing, options in shown if "metadata" in options]
    assert len(set(pictures)) == 3
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


def test_a_panel_draws_the_curves_of_all_that_it_has_trained(shown, monkeypatch):
    drawn = []

    def draw(axes, histories, *, colors):
        drawn.append((dict(histories), [colors[label] for label in histories]))

    monkeypatch.setattr(plots, "draw_learning_curves", draw)
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
    def train(config, seeds, watchers):
        return SimpleNamespace(config=config, agent=None)

    monkeypatch.setattr(training, "train", train)
    monkeypatch.setattr(training, "evaluate", lambda agent: np.zeros((1, 10)))
    monkeypatch.setattr(plots, "draw_learning_curves", lambda *_, **options: None)
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


def test_the_button_of_a_panel_can_be_used_again_after_an_error(shown, caplog):
    panel = explorers.TrainPanel(TINY, [3, 4], sampler=["best", "uniform"])
    button, _, _ = displayed_panel(panel, shown)
    button.click()  # ipywidgets reports errors itself
    assert "sampler: must be one of 'uniform', 'proportional', 'rank', got 'best'" in caplog.text
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


# Exercises --------------------------------------------------------------------------------------


@pytest.fixture
def checker():
    """Registers a checker for one test."""

    @exercises.checks("test")
    def sum_of_two(add):
        return None if add(1, 2) == 3 else "subtracted, not added"

    yield
    del exercises.CHECKERS["test"]


@pytest.mark.parametrize(
    ("answer", "passes", "message"),
    [
        (lambda a, b: a + b, True, "✓ test: right."),
        (lambda a, b: a - b, False, "✗ test: subtracted, not added"),
        (lambda a, b: 1 / 0, False, "✗ test: the check stopped with ZeroDivisionError"),
        (lambda a: a, False, "✗ test: the check stopped with TypeError"),
        (5, False, "✗ test: the check stopped with TypeError"),
        (..., False, "○ test: not solved yet"),
        (NotImplemented, False, "○ test: not solved yet"),
        (lambda a, b: ..., False, "○ test: not solved yet"),
        (lambda a, b: NotImplemented, False, "○ test: not solved yet"),
    ],
)
def test_check_says_what_the_answer_is(checker, capsys, answer, passes, message):
    assert exercises.check("test", answer) is passes
    assert capsys.readouterr().out.startswith(message)


def sum_by_walking(nodes, leaf):
    first = len(nodes) // 2
    return sum(nodes[first : first + leaf])


def sum_inclusive(nodes, leaf):
    return sum_by_walking(nodes, leaf + 1)


def sum_after(nodes, leaf):
    return nodes[1] - sum_inclusive(nodes, leaf)


def sum_of_eight(nodes, leaf):
    return sum(nodes[8 : 8 + leaf])


def sum_that_clears(nodes, leaf):
    before = sum_by_walking(nodes, leaf)
    nodes[1] = 0.0
    return before


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("01.1", [1, 3, 6, 13], "only if the prefix is *less*"),
        ("01.1", [1, 3, 7, 15], "subtract the left sum"),
        ("01.1", [3, 7, 14], "root is node 1"),
        ("01.1", [1, 3, 7, 6], "leaf [k] is node 8 + k"),
        ("01.1", [1, 2, 5, 11], "you leave the path at node 1"),
        ("01.1", [1, 3], "you leave the path at node 3"),
        ("01.1", [1, 3, 7, 14, 28], "four nodes are enough"),
        ("01.1", 14, "TypeError"),
        ("01.2", sum_inclusive, "the sum ends *before* it"),
        ("01.2", sum_after, "add its left sibling"),
        ("01.2", sum_by_walking, "Ten are enough"),
        ("01.2", sum_of_eight, "where the leaves begin"),
        ("01.2", sum_that_clears, "only read it"),
        ("01.2", lambda nodes, leaf: 0.0, "the sum before it is 3, yours is 0.0"),
        ("01.3", lambda total, u: [total * x for x in u], "independent draws"),
        ("01.3", lambda total, u: [(k + x) / 4 for k, x in enumerate(u)], "stretch them"),
        ("01.3", lambda total, u: [(k + 0.5) * total / 4 for k in range(4)], "same prefix sums"),
        ("01.3", lambda total, u: [(k + 1 + x) * 2 for k, x in enumerate(u)], "k starts at 0"),
        ("01.3", lambda total, u: [(k + 1 - x) * 2 for k, x in enumerate(u)], "draw k belongs"),
        ("01.3", lambda total, u: [(k + x * x) * 2 for k, x in enumerate(u)], "in its range"),
        ("01.3", lambda total, u: [0.0], "one prefix sum for each"),
        ("01.4", 16_000_000, "padded to"),
        ("01.4", 15_999_992, "padded to"),
        ("01.4", 8 * 2**20, "the leaves alone"),
        ("01.4", 2**21, "number of nodes"),
        ("01.4", 8 * (2**21 - 1), "place 0"),
        ("01.4", 32 * 2**20, "twice too much"),
        ("01.4", 8 * 2**20 + 1, "nodes = 2 × leaves"),
    ],
)
def test_checks_name_the_mistake(capsys, name, answer, mistake):
    assert exercises.check(name, answer) is False
    assert mistake in capsys.readouterr().out
