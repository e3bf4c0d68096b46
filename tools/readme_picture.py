"""Draw the README's picture with the package's own tree: darts are thrown, and walk down to leaves.

python tools/readme_picture.py   writes docs/sum_tree.gif and its still, docs/sum_tree.png
"""

import io

from matplotlib import pyplot as plt
from notebook_files import ROOT
from PIL import Image

from per_tutorial import SumTree
from per_tutorial.notebook import draw_shares, draw_tree, use_style
from per_tutorial.replay.trees import find_leaf

PRIORITIES = [3, 1, 4, 1, 5, 9, 2, 6]
DARTS = [13, 21, 5.5]
STILL = 13
STEP, END = 550, 1600  # milliseconds that a frame is shown: on the way, and at the leaf
COLORS = 48


def walk(tree, dart):
    """The nodes from the root to the leaf that the dart falls on."""
    leaf = find_leaf(tree.nodes, 1, len(PRIORITIES), dart)
    return [leaf >> level for level in reversed(range(leaf.bit_length()))]


def drawn(tree, dart, path):
    """A picture of the dart after it has passed the nodes of ``path``."""
    picked = [tree.find(dart)] if path and path[-1] >= len(PRIORITIES) else []
    figure, (top, line) = plt.subplots(2, 1, figsize=(7.6, 4.4), height_ratios=[4, 1])
    draw_tree(top, tree.nodes, path=path)
    where = f" falls on item {picked[0]}" if picked else ""
    top.set_title(f"A dart at {dart:g} of {tree.total:g}{where}")
    draw_shares(line, PRIORITIES, [dart], picked)
    line.set_xlabel("priorities, end to end")
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=100, bbox_inches=None)
        plt.close(figure)
        return Image.open(file).convert("RGB")


def main():
    use_style()
    tree = SumTree(len(PRIORITIES))
    tree.set(range(len(PRIORITIES)), PRIORITIES)
    drawn(tree, STILL, walk(tree, STILL)).quantize(COLORS).save(
        ROOT / "docs" / "sum_tree.png", optimize=True
    )
    pictures, durations = [], []
    for dart in DARTS:
        path = walk(tree, dart)
        pictures += [drawn(tree, dart, path[:steps]) for steps in range(len(path) + 1)]
        durations += [STEP] * len(path) + [END]
    palette = pictures[len(walk(tree, DARTS[0]))].quantize(COLORS)  # it has every colour
    first, *rest = [
        picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures
    ]
    first.save(
        ROOT / "docs" / "sum_tree.gif",
        save_all=True,
        append_images=rest,
        duration=durations,
        loop=0,
        optimize=True,
    )


if __name__ == "__main__":
    main()
