"""Draw the README's picture, docs/sum_tree.png, with the package's own tree.

python tools/readme_picture.py
"""

from matplotlib import pyplot as plt
from notebook_files import ROOT

from per_tutorial import SumTree
from per_tutorial.notebook import draw_shares, draw_tree, use_style
from per_tutorial.replay.segment_tree import find_leaf

PRIORITIES = [3, 1, 4, 1, 5, 9, 2, 6]
PREFIX = 13


def main():
    use_style()
    tree = SumTree(len(PRIORITIES))
    tree.set(range(len(PRIORITIES)), PRIORITIES)
    node = find_leaf(tree.nodes, 1, len(PRIORITIES), PREFIX)
    path = [node >> level for level in range(node.bit_length())]

    figure, (top, line) = plt.subplots(2, 1, figsize=(7.6, 4.4), height_ratios=[4, 1])
    draw_tree(top, tree.nodes, path=path)
    top.set_title(f"A dart at {PREFIX} of {tree.total:g} falls on item {tree.find(PREFIX)}")
    draw_shares(line, PRIORITIES, [PREFIX], [tree.find(PREFIX)])
    line.set_xlabel("priorities, end to end")
    figure.savefig(ROOT / "docs" / "sum_tree.png")


if __name__ == "__main__":
    main()
