"""Films: small files that every browser plays, whole or absent."""

import gymnasium as gym
import numpy as np
import pytest

from per_tutorial.dqn.recording import record_episode, save_video
from per_tutorial.notebook.videos import read_frames


def moving_square(count, height, width):
    for k in range(count):
        frame = np.zeros((height, width, 3), dtype=np.uint8)
        frame[10:30, 5 * k : 5 * k + 20] = 255
        yield frame


def test_save_video_writes_all_frames_in_an_even_size(tmp_path):
    path = tmp_path / "new" / "square.mp4"
    save_video(moving_square(12, 65, 101), path, fps=10)
    frames = list(read_frames(path))
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
        save_video([], path, fps=10)
    assert path.read_bytes() == b"old"


@pytest.mark.slow
def test_record_episode_returns_the_return_and_films_every_step(tmp_path):
    path = tmp_path / "episode.mp4"
    observations = []

    def policy(observation):
        observations.append(observation)
        return 1

    episode_return = record_episode(policy, "CartPole-v1", path, seed=3)
    env = gym.make("CartPole-v1")
    first, _ = env.reset(seed=3)
    assert (observations[0] == first).all()
    assert episode_return == len(observations) < 20  # always to the right: the pole soon falls
    frames = len(list(read_frames(path)))
    assert abs(frames - (1 + len(observations))) <= 1  # moviepy counts in seconds, and rounds
    assert [entry.name for entry in tmp_path.iterdir()] == ["episode.mp4"]


@pytest.mark.slow
def test_an_error_in_the_policy_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError):
        record_episode(lambda _: 1 // 0, "CartPole-v1", tmp_path / "episode.mp4", seed=0)
    assert list(tmp_path.iterdir()) == []
