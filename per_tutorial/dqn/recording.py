"""Videos of episodes, or of given frames, as small MP4 files.

They are H.264 with yuv420p pixels, the one format that all browsers play; it needs even sizes.
This needs MoviePy, which the extra `video` installs.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import RecordVideo
from numpy.typing import NDArray

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
    """
    # Both moviepy 1 and 2 have it here; `moviepy.editor` exists only in 1.
    from moviepy.video.io.ImageSequenceClip import ImageSequenceClip

    even = [frame[: len(frame) // 2 * 2, : frame.shape[1] // 2 * 2] for frame in frames]
    if not even:
        raise ValueError("frames: at least one is needed, got none")
    with _scratch_folder(path) as folder:
        file = folder / "clip.mp4"
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

    Args:
        policy: function from an observation to an action (int).
        env: id of a Gymnasium environment that renders `rgb_array` frames of even size, or an
            environment that does (such as by `make_atari_reference`), which is then closed.
        path: the MP4 file; its folder is created if it is missing.
        seed: of the environment's first reset.
        max_episode_steps: time limit if ``env`` is an id; None for its own.
        max_frames: of the video; the episode itself is played to its end.
    """
    import moviepy  # noqa: F401  # the error of `RecordVideo` would not help

    with _scratch_folder(path) as folder:
        if isinstance(env, str):
            env = gym.make(env, render_mode="rgb_array", max_episode_steps=max_episode_steps)
        env = RecordVideo(
            env,
            str(folder / "video"),
            episode_trigger=lambda _: True,
            video_length=max_frames - 1,  # it counts steps; the reset adds a frame
        )
        try:
            observation, _ = env.reset(seed=seed)
            episode_return, over = 0.0, False
            while not over:
                action = int(policy(observation))
                observation, reward, terminated, truncated, _ = env.step(action)
                episode_return += float(reward)
                over = terminated or truncated
        finally:
            env.close()  # this is when the file is written
        (file,) = folder.glob("video/*.mp4")
        os.replace(file, path)
    return episode_return


@contextmanager
def _scratch_folder(path: str | Path) -> Iterator[Path]:
    """A folder on the same disk as `path`, so that a finished file is moved in one step."""
    parent = Path(path).parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".recording-") as folder:
        yield Path(folder)
