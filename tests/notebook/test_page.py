"""What every notebook shows: pictures with alternative text, live ones, and the stamp."""

from types import SimpleNamespace

import numpy as np
from matplotlib import pyplot as plt
from pictures import alt_texts, decoded, pictures

from per_tutorial.notebook import page
from per_tutorial.notebook.style import COLORS


def line(to=1.0):
    figure, axes = plt.subplots()
    axes.plot([0, 1], [0, to], color=COLORS["per"])
    return figure


def test_show_displays_a_png_with_alternative_text_and_closes_the_figure(shown):
    figure = line()
    page.show(figure, "a rising line")
    ((bundle, options),) = shown
    assert decoded(bundle["image/png"]).format == "PNG"
    assert options["raw"] and alt_texts(shown) == ["a rising line"]
    assert not plt.fignum_exists(figure.number)


def test_pictures_keep_the_colours(shown):
    page.show(line(), "a line")
    colors = {color for _, color in decoded(pictures(shown)[0]).convert("RGB").getcolors(2**20)}
    wanted = np.array([int(COLORS["per"][k : k + 2], 16) for k in (1, 3, 5)])
    assert min(np.abs(np.array(color) - wanted).max() for color in colors) <= 4


def test_a_live_figure_changes_seldom_and_ends_with_the_last_state(shown, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(page.time, "perf_counter", lambda: clock[0])
    live = page.LiveFigure("a growing line", interval=1.0)
    figure, axes = plt.subplots()
    for k in range(10):  # 2.25 seconds
        axes.plot([0, k], [0, k])
        live.update(figure)
        clock[0] += 0.25
    assert ["display_id" in options for _, options in shown] == [True, False, False]
    live.close()
    assert len(shown) == 4
    assert pictures(shown)[-1] != pictures(shown)[-2]
    assert not plt.fignum_exists(figure.number)


def test_live_pictures_that_are_slow_take_at_most_a_tenth_of_the_time(shown, monkeypatch):
    clock, live = [100.0], page.LiveFigure("a line")
    monkeypatch.setattr(page.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(page, "_picture", lambda *_: (clock.append(clock.pop() + 0.5), {}))
    figure = line()
    for _ in range(1200):
        live.update(figure)
        clock[0] += 0.05
    assert 4 <= len(shown) and 0.5 * len(shown) <= 0.1 * (clock[0] - 100)


def test_a_live_figure_begins_anew_after_its_end_and_in_every_cell(shown, monkeypatch):
    cell = SimpleNamespace(execution_count=1)
    monkeypatch.setattr(page, "get_ipython", lambda: cell, raising=False)
    live = page.LiveFigure("a line", interval=1000.0)
    for _ in range(2):
        live.update(line())
        live.close()
    live.update(line())  # here the cell is interrupted
    cell.execution_count = 2
    live.update(line())
    new = ["display_id" in options for _, options in shown]
    assert new == [True, False, True, False, True, True]
    assert plt.get_fignums() == []


def test_in_a_plain_script_a_picture_is_its_text_once(capsys):
    live, drawn = page.LiveFigure("a line", interval=1000.0), []
    for _ in range(3):
        drawn += [live.due]
        live.update(line())
    live.close()
    page.show(line(), "another")
    assert (drawn, capsys.readouterr().out) == ([True, False, False], "[a line]\n[another]\n")


def test_a_fast_run_has_a_small_budget(monkeypatch):
    for fast, chosen in ((True, 3), (False, 1000)):
        monkeypatch.setattr(page, "FAST", fast)
        assert page.budget(1000, 3) == chosen


def test_the_stamp_is_one_line_that_names_mode_and_versions(capsys):
    page.stamp()
    text = capsys.readouterr().out
    assert text.count("\n") == 1
    for word in ("full mode" if not page.FAST else "fast mode", "Python 3.", "numpy 2", " s"):
        assert word in text
