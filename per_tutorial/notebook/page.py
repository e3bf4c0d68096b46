"""What every notebook needs: its mode, pictures with alternative text, and the closing stamp."""

import base64
import datetime
import io
import os
import time
from typing import Any, TypeVar

import numpy as np
from IPython import get_ipython
from IPython.display import display
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from per_tutorial.common.provenance import processor, versions

FAST = os.environ.get("PER_TUTORIAL_FAST") == "1"

DPI = 150  # of pictures: more than `figure.dpi`, by which they are shown, for sharp screens

NONE_YET = -1  # instead of the number of a cell

_STARTED = time.perf_counter()  # a notebook imports `stamp` in its first cell

T = TypeVar("T")


def budget(full: T, fast: T) -> T:
    """How much work to do: ``full`` as published, ``fast`` where only the code is tested."""
    return fast if FAST else full


def show(figure: Figure, alt: str) -> None:
    """Display a figure as a PNG with its alternative text, and close it."""
    _display(*_picture(figure, alt))
    plt.close(figure)


class LiveFigure:
    """A picture in the cell's output that changes while the cell runs.

    Drawing costs far more than a training step, so the picture changes at most once per interval,
    and so rarely that it takes at most a tenth of the time; and once more at the end. Call `update`
    as often as you like, then `close`. Check `due` first to avoid drawing what would not be shown.
    What is updated after `close`, or when a cell runs again, is a new picture.

    Args:
        alt: the alternative text.
        interval: the minimum time between two pictures, in seconds.
    """

    def __init__(self, alt: str, interval: float = 1.0) -> None:
        self.alt = alt
        self.interval = interval
        self._handle: Any = None  # IPython's `DisplayHandle`, once there is a picture
        self._cell: int | None = NONE_YET  # the execution whose output has it
        self._figure: Figure | None = None
        self._shown = 0.0  # when
        self._cost = float("inf")  # seconds of the quickest picture: the first one is slow

    @property
    def due(self) -> bool:
        """Whether the next `update` will be shown."""
        wait = max(self.interval, 12 * self._cost)
        return not self._is_there or time.perf_counter() - self._shown >= wait

    def update(self, figure: Figure) -> None:
        """Show the figure as it is now, unless the last picture is too recent."""
        plt.close(figure)  # else pyplot would show it once more at the end of an interrupted cell
        self._figure = figure
        if self.due:
            self._show(figure)

    def close(self) -> None:
        """Show the last figure in its final state."""
        if self._figure is not None:
            self._show(self._figure)
        self._figure, self._cell = None, NONE_YET

    @property
    def _is_there(self) -> bool:
        """Whether the cell that runs now has the picture in its output."""
        return self._cell == _execution()

    def _show(self, figure: Figure) -> None:
        began = time.perf_counter()
        data, metadata = _picture(figure, self.alt)
        if not self._is_there:
            self._handle = _display(data, metadata, display_id=True)
            self._cell = _execution()
        elif self._handle is not None:
            self._handle.update(data, metadata=metadata, raw=True)
        self._shown = time.perf_counter()
        self._cost = min(self._cost, self._shown - began)


def _display(data: dict[str, str], metadata: dict[str, Any], **options: Any) -> Any:
    """IPython's `display` of a picture; in a plain script, print its alternative text."""
    if get_ipython() is None:  # `display` would print the whole picture
        print(data["text/plain"])
        return None
    return display(data, metadata=metadata, raw=True, **options)


def _execution() -> int | None:
    """The number of the cell that runs now, of which each execution has a new one; or None."""
    return getattr(get_ipython(), "execution_count", None)


def _picture(figure: Figure, alt: str) -> tuple[dict[str, str], dict[str, Any]]:
    """A figure in the form of Jupyter's messages: (data, metadata) by MIME type.

    It is rendered here, not by the kernel's own hook, so that it looks the same under any backend,
    and not by `savefig`, which lays a figure out twice. A palette of 256 colours is enough for
    plots, and a third of the size.
    """
    figure.set_dpi(DPI)
    canvas, png = FigureCanvasAgg(figure), io.BytesIO()
    canvas.draw()
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    pixels.quantize(256).save(png, format="png", optimize=True)
    data = {"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": f"[{alt}]"}
    width = round(figure.get_figwidth() * plt.rcParams["figure.dpi"])
    return data, {"image/png": {"alt": alt, "width": width}}


def stamp() -> None:
    """Print on one line when, how, where and with which versions this notebook ran."""
    found = versions("torch", "numpy", "gymnasium", "numba")
    facts = [
        datetime.date.today().isoformat(),
        f"{'fast' if FAST else 'full'} mode",
        f"Python {found.pop('python')}",
        *(f"{name} {version}" for name, version in found.items()),
        processor(),
        f"{time.perf_counter() - _STARTED:.0f} s",
    ]
    print(" · ".join(facts))
