"""Short videos: recorded, kept as small files, and shown so that they play wherever a notebook
does.

The clips are H.264 with yuv420p pixels, the one form that all browsers play; it needs even sizes.
"""

import base64
import functools
import html
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import imageio_ffmpeg
import numpy as np
from gymnasium.wrappers import RecordVideo
from IPython.display import HTML, display
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from numpy.typing import NDArray

from per_tutorial.notebook.page import FAST, show
from per_tutorial.notebook.style import COLORS

# pygame renders the environments. It prints warnings where there is no screen or no sound card, and
# a recording needs neither. This must be set before moviepy loads pygame.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")

# Both moviepy 1 and 2 have it here; `moviepy.editor` exists only in 1.
from moviepy.video.io.ImageSequenceClip import ImageSequenceClip

Frame = NDArray[np.uint8]  # (height, width, 3)


def video_file(name: str) -> Path:
    """Where a notebook's video of this file name goes.

    This is the repository's `videos/` beside `notebooks/`. In fast mode, whose videos are not for
    showing, and where a notebook came without the repository (as on Colab), it is a temporary
    folder that is deleted when Python ends.
    """
    folder = Path("..", "videos")
    if FAST or not folder.is_dir():
        folder = Path(_private_folder().name)
    return folder / name


@functools.cache
def _private_folder() -> tempfile.TemporaryDirectory[str]:
    """One folder for this process. Nobody else can write there, or know its name beforehand."""
    return tempfile.TemporaryDirectory(prefix="per-tutorial-videos-")


def save_video(frames: Iterable[Frame], path: str | Path, fps: float) -> None:
    """Write frames to an MP4 file without sound; the old file stays until the new one is complete.

    Args:
        frames: iterable of (height, width, 3) uint8 arrays of one size; an odd last row or column
            is cut off.
        path: the file; its folder is made if need be.
        fps: frames per second.
    """
    even = [frame[: len(frame) // 2 * 2, : frame.shape[1] // 2 * 2] for frame in frames]
    if not even:
        raise ValueError("frames: at least one is needed, got none")
    with _scratch_folder(path) as folder:
        file = folder / "clip.mp4"
        clip = ImageSequenceClip(even, fps=fps)
        # moviepy counts frames as seconds · fps: exactly n / fps may be rounded to one frame too
        # few.
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
        env: name of a Gymnasium environment that renders `rgb_array` frames of even size, or one
            that was made to do so (such as by `make_atari_reference`); it is closed.
        path: the MP4 file; its folder is made if need be.
        seed: of the environment's first reset.
        max_episode_steps: time limit in environment steps, for an environment that is named; None
            for its own.
        max_frames: of the video; the episode itself is played to its end.
    """
    with _scratch_folder(path) as folder:
        if isinstance(env, str):
            env = gym.make(env, render_mode="rgb_array", max_episode_steps=max_episode_steps)
        env = RecordVideo(
            env,
            str(folder / "video"),
            episode_trigger=lambda _: True,
            video_length=max_frames - 1,  # it counts steps, and the reset gives a frame as well
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
    """A folder on the disk of `path`, from which a finished file moves in one step."""
    parent = Path(path).parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".recording-") as folder:
        yield Path(folder)


def read_frames(path: str | Path) -> Iterator[Frame]:
    """Yield the frames of a video, (height, width, 3) uint8."""
    reader = imageio_ffmpeg.read_frames(str(path))
    width, height = next(reader)["size"]
    for frame in reader:
        yield np.frombuffer(frame, dtype=np.uint8).reshape(height, width, 3)


def film_strip(path: str | Path, count: int = 6) -> Figure:
    """A figure of `count` frames, evenly spaced from the first to the last, with their times."""
    total, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    wanted = np.linspace(0, total - 1, min(count, total)).round().astype(int)
    frames = {k: frame for k, frame in enumerate(read_frames(path)) if k in wanted}
    height, width = frames[0].shape[:2]
    rows, columns = -(-len(wanted) // 3), min(len(wanted), 3)
    size = (9, rows * (9 / columns * height / width + 0.25))
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(visible=False)
    for axes, k in zip(grid.flat, wanted, strict=False):
        axes.imshow(frames[k])
        axes.set_title(f"{k * seconds / total:.1f} s", fontsize=8, loc="left")
        axes.spines[:].set(visible=True, color=COLORS["quiet"])
    return figure


def show_video(path: str | Path, alt: str, caption: str | None = None, width: int = 480) -> None:
    """Display a video: a film strip for readers on GitHub or paper, then the player.

    The player is plain HTML with the file inside. JupyterLab keeps that even in a notebook it does
    not trust, where it drops the `<source>` element of IPython's own `Video`.

    Args:
        path: an MP4 file.
        alt: what the video shows, for those who can't see it.
        caption: text below the player.
        width: of the player, in pixels.
    """
    show(film_strip(path), f"Film strip: {alt}")
    data = base64.b64encode(Path(path).read_bytes()).decode()
    player = (
        f'<video src="data:video/mp4;base64,{data}" width="{width}" title="{html.escape(alt)}" '
        "controls muted loop playsinline></video>"
    )
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    display(HTML(f"<figure>{player}{below}</figure>"))
