"""The pictures of trees."""

import pytest
from matplotlib.figure import Figure

from per_tutorial import SumTree
from per_tutorial.notebook.tree_pictures import draw_shares, draw_tree


@pytest.mark.parametrize(("capacity", "runs"), [(1, None), (5, None), (16, None), (3, 4)])
def test_trees_of_every_form_can_be_drawn(capacity, runs):
    tree = SumTree(capacity, runs)
    axes = Figure().subplots()
    draw_tree(axes, tree.nodes, capacity=capacity, first_root=tree.first_root, path=[1])
    texts = [text.get_text() for text in axes.texts]
    assert texts.count(f"[{capacity - 1}]") == tree.first_root


def test_shares_leave_out_empty_leaves():
    axes = Figure().subplots()
    draw_shares(axes, [2.0, 0.0, 1.0], prefixes=[2.5], picked=[2])
    assert [bar.get_width() for bar in axes.patches if bar.get_width() in (1, 2)] == [2, 1]
    assert axes.get_xlim() == (0, 3)
