"""Pictures of sum trees: the tree, and each leaf's share of the line that a dart hits."""

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from per_tutorial.notebook.style import COLORS

PICKED_FACE = "#FBE3EF"  # a pale COLORS["path"]


def draw_tree(
    axes: Axes,
    nodes: NDArray[np.floating],
    *,
    capacity: int | None = None,
    path: Collection[int] = (),
) -> None:
    """Draw a tree laid out like `SumTree.nodes`: sums in circles, leaves in squares.

    The small number beside a node or under a leaf is its index in the array; [k] is the leaf's.

    Args:
        axes: where to draw; its axis lines are removed.
        nodes: (2·leaves,) array; node i is the parent of 2i and 2i + 1. The number of leaves need
            not be a power of two.
        capacity: leaves in use, by default all; the others are drawn as padding.
        path: numbers of nodes to highlight, with the edges between them.
    """
    leaves = len(nodes) // 2
    capacity = capacity or leaves
    places = _tree_places(leaves)
    side = 25 if leaves <= 8 else 19  # of a node, in points
    for node in range(2, 2 * leaves):
        on_path = node in path and node // 2 in path
        color = COLORS["path" if on_path else "right" if node % 2 else "left"]
        width = 4 if on_path else 1.5
        axes.plot(
            *zip(places[node // 2], places[node], strict=True),
            color=color,
            linewidth=width,
            zorder=1,
        )
    for node, (x, y) in places.items():
        is_leaf, unused = node >= leaves, node >= leaves + capacity
        color = COLORS["path"] if node in path else "#C8C8C8" if unused else COLORS["priority"]
        face, edge = (PICKED_FACE, 1.8) if node in path else ("white", 1.2)
        style: dict[str, Any] = {
            "markerfacecolor": face,
            "markeredgecolor": color,
            "markeredgewidth": edge,
        }
        axes.plot(x, y, "s" if is_leaf else "o", markersize=side, **style)
        size = 9 if leaves <= 8 else 7.5
        middle: dict[str, Any] = {"ha": "center", "va": "center", "textcoords": "offset points"}
        axes.annotate(
            f"{nodes[node]:.3g}", (x, y), (0, 0), fontsize=size, fontweight="bold", **middle
        )
        note: dict[str, Any] = {"fontsize": size - 1.5, "color": "#6A6A6A", **middle}
        if is_leaf:
            axes.annotate(f"[{node - leaves}]", (x, y), (0, -0.85 * side), **note)
            axes.annotate(str(node), (x, y), (0, -1.35 * side), **note)
        else:
            outside = side if node > 1 and node % 2 else -side  # away from the parent's edge
            axes.annotate(str(node), (x, y), (0.85 * outside, 0.45 * side), **note)
    axes.set_axis_off()
    axes.margins(0.06, 0.25)


def _tree_places(leaves: int) -> dict[int, tuple[float, float]]:
    """{node: (x, y)}: leaves side by side, in the order from left to right."""
    places: dict[int, tuple[float, float]] = {}
    left_to_right = itertools.count()

    def place(node: int, y: float) -> float:
        if node >= leaves:
            x: float = next(left_to_right)
        else:
            x = (place(2 * node, y - 1) + place(2 * node + 1, y - 1)) / 2
        places[node] = (x, y)
        return x

    place(1, 0)
    return places


def draw_shares(
    axes: Axes,
    values: Sequence[float],
    prefixes: Iterable[float] = (),
    picked: Collection[int] = (),
) -> None:
    """Draw the leaves' values end to end, as shares of [0, total).

    Arrows mark positions on the line, ``prefixes``; the leaves ``picked`` are highlighted.
    """
    start, total = 0.0, sum(values)
    width = 72 * axes.figure.bbox.width / axes.figure.dpi  # in points: the line fills its figure
    for leaf, value in enumerate(values):
        if not value:
            continue
        face, edge, line, order = "white", COLORS["priority"], 1.2, 2
        if leaf in picked:
            face, edge, line, order = PICKED_FACE, COLORS["path"], 1.8, 3
        bar: dict[str, Any] = {"color": face, "edgecolor": edge, "linewidth": line, "zorder": order}
        axes.barh(0, value, left=start, height=0.6, **bar)
        room = value / total * width
        if room > 8:  # a smaller share gets no label
            size, angle = (8 if room > 18 else 6.5, 0) if room > 13 else (6, 90)
            text: dict[str, Any] = {"ha": "center", "va": "center", "size": size, "rotation": angle}
            axes.text(start + value / 2, 0, f"[{leaf}]", zorder=4, **text)
        start += value
    for prefix in prefixes:
        arrow = {"arrowstyle": "-|>", "color": COLORS["path"]}
        axes.annotate("", (prefix, 0.3), (prefix, 0.95), arrowprops=arrow, annotation_clip=False)
    axes.set(ylim=(-0.4, 1), yticks=[], xlim=(0, total))
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
