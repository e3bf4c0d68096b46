"""Short videos: kept as small files, and shown so that they play wherever a notebook is read.

`per_tutorial.dqn.recording` records them.
"""

import base64
import html
import os
from collections.abc import Iterator
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from IPython.display import HTML, display
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from per_tutorial.dqn.recording import Frame as Frame
from per_tutorial.dqn.recording import record_episode as record_episode
from per_tutorial.dqn.recording import save_video as save_video
from per_tutorial.notebook.page import show
from per_tutorial.notebook.style import COLORS


def video_file(name: str) -> Path:
    """The path for a film of this file name: in `films/` beside the notebook, which git ignores.

    `make publish` sets ``PER_TUTORIAL_VIDEOS`` to another folder, for the films in `videos/`.
    """
    return Path(os.environ.get("PER_TUTORIAL_VIDEOS", "films"), name)


def read_frames(path: str | Path) -> Iterator[Frame]:
    """Yield the frames of a video, (height, width, 3) uint8."""
    reader = imageio_ffmpeg.read_frames(str(path))
    width, height = next(reader)["size"]
    for frame in reader:
        yield np.frombuffer(frame, dtype=np.uint8).reshape(height, width, 3)


def film_strip(path: str | Path) -> Figure:
    """A figure of six frames, evenly spaced from the first to the last, with their times."""
    total, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    wanted = np.linspace(0, total - 1, min(6, total)).round().astype(int)
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

    The player is plain HTML with the file inside. JupyterLab keeps it even in an untrusted
    notebook, where it drops the `<source>` element of IPython's own `Video`.

    Args:
        path: an MP4 file; FileNotFoundError if there is none.
        alt: what the video shows, for those who can't see it.
        caption: text below the player.
        width: of the player, in pixels.
    """
    data = base64.b64encode(Path(path).read_bytes()).decode()
    show(film_strip(path), f"Film strip: {alt}")
    player = (
        f'<video src="data:video/mp4;base64,{data}" width="{width}" title="{html.escape(alt)}" '
        "controls muted loop playsinline></video>"
    )
    below = ""
    if caption:  # in the colour of the text: the paler one of a theme may not suit the ground
        below = f'<figcaption style="color: inherit">{html.escape(caption)}</figcaption>'
    display(HTML(f"<figure>{player}{below}</figure>"))
