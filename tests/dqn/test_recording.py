"""Films of episodes: one format that every browser plays, whatever an environment renders."""

import os

import gymnasium as gym
import numpy as np
import pytest

imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")

from pictures import moving_square  # noqa: E402
from platforms import posix_only  # noqa: E402

from per_tutorial.dqn import recording  # noqa: E402
from per_tutorial.notebook import videos  # noqa: E402


class Rendering(gym.Env):
    """Shows what it is told to; ends after ``length`` steps, or never."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    render_mode = "rgb_array"

    def __init__(self, frame, length=3):
        self.frame, self.length = frame, length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.ones(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.ones(1, np.float32), 1.0, self.steps == self.length, False, {}

    def render(self):
        return self.frame

    def close(self):
        self.steps = "closed"


def test_an_episode_is_filmed_to_its_end_and_meanwhile_there_is_no_screen(tmp_path, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "own")
    monkeypatch.delenv("SDL_AUDIODRIVER", raising=False)
    before, seen, path = dict(os.environ), [], tmp_path / "film.mp4"

    def policy(_):
        seen.append([os.environ[f"SDL_{kind}DRIVER"] for kind in ("VIDEO", "AUDIO")])
        env.frame += 50  # the next picture is in the same array
        return 0

    env = Rendering(np.full((64, 48, 3), 100, np.uint8))
    assert recording.record_episode(policy, env, path, seed=0) == 3
    assert seen == [["own", "dummy"]] * 3 and dict(os.environ) == before
    shades = [frame.mean() for frame in videos.read_frames(path)]
    np.testing.assert_allclose(shades, [100, 150, 200, 250], atol=9)
    assert list(tmp_path.iterdir()) == [path]


FRAMES = {
    "None": (None, "got NoneType"),
    "grey": (np.zeros((8, 8), np.uint8), r"got uint8 of the shape \(8, 8\)"),
    "floats": (np.zeros((8, 8, 3)), r"got float64 of the shape \(8, 8, 3\)"),
}


@pytest.mark.parametrize("case", FRAMES)
def test_what_is_no_picture_is_named_and_leaves_no_file(case, tmp_path):
    frame, message = FRAMES[case]
    env = Rendering(frame)
    with pytest.raises(ValueError, match=f"^env: what render returns must be uint8 .*, {message}"):
        recording.record_episode(lambda _: 0, env, tmp_path / "film.mp4", seed=0)
    assert list(tmp_path.iterdir()) == [] and env.steps == "closed"


def test_an_episode_that_nothing_ends_is_stopped_with_a_word_about_it(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "LONGEST_EPISODE", 30)
    frame = np.zeros((16, 16, 3), np.uint8)
    options = {"seed": 0, "max_frames": 5}
    with pytest.warns(UserWarning, match="did not end in 30 steps and was stopped"):
        value = recording.record_episode(
            lambda _: 0, Rendering(frame, length=None), tmp_path / "film.mp4", **options
        )
    assert value == 30
    gym.register("tests/Rendering-v0", lambda **_: Rendering(frame, length=None))
    options |= {"max_episode_steps": 40}  # a limit of one's own may be longer
    path = tmp_path / "film.mp4"
    assert recording.record_episode(lambda _: 0, "tests/Rendering-v0", path, **options) == 40
    assert len([*videos.read_frames(path)]) == 5


def test_save_video_writes_all_frames_in_an_even_size_or_leaves_the_old_file(tmp_path):
    path = tmp_path / "new" / "square.mp4"
    recording.save_video(moving_square(12, 65, 101), path, fps=10)
    frames = list(videos.read_frames(path))
    assert len(frames) == 12 and frames[0].shape == (64, 100, 3)
    for k in (0, 11):  # compressed, so not exact
        assert frames[k][12:28, 5 * k + 4 : 5 * k + 16].min() > 200
        assert frames[k][40:].max() < 50
    reader = imageio_ffmpeg.read_frames(str(path))
    facts = next(reader)
    reader.close()
    assert facts["codec"] == "h264" and facts["pix_fmt"].startswith("yuv420p")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="frames: at least one"):
        recording.save_video([], path, fps=10)
    assert [entry.name for entry in path.parent.iterdir()] == ["square.mp4"]
    assert path.read_bytes() == before


BAD_FILMS = {
    "no frames per second": ({"fps": 0}, "fps: must be greater than 0, got 0"),
    "NaN frames per second": ({"fps": float("nan")}, "fps: must be greater than 0, got nan"),
    "two sizes": (
        {"frames": [np.zeros((8, 8, 3), np.uint8), np.zeros((8, 6, 3), np.uint8)]},
        r"frames: must be of one size, 2 × 2 pixels or more, got \[\(8, 6\), \(8, 8\)\]",
    ),
    "a pixel": (
        {"frames": [np.zeros((1, 8, 3), np.uint8)]},
        r"frames: must be of one size, 2 × 2 pixels or more, got \[\(1, 8\)\]",
    ),
    "another format": ({"path": "film.gif"}, r"path: must end in \.mp4, got '.*film\.gif'"),
}


@pytest.mark.parametrize("case", BAD_FILMS)
def test_a_film_that_cannot_be_written_is_refused_by_name(case, tmp_path):
    changes, message = BAD_FILMS[case]
    given = {"frames": [np.zeros((8, 8, 3), np.uint8)], "path": "film.mp4", "fps": 10} | changes
    with pytest.raises(ValueError, match=f"^{message}$"):
        recording.save_video(given["frames"], tmp_path / given["path"], given["fps"])
    assert list(tmp_path.iterdir()) == []


def test_an_episode_is_not_played_where_its_film_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/nowhere/ffmpeg")
    with pytest.raises(FileNotFoundError, match="/nowhere/ffmpeg"):
        recording.record_episode(pytest.fail, "CartPole-v1", tmp_path / "film.mp4", seed=0)
    with pytest.raises(FileNotFoundError, match="/nowhere/ffmpeg"):
        recording.save_video([np.zeros((8, 8, 3), np.uint8)], tmp_path / "film.mp4", 10)


BROKEN = (
    "exit 3",
    "cat > /dev/null; echo 'No space left on device' >&2; exit 1",
    'FFMPEG "$@"; truncate -s 1500 "${@: -1}"',
)


@posix_only
@pytest.mark.parametrize("script", BROKEN)
def test_a_film_that_ffmpeg_did_not_finish_replaces_no_other(script, tmp_path, monkeypatch):
    path, ffmpeg = tmp_path / "film.mp4", tmp_path / "ffmpeg"
    path.write_bytes(b"the old film")
    ffmpeg.write_text("#!/bin/bash\n" + script.replace("FFMPEG", imageio_ffmpeg.get_ffmpeg_exe()))
    ffmpeg.chmod(0o700)
    monkeypatch.setattr("moviepy.video.io.ffmpeg_writer.FFMPEG_BINARY", str(ffmpeg))
    message = r"^path: ffmpeg could not write '.*film\.mp4': \d+ of 12 frames can be read "
    with pytest.raises(OSError, match=message):
        recording.save_video(moving_square(12, 64, 100), path, fps=10)
    assert path.read_bytes() == b"the old film"
    assert sorted(tmp_path.iterdir()) == [ffmpeg, path]


def test_a_policy_that_returns_a_state_as_well_is_named(tmp_path):
    env = Rendering(np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(TypeError, match=r"^policy: must .*lambda obs: model\.predict\(obs, "):
        recording.record_episode(lambda _: (np.array(0), None), env, tmp_path / "f.mp4", seed=0)
    assert list(tmp_path.iterdir()) == [] and env.steps == "closed"


@pytest.mark.parametrize(
    ("changes", "exception", "message"),
    [
        ({"seed": -1}, ValueError, "seed: must be at least 0, got -1"),
        ({"seed": 1.5}, TypeError, "seed: must be an integer, got 1.5"),
        ({"max_frames": 0}, ValueError, "max_frames: must be at least 1, got 0"),
        ({"path": "film.gif"}, ValueError, "path: must end in .mp4"),
        ({"path": ""}, FileExistsError, "path: must be a file"),
    ],
)
def test_a_film_that_cannot_be_made_is_refused_before_the_episode(
    changes, exception, message, tmp_path
):
    given = {"seed": 0, "path": "film.mp4"} | changes
    folder = tmp_path / "films.mp4"
    folder.mkdir()
    given["path"] = folder / given["path"]
    env = Rendering(np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(exception, match=message):
        recording.record_episode(lambda _: 0, env, **given)
    assert not hasattr(env, "steps")
