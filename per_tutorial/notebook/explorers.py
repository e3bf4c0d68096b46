"""Explorers: one drawing function, shown once as a static gallery and once with sliders.

The drawing function is `draw(figure, **values)`. It draws into the given figure (in a gallery, a
part of a larger one), returns nothing, and neither makes nor shows figures. So the sliders move
exactly what the static picture shows.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import ipywidgets as widgets
from IPython.display import display
from matplotlib import pyplot as plt

from per_tutorial.notebook.page import show


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
        controls: name=control for every value: a `range` of integers or a tuple (low, high, step)
            of numbers (sliders), or a list of choices. Each starts where ``draw`` has its default,
            or else a slider in the middle.

    Returns the controls by name; setting a `.value` moves the slider. Without widgets (on GitHub,
    on paper) nothing is visible, so show a `gallery` first.
    """
    shown = {name: _control(name, control) for name, control in controls.items()}
    for name, parameter in signature(draw).parameters.items():
        if name in shown and parameter.default is not parameter.empty:
            shown[name].value = parameter.default

    def redraw(**values: Any) -> None:
        figure = plt.figure(figsize=size, layout="constrained")
        draw(figure, **values)
        show(figure, alt.format(**values))

    display(widgets.VBox([*shown.values(), widgets.interactive_output(redraw, shown)]))
    return shown


def _control(name: str, control: Any) -> widgets.Widget:
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
    raise TypeError(f"{name}: must be a range, (low, high, step) or a list, got {control!r}")
