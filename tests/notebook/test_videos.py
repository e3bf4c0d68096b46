"""Videos: kept as small files, and shown so that they play wherever a notebook is read."""

import base64
import re

import numpy as np
import pytest
from matplotlib import pyplot as plt
from pictures import alt_texts

from per_tutorial.notebook import videos


def moving_square(count, height, width):
    for k in range(count):
        frame = np.zeros((height, width, 3), dtype=np.uint8)
        frame[10:30, 5 * k : 5 * k + 20] = 255
        yield frame


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
    assert "<figcaption>It moves &amp; ends.</figcaption>" in player


@pytest.mark.parametrize("data", [None, b"", b"no film", b"half"])
def test_a_file_that_is_no_film_is_named_in_one_line(data, tmp_path):
    path = tmp_path / "film.mp4"
    if data is not None:
        videos.save_video(moving_square(20, 64, 100), path, fps=10)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if data == b"half" else data)
    with pytest.raises((ValueError, OSError)) as caught:
        videos.show_video(path, "a square")
    said = "no file '.*'" if data is None else "'.*' is damaged, or is no video"
    assert re.fullmatch(f"path: {said}", str(caught.value))


def test_videos_of_a_fast_run_do_not_replace_the_published_ones(monkeypatch, tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "videos").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    monkeypatch.setattr(videos, "FAST", False)
    assert videos.video_file("a.mp4").resolve() == tmp_path / "videos" / "a.mp4"
    monkeypatch.setattr(videos, "FAST", True)
    assert tmp_path / "videos" not in videos.video_file("a.mp4").resolve().parents
