"""Videos of episodes, or of given frames, as small MP4 files.

They are H.264 with yuv420p pixels, the one format that all browsers play; it needs even sizes.
This needs MoviePy, which the extra `video` installs.
"""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from per_tutorial.dqn.environments.settings import LONGEST_EPISODE

# pygame renders the environments. It warns if there is no screen or no sound card, but a recording
# needs neither. This must be set before moviepy loads pygame.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")

Frame = NDArray[np.uint8]  # (height, width, 3)


def save_video(frames: Iterable[Frame], path: str | Path, fps: float) -> None:
    """Write frames to an MP4 file without sound; the old file stays until the new one is complete.

    Args:
        frames: (height, width, 3) uint8 arrays of one size; an odd last row or column is cut off.
        path: the file; its folder is created if it is missing.
        fps: frames per second.

    Raises:
        ValueError: there are no frames, or one is of another kind.
    """
    # Both moviepy 1 and 2 have it here; `moviepy.editor` exists only in 1.
    from moviepy.video.io.ImageSequenceClip import ImageSequenceClip

    even = [
        frame[: len(frame) // 2 * 2, : frame.shape[1] // 2 * 2]
        for frame in (_checked("frames:", frame) for frame in frames)
    ]
    if not even:
        raise ValueError("frames: at least one is needed, got none")
    folder = Path(path).parent
    folder.mkdir(parents=True, exist_ok=True)
    # On the same disk, so that the finished file is moved in one step.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".recording-") as scratch:
        file = Path(scratch) / "clip.mp4"
        clip = ImageSequenceClip(even, fps=fps)
        # moviepy counts frames as seconds · fps: n / fps itself may be rounded to one too few.
        clip.duration = (len(even) + 0.01) / fps
        clip.write_videofile(
            str(file),
            codec="libx264",
            audio=False,
            logger=None,
            ffmpeg_params=["-crf", "28", "-pix_fmt", "yuv420p", "-movflags", "+faststart"],
        )
        os.replace(file, path)


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

    An episode that nothing ends is stopped after `LONGEST_EPISODE` steps, with a warning.

    Args:
        policy: function from an observation to an action of the environment, such as
            `DQNLearner.policy`.
        env: id of a Gymnasium environment that renders `rgb_array` frames, or an environment that
            does (such as by `make_atari_reference`), which is then closed.
        path: the MP4 file; its folder is created if it is missing.
        seed: of the environment's first reset.
        max_episode_steps: time limit if ``env`` is an id; None for its own.
        max_frames: of the video; the episode itself is played to its end.

    Raises:
        ValueError: what the environment renders is no picture.
    """
    import moviepy  # noqa: F401  # before the episode is played

    if isinstance(env, str):
        env = gym.make(env, render_mode="rgb_array", max_episode_steps=max_episode_steps)
    limited = env.spec is not None and env.spec.max_episode_steps is not None
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
            observation, reward, terminated, truncated, _ = env.step(int(policy(observation)))
            episode_return, steps = episode_return + float(reward), steps + 1
            over = terminated or truncated
            if steps == LONGEST_EPISODE and not (over or limited):
                over = True
                warnings.warn(
                    f"the episode did not end in {steps:,} steps and was stopped; "
                    "give max_episode_steps",
                    stacklevel=2,
                )
        save_video(frames, path, env.metadata.get("render_fps") or 30)
    finally:
        env.close()
    return episode_return


def _checked(what: str, frame: Any) -> Frame:
    """A frame, or a ValueError that says what came instead."""
    kind, shape = getattr(frame, "dtype", type(frame).__name__), np.shape(frame)
    if kind != np.uint8 or shape[2:] != (3,):
        raise ValueError(
            f"{what} must be uint8 arrays (height, width, 3), got {kind} of the shape {shape}"
        )
    return frame
