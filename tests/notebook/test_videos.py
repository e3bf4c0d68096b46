"""Videos: kept as small files, and shown so that they play wherever a notebook is read."""

import base64
import subprocess
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from notebook_files import ROOT
from pictures import alt_texts, moving_square

from per_tutorial.notebook import videos


@pytest.mark.slow
def test_the_film_strip_is_evenly_spaced_from_first_to_last(tmp_path):
    path = tmp_path / "square.mp4"
    videos.save_video(moving_square(11, 64, 100), path, fps=10)
    figure = videos.film_strip(path)
    filled = [axes for axes in figure.axes if axes.images]
    assert len(filled) == 6
    lit = [axes.images[0].get_array()[20, :, 0] > 128 for axes in filled]
    starts = [int(np.flatnonzero(row)[0]) for row in lit]
    assert np.abs(np.array(starts) - np.linspace(0, 50, 6)).max() <= 6
    assert filled[0].get_title(loc="left") == "0.0 s"
    plt.close(figure)


@pytest.mark.slow
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
    # A colour of its own would be too pale on one of the grounds.
    assert '<figcaption style="color: inherit">It moves &amp; ends.</figcaption>' in player


def test_a_film_that_cannot_be_shown_is_named(tmp_path, monkeypatch):
    path = tmp_path / "square.mp4"
    with pytest.raises(FileNotFoundError, match="square.mp4"):
        videos.show_video(path, "a square")
    videos.save_video(moving_square(5, 64, 100), path, fps=10)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/nowhere/ffmpeg")
    with pytest.raises(FileNotFoundError, match="/nowhere/ffmpeg"):
        videos.show_video(path, "a square")


def test_films_are_beside_the_notebook_unless_they_are_published(monkeypatch):
    assert videos.video_file("a.mp4") == Path("films", "a.mp4")
    monkeypatch.setenv("PER_TUTORIAL_VIDEOS", "elsewhere")
    assert videos.video_file("a.mp4") == Path("elsewhere", "a.mp4")
    ignored = ["git", "check-ignore", "--quiet", "notebooks/films/a.mp4"]
    assert subprocess.run(ignored, cwd=ROOT).returncode == 0
