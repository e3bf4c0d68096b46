"""Explorers: one drawing function, shown once as a static gallery and once with sliders.

The drawing function is `draw(figure, **values)`. It draws into the given figure (in a gallery, a
part of a larger one), returns nothing, and neither makes nor shows figures. So the sliders move
exactly what the static picture shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from IPython.display import display
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from per_tutorial.notebook.page import show
from per_tutorial.notebook.style import COLORS

if TYPE_CHECKING:
    from per_tutorial.dqn.config import DQNConfig
    from per_tutorial.dqn.history import History

# For curves that the reader chooses: dark, and distinct for colour-blind readers.
PANEL_COLORS = [COLORS[name] for name in ("uniform", "per", "weight", "rank", "epsilon", "return")]


def gallery(
    draw: Callable[..., None],
    settings: Sequence[Mapping[str, Any]],
    alt: str,
    *,
    columns: int = 2,
    size: tuple[float, float] = (4.5, 3.2),
) -> None:
    """Show what `draw` makes of each dict of values, in ``columns``, as one picture.

    Its alternative text is ``alt``; each part has this ``size``, in inches.
    """
    columns = min(columns, len(settings))
    rows = -(-len(settings) // columns)
    # Subfigures lay out their own axes; the outer figure only divides its area.
    whole = plt.figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
    parts = whole.subfigures(rows, columns, squeeze=False).flat
    for part, values in zip(parts, settings, strict=False):
        draw(part, **values)
    show(whole, alt)


def explore(
    draw: Callable[..., None], alt: str, *, size: tuple[float, float] = (7.0, 3.6), **controls: Any
) -> dict[str, widgets.Widget]:
    """Show sliders, and below them what `draw` makes of their values; every change redraws it.

    Args:
        draw: function `draw(figure, **values)`.
        alt: alternative text; may name values as in "a tree of {leaves} leaves".
        size: width and height of the picture, in inches.
        controls: name=control for every value: an ipywidget, a `range` of integers or a tuple
            (low, high, step) of numbers (sliders that start in the middle), a list of choices, or
            a bool.

    Returns the controls by name; setting a `.value` moves the slider. Without widgets (on GitHub,
    on paper) nothing is visible, so show a `gallery` first.
    """
    shown = {name: _control(name, control) for name, control in controls.items()}

    def redraw(**values: Any) -> None:
        figure = plt.figure(figsize=size, layout="constrained")
        draw(figure, **values)
        show(figure, alt.format(**values))

    display(widgets.VBox([*shown.values(), widgets.interactive_output(redraw, shown)]))
    return shown


class TrainPanel:
    """Controls, a button that trains with their settings, and the curves of all trainings so far.

    To show it, end a cell with its name. The button calls `train`. A training replaces an earlier
    one with the same settings in ``histories``, {the settings in words: `History`}.

    Args:
        config: the `DQNConfig` whose settings the controls change.
        seeds: one int per run; at least two, for the interval around the curves.
        controls: setting=control, as in `explore`.
    """

    def __init__(self, config: DQNConfig, seeds: Sequence[int], **controls: Any) -> None:
        self.config, self.seeds = config, list(seeds)
        self.controls = {name: _control(name, control) for name, control in controls.items()}
        self.histories: dict[str, History] = {}

    def _ipython_display_(self) -> None:
        button = widgets.Button(description="Train", button_style="primary")
        output = widgets.Output()

        def clicked(_: Any) -> None:
            button.disabled = True
            try:
                output.clear_output()
                with output:
                    self.train()
            finally:
                button.disabled = False

        button.on_click(clicked)
        display(widgets.VBox([*self.controls.values(), button, output]))

    def train(self) -> None:
        """Train with these settings, print the scores, and draw the curves of all trainings."""
        from per_tutorial.dqn.callbacks import ProgressBar
        from per_tutorial.dqn.training import evaluate, train
        from per_tutorial.notebook.training_plots import draw_learning_curves

        values = {name: control.value for name, control in self.controls.items()}
        label = _in_words(values)
        history = train(self.config.replace(**values), self.seeds, callbacks=[ProgressBar()])
        self.histories[label] = history
        assert history.agent is not None  # a finished training has one
        greedy = evaluate(history.agent).mean(axis=1)
        runs = f"runs: {greedy.min():.0f} to {greedy.max():.0f}"
        print(f"{label}: greedy score {greedy.mean():.0f} ({runs})")
        palette = dict(zip(self.histories, itertools.cycle(PANEL_COLORS), strict=False))
        figure = Figure(figsize=(7.0, 3.8))
        draw_learning_curves(figure.subplots(), self.histories, colors=palette)
        show(figure, f"Learning curves of {'; '.join(self.histories)}")


def _in_words(values: Mapping[str, Any]) -> str:
    """{"double": True, "dueling": False, "tau": 0.02} → "double, tau 0.02"."""
    words = []
    for name, value in values.items():
        number = f" {value:g}" if isinstance(value, float) else f" {value}"
        if value is not False:
            words.append(name.replace("_", " ") + ("" if value is True else number))
    return ", ".join(words) or "all off"


def _control(name: str, control: Any) -> widgets.Widget:
    if isinstance(control, widgets.Widget):
        return control
    words = {
        "description": name.replace("_", " "),
        "style": {"description_width": "9em"},
        "layout": widgets.Layout(width="30em"),
    }
    if isinstance(control, range):
        bounds = {"min": control[0], "max": control[-1], "step": control.step}
        return widgets.IntSlider(value=control[len(control) // 2], **bounds, **words)
    if isinstance(control, tuple) and len(control) == 3:
        low, high, step = control
        middle = low + round((high - low) / (2 * step)) * step
        return widgets.FloatSlider(value=middle, min=low, max=high, step=step, **words)
    if isinstance(control, list):
        # Named, since a Dropdown reads a pair as (name, value): (64, 64) would become 64.
        return widgets.Dropdown(options=[(str(choice), choice) for choice in control], **words)
    if isinstance(control, bool):
        return widgets.Checkbox(value=control, **words)
    raise TypeError(
        f"{name}: must be a widget, a range, (low, high, step), a list or a bool, got {control!r}"
    )
