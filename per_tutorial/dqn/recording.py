"""Videos of episodes, or of given frames, as small MP4 files.

They are H.264 with yuv420p pixels, the one format that all browsers play; it needs even sizes.
This needs MoviePy and its ffmpeg, which the extra `video` installs.
"""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from imageio_ffmpeg import count_frames_and_secs, get_ffmpeg_version
from numpy.typing import NDArray

from per_tutorial.common.arguments import real_number, whole_number
from per_tutorial.common.files import check_writable
from per_tutorial.dqn.env_specs import LONGEST_EPISODE
from per_tutorial.dqn.environments.gymnasium_envs import Checked

Frame = NDArray[np.uint8]  # (height, width, 3)


def save_video(frames: Iterable[Frame], path: str | Path, fps: float) -> None:
    """Write frames to an MP4 file without sound; the old file stays until the new one is complete.

    Args:
        frames: (height, width, 3) uint8 arrays of one size; an odd last row or column is cut off.
        path: the file, which ends in .mp4; its folder is created if it is missing.
        fps: frames per second.

    Raises:
        ValueError: there are no frames, one is of another kind or size, or the path has another
            ending.
        OSError: the path cannot be written, or ffmpeg fails, as on a full disk.
        RuntimeError: there is no ffmpeg.
    """
    pictures = [_checked("frames:", frame) for frame in frames]
    if not pictures:
        raise ValueError("frames: at least one is needed, got none")
    sizes = sorted({picture.shape[:2] for picture in pictures})
    height, width = (length // 2 * 2 for length in sizes[0])
    if len(sizes) > 1 or not (height and width):
        raise ValueError(f"frames: must be of one size, 2 × 2 pixels or more, got {sizes}")
    even = [picture[:height, :width] for picture in pictures]
    fps = real_number("fps", fps, above=0)
    _check_target(path)
    # On the same disk, so that the finished file is moved in one step.
    with tempfile.TemporaryDirectory(dir=Path(path).parent, prefix=".recording-") as scratch:
        file = Path(scratch) / "clip.mp4"
        written = _frames_written(even, file, fps)
        if written < len(even):  # MoviePy 1 shows the last frame twice
            raise OSError(
                f"path: ffmpeg could not write {os.fspath(path)!r}: {written} of {len(even)} "
                "frames can be read (is the disk full?)"
            )
        os.replace(file, path)


def _frames_written(pictures: list[Frame], file: Path, fps: float) -> int:
    """Write a film, and count the frames that can be read: MoviePy ignores how ffmpeg ended."""
    # Both MoviePy 1 and 2 have it here; `moviepy.editor` exists only in 1.
    from moviepy.video.io.ImageSequenceClip import ImageSequenceClip

    clip = ImageSequenceClip(pictures, fps=fps)
    # MoviePy counts frames as seconds · fps: n / fps itself may be rounded to one too few.
    clip.duration = (len(pictures) + 0.01) / fps
    try:
        clip.write_videofile(
            str(file),
            codec="libx264",
            audio=False,
            logger=None,
            ffmpeg_params=["-crf", "28", "-pix_fmt", "yuv420p", "-movflags", "+faststart"],
        )
        count, _ = count_frames_and_secs(str(file))
    except (OSError, RuntimeError):
        return 0
    return count


@contextmanager
def _no_screen() -> Iterator[None]:
    """Keep pygame, which renders environments, from looking for a screen and a sound card."""
    absent = {"SDL_VIDEODRIVER", "SDL_AUDIODRIVER"} - set(os.environ)
    os.environ.update(dict.fromkeys(absent, "dummy"))
    try:
        yield
    finally:
        for name in absent:
            os.environ.pop(name, None)


@_no_screen()
def record_episode(
    policy: Callable[[Any], int],
    env: str | gym.Env,
    path: str | Path,
    *,
    seed: int,
    max_episode_steps: int | None = None,
    max_frames: int = 500,
) -> float:
    """Play one episode and record it; returns the episode return.

    If it does not end in `LONGEST_EPISODE` steps, it is stopped, with a warning, unless
    ``max_episode_steps`` is larger.

    Args:
        policy: function from an observation to an action of the environment, such as
            `DQNLearner.policy`.
        env: id of a Gymnasium environment that renders `rgb_array` frames, or an environment that
            does (such as by `make_atari_env`), which is then closed.
        path: as in `save_video`.
        seed: of the environment's first reset, an int of at least 0.
        max_episode_steps: time limit if ``env`` is an id; None for its own.
        max_frames: of the video; the episode itself is played to its end.

    Raises:
        ValueError, TypeError, OSError: an argument is wrong, or the path cannot be written. Nothing
            was played then.
        ValueError: the environment breaks Gymnasium's API, or what it renders is no picture.
        TypeError: ``policy`` returns a tuple, such as Stable-Baselines3's (action, state).
        RuntimeError: there is no ffmpeg.
    """
    seed = whole_number("seed", seed, minimum=0, maximum=None)
    whole_number("max_frames", max_frames)
    _check_target(path)
    if isinstance(env, str):
        env = gym.make(env, render_mode="rgb_array", max_episode_steps=max_episode_steps)
    env = Checked(env)
    limit = max(LONGEST_EPISODE, max_episode_steps or 0)
    frames: list[Frame] = []
    episode_return, steps, over = 0.0, 0, False
    try:
        observation, _ = env.reset(seed=seed)
        while True:
            if len(frames) < max_frames:
                shown: Any = env.render()
                frames.append(_checked("env: what render returns", shown).copy())
            if over:
                break
            action = policy(observation)
            if isinstance(action, tuple):
                raise TypeError(
                    "policy: must return an action, got a tuple; of a model of Stable-Baselines3 "
                    "take lambda obs: model.predict(obs, deterministic=True)[0]"
                )
            observation, reward, terminated, truncated, _ = env.step(int(action))
            episode_return, steps = episode_return + float(reward), steps + 1
            over = terminated or truncated
            if steps == limit and not over:
                over = True
                warnings.warn(
                    f"the episode did not end in {steps:,} steps and was stopped; "
                    "give max_episode_steps",
                    stacklevel=3,
                )
        save_video(frames, path, env.metadata.get("render_fps") or 30)
    finally:
        env.close()
    return episode_return


def _check_target(path: str | Path) -> None:
    """Raise unless a film can be written there; its folder is created, and ffmpeg is started."""
    if Path(path).suffix.lower() != ".mp4":
        raise ValueError(f"path: must end in .mp4, got {os.fspath(path)!r}")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    check_writable(path)
    get_ffmpeg_version()  # which raises an error of its own: later, MoviePy's would be silent


def _checked(what: str, frame: Any) -> Frame:
    """A frame, or a ValueError that says what came instead."""
    kind, shape = getattr(frame, "dtype", type(frame).__name__), np.shape(frame)
    if kind != np.uint8 or shape[2:] != (3,):
        raise ValueError(
            f"{what} must be uint8 arrays (height, width, 3), got {kind} of the shape {shape}"
        )
    return frame
