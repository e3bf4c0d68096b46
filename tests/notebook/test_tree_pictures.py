"""The pictures of trees: sums, numbers and edges are where the tree has them."""

import pytest
from matplotlib.figure import Figure

from per_tutorial import SumTree
from per_tutorial.notebook.style import COLORS
from per_tutorial.notebook.tree_pictures import draw_shares, draw_tree


def test_a_tree_has_its_sums_its_numbers_and_its_path():
    tree = SumTree(4)
    tree.set(range(4), [0.5, 2.25, 3.5, 4.25])
    axes = Figure().subplots()
    draw_tree(axes, tree.nodes, capacity=3, path=[1, 3, 6])
    texts = {text.get_text(): text.xy for text in axes.texts}
    assert [texts[f"[{leaf}]"][0] for leaf in range(4)] == [0, 1, 2, 3]
    assert [texts[each][0] for each in ("10.5", "2.75", "7.75")] == [1.5, 0.5, 2.5]
    assert texts["[2]"] == texts["6"] == texts["3.5"]  # node 6 is leaf [2]
    edges, nodes = axes.lines[:6], axes.lines[6:]
    ends = [edge.get_xdata().tolist() for edge in edges]
    assert ends == [[1.5, 0.5], [1.5, 2.5], [0.5, 0], [0.5, 1], [2.5, 2], [2.5, 3]]
    assert [edge.get_color() == COLORS["path"] for edge in edges] == [0, 1, 0, 0, 1, 0]
    assert len({node.get_markeredgecolor() for node in nodes}) == 3  # path, used, padding


@pytest.mark.parametrize("capacity", [1, 5])
def test_trees_of_every_form_can_be_drawn(capacity):
    axes = Figure().subplots()
    draw_tree(axes, SumTree(capacity).nodes, capacity=capacity, path=[1])
    assert [text.get_text() for text in axes.texts].count(f"[{capacity - 1}]") == 1


def test_shares_stand_end_to_end_without_empty_leaves():
    axes = Figure().subplots()
    draw_shares(axes, [2.0, 0.0, 1.0], prefixes=[2.5], picked=[2])
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches if hasattr(bar, "get_width")]
    assert bars == [(0, 2), (2, 1)]
    assert axes.patches[1].get_linewidth() > axes.patches[0].get_linewidth()
    assert [text.get_text() for text in axes.texts if text.get_text()] == ["[0]", "[2]"]
    assert axes.get_xlim() == (0, 3)
