"""Videos: small files that every browser plays, recorded, kept and shown."""

import base64

import gymnasium as gym
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
    assert path.read_bytes() == b"old"


@pytest.mark.slow
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
    assert abs(frames - (1 + len(observations))) <= 1  # moviepy counts in seconds, and rounds
    assert [entry.name for entry in tmp_path.iterdir()] == ["episode.mp4"]


@pytest.mark.slow
def test_an_error_in_the_policy_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError):
        videos.record_episode(lambda _: 1 // 0, "CartPole-v1", tmp_path / "episode.mp4", seed=0)
    assert list(tmp_path.iterdir()) == []


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
