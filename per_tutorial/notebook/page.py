"""What every notebook needs: its mode, pictures with alternative text, and the closing stamp."""

import base64
import datetime
import io
import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version

from IPython.display import display
from matplotlib import pyplot as plt
from PIL import Image

from per_tutorial.common.provenance import processor

FAST = os.environ.get("PER_TUTORIAL_FAST") == "1"

_STARTED = time.perf_counter()  # notebooks import this module in their first cells


def budget(full, fast):
    """How much work to do: ``full`` as published, ``fast`` where only the code is tested."""
    return fast if FAST else full


def show(figure, alt):
    """Display a figure as a PNG with its alternative text, and close it."""
    data, metadata = _picture(figure, alt)
    display(data, metadata=metadata, raw=True)
    plt.close(figure)


class LiveFigure:
    """One picture in the cell's output that changes while the cell runs.

    Drawing costs far more than a training step, so the picture changes once in a while only, and once
    more at the end: call `update` as often as you like (asking `due` first saves the redrawing),
    then `close`.

    Args:
        alt: the alternative text.
        interval: seconds between two pictures, at least.
    """

    def __init__(self, alt, interval=1.0):
        self.alt = alt
        self.interval = interval
        self._handle = None
        self._figure = None
        self._shown = float("-inf")

    @property
    def due(self):
        """Whether the next `update` will be shown."""
        return time.perf_counter() - self._shown >= self.interval

    def update(self, figure):
        """Show the figure as it is now, unless the last picture is too recent."""
        self._figure = figure
        if self.due:
            self._show()

    def close(self):
        """Show the last figure in its final state, and close it."""
        if self._figure is not None:
            self._show()
            plt.close(self._figure)

    def _show(self):
        data, metadata = _picture(self._figure, self.alt)
        if self._handle is None:
            self._handle = display(data, metadata=metadata, raw=True, display_id=True)
        else:
            self._handle.update(data, metadata=metadata, raw=True)
        self._shown = time.perf_counter()


def _picture(figure, alt):
    """A figure as Jupyter's messages carry it: (data, metadata) by MIME type.

    Rendered here rather than by the kernel's own hook, so that it looks the same under any backend.
    A palette of 256 colours is enough for plots, and a third of the size. There are more pixels than
    are shown (`savefig.dpi` against `figure.dpi`), which fine screens need.
    """
    rendered, png = io.BytesIO(), io.BytesIO()
    figure.savefig(rendered, format="png")
    Image.open(rendered).convert("RGB").quantize(256).save(png, format="png", optimize=True)
    data = {"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": f"[{alt}]"}
    width = round(figure.get_figwidth() * plt.rcParams["figure.dpi"])
    return data, {"image/png": {"alt": alt, "width": width}}


def stamp():
    """Print one line on when, how, where and with which versions this notebook ran."""
    versions = [f"Python {platform.python_version()}"]
    for name in ("torch", "numpy", "gymnasium", "numba"):
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            pass
    # A notebook that does not use torch should not load it to count threads.
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else os.cpu_count()
    facts = [
        datetime.date.today().isoformat(),
        f"{'fast' if FAST else 'full'} mode",
        *versions,
        f"{processor()}, {threads} threads",
        f"{time.perf_counter() - _STARTED:.0f} s",
    ]
    print(" · ".join(facts))
