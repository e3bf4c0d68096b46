"""The exercises of notebook 01: right answers of any form pass, wrong ones hear their mistake."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from per_tutorial import SumTree


def sum_before(nodes, leaf):
    node, before = len(nodes) // 2 + leaf, 0.0
    while node > 1:
        if node % 2 == 1:
            before += nodes[node - 1]
        node //= 2
    return before


def sum_from_the_root(nodes, leaf):
    node, first, size, before = 1, 0, len(nodes) // 2, 0
    while size > 1:
        size, node = size // 2, 2 * node
        if leaf >= first + size:
            before, first, node = before + nodes[node], first + size, node + 1
    return before


def sum_recursively(nodes, leaf, node=None):
    node = len(nodes) // 2 + leaf if node is None else node
    if node <= 1:
        return 0
    return (nodes[node - 1] if node & 1 else 0) + sum_recursively(nodes, leaf, node >> 1)


def sum_by_walking(nodes, leaf):
    first = len(nodes) // 2
    return sum(nodes[first : first + leaf])


def with_step(adds):
    """A walk up that adds what `adds(nodes, node)` says."""

    def answer(nodes, leaf):
        node, before = len(nodes) // 2 + leaf, 0.0
        while node > 1:
            before += adds(nodes, node)
            node //= 2
        return before

    return answer


def sum_that_clears(nodes, leaf):
    before = sum_before(nodes, leaf)
    nodes[1] = 0.0
    return before


def find(nodes, prefix):
    """The root is node 0."""
    first_leaf, node = len(nodes) // 2, 0
    while node < first_leaf:
        left, right = 2 * node + 1, 2 * node + 2
        if prefix < nodes[left] or nodes[right] == 0:
            node = left
        else:
            prefix -= nodes[left]
            node = right
    return node - first_leaf


def find_recursively(nodes, prefix, node=0):
    if 2 * node + 1 >= len(nodes):
        return node - len(nodes) // 2
    left, right = nodes[2 * node + 1], nodes[2 * node + 2]
    if right > 0 and prefix >= left:
        return find_recursively(nodes, prefix - left, 2 * node + 2)
    return find_recursively(nodes, prefix, 2 * node + 1)


def find_by_levels(nodes, prefix):
    """No node numbers, but levels and places in them."""
    first, place, width = 0, 0, 1
    while first + width < len(nodes):
        first, width, place = first + width, 2 * width, 2 * place
        if prefix >= nodes[first + place] and nodes[first + place + 1] != 0.0:
            prefix, place = prefix - nodes[first + place], place + 1
    return np.int64(place)


def find_below_the_sum(nodes, prefix):
    """Instead of the guard: the prefix stays below the sum of the node."""
    node = 0
    while 2 * node + 2 < len(nodes):
        prefix = min(prefix, np.nextafter(nodes[node], 0))
        node = 2 * node + 1
        if not prefix < nodes[node]:
            prefix, node = prefix - nodes[node], node + 1
    return torch.tensor(node - len(nodes) // 2)


def find_by_walking(nodes, prefix):
    leaves = nodes[len(nodes) // 2 :]
    for leaf, value in enumerate(leaves):
        if prefix < value:
            return leaf
        prefix -= value
    return max(leaf for leaf, value in enumerate(leaves) if value > 0)


def find_in_cumulative_sums(nodes, prefix):
    return np.searchsorted(np.cumsum(list(nodes)[len(nodes) // 2 :]), prefix, side="right")


def find_with(
    goes_left, rest=lambda prefix, left: prefix - left, leaf=lambda node, first: node - first
):
    """A walk down that asks `goes_left(prefix, left, right)`."""

    def answer(nodes, prefix):
        node = 0
        while node < len(nodes) // 2:
            left, right = nodes[2 * node + 1], nodes[2 * node + 2]
            if goes_left(prefix, left, right):
                node = 2 * node + 1
            else:
                prefix, node = rest(prefix, left), 2 * node + 2
        return leaf(node, len(nodes) // 2)

    return answer


def guarded(prefix, left, right):
    return prefix < left or right == 0


def find_for_ever(nodes, prefix):
    """The children of the other numbering: 0 is its own left child."""
    node = 0
    while node < len(nodes) // 2:
        if prefix < nodes[2 * node] or nodes[2 * node + 1] == 0:
            node = 2 * node
        else:
            prefix -= nodes[2 * node]
            node = 2 * node + 1
    return node - len(nodes) // 2


def find_of_the_notebook(nodes, prefix):
    node = 1
    while node < len(nodes) // 2:
        left, right = 2 * node, 2 * node + 1
        if prefix < nodes[left] or nodes[right] == 0.0:
            node = left
        else:
            prefix -= nodes[left]
            node = right
    return node - len(nodes) // 2


def find_and_step_back(nodes, prefix):
    """No guard on the way, but one step to the left from an empty leaf."""
    leaf = find_with(lambda prefix, left, right: prefix < left)(nodes, prefix)
    return leaf - (nodes[len(nodes) // 2 + leaf] == 0)


def find_that_clears(nodes, prefix):
    found = find(nodes, prefix)
    nodes[0] = 0.0
    return found


def set_leaf(nodes, leaf, value):
    """The root is node 0."""
    node = len(nodes) // 2 + leaf
    nodes[node] = value
    while node > 0:
        node = (node - 1) // 2
        nodes[node] = nodes[2 * node + 1] + nodes[2 * node + 2]
    return nodes


def set_without_return(nodes, leaf, value):
    set_leaf(nodes, leaf, value)


def set_recursively(nodes, leaf, value, node=None):
    node = len(nodes) // 2 + leaf if node is None else node
    nodes[node] = value
    if node == 0:
        return nodes
    sibling = node + 1 if node % 2 else node - 1
    return set_recursively(nodes, leaf, value + nodes[sibling], (node - 1) >> 1)


def set_with_numpy(nodes, leaf, value):
    node = np.int64(len(nodes) // 2 + leaf)
    nodes[node] = np.float64(value)
    while node:
        node = (node - 1) // 2
        nodes[node] = np.sum(nodes[2 * node + 1 : 2 * node + 3])


def set_by_list_of_parents(nodes, leaf, value):
    node = len(nodes) // 2 + leaf
    nodes[node] = value
    parents = []
    while node > 0:
        node = (node - 1) // 2
        parents.append(node)
    for parent in parents:
        nodes[parent] = sum(nodes[2 * parent + child] for child in (1, 2))
    return nodes


def set_and_rebuild(nodes, leaf, value):
    nodes[len(nodes) // 2 + leaf] = value
    for node in reversed(range(len(nodes) // 2)):
        nodes[node] = nodes[2 * node + 1] + nodes[2 * node + 2]
    return nodes


def set_in_a_copy(nodes, leaf, value):
    return set_leaf(nodes.copy(), leaf, value)


def set_with(write, goes_on=lambda node: node > 0, parent=lambda node: (node - 1) // 2):
    """A walk up that writes `write(nodes, node, change)`."""

    def answer(nodes, leaf, value):
        node = len(nodes) // 2 + leaf
        change = value - nodes[node]
        nodes[node] = value
        while goes_on(node):
            node = parent(node)
            nodes[node] = write(nodes, node, change)
        return nodes

    return answer


def children(nodes, node, change):
    return nodes[2 * node + 1] + nodes[2 * node + 2]


def set_for_ever(nodes, leaf, value):
    node = len(nodes) // 2 + leaf
    nodes[node] = value
    while node > 0:
        nodes[(node - 1) // 2] = nodes[node] + nodes[node ^ 1]


def set_by_changes(nodes, leaf, value):
    node = len(nodes) // 2 + leaf
    change = value - nodes[node]
    nodes[node] += change
    while node > 0:
        node = (node - 1) // 2
        nodes[node] += change


def set_leaf_alone(nodes, leaf, value):
    nodes[len(nodes) // 2 + leaf] = value


RIGHT = [
    ("01.2", find),
    ("01.2", find_recursively),
    ("01.2", find_by_levels),
    ("01.2", find_below_the_sum),
    ("01.2", lambda nodes, prefix: float(find(list(nodes[:1]) and nodes, np.float64(prefix)))),
    ("01.2", lambda tree, dart: [find(tree, dart)][0]),
    ("01.3", set_leaf),
    ("01.3", set_without_return),
    ("01.3", set_recursively),
    ("01.3", set_with_numpy),
    ("01.3", set_by_list_of_parents),
    ("01.3", lambda tree, index, priority: set_leaf(tree, int(index), priority) and None),
    ("01.1", [1, 3, 7, 14]),
    ("01.1", (1, 3, 7, 14)),
    ("01.1", np.array([1, 3, 7, 14])),
    ("01.1", torch.tensor([1, 3, 7, 14])),
    ("01.1", (14 >> k for k in (3, 2, 1, 0))),
    ("01.4", sum_before),
    ("01.4", sum_from_the_root),
    ("01.4", sum_recursively),
    ("01.4", lambda nodes, leaf: np.float32(sum_before(nodes, leaf))),
    ("01.5", 2 * 2**20 * 8),
    ("01.5", 16_777_216.0),
    ("01.5", np.int64(2) ** 24),
    ("01.5", SumTree(1_000_000).nodes.nbytes),
    ("01.5", Fraction(2**24)),
]

WRONG = [
    ("01.2", find_with(lambda prefix, left, right: prefix < left), "never go right where nothing"),
    ("01.2", find_with(lambda prefix, left, right: prefix <= left), "Mistake 1"),
    ("01.2", find_with(lambda p, left, right: p <= left or right == 0), "even to an empty one"),
    ("01.2", find_with(guarded, rest=lambda prefix, left: prefix), "subtract the left sum"),
    ("01.2", find_with(lambda p, left, right: guarded(p, right, left)), "sum of the *left* child"),
    (
        "01.2",
        find_with(lambda p, left, right: left == right or guarded(p, left, right)),
        "Mistake 3",
    ),
    ("01.2", find_with(lambda p, left, right: p < left or left == 0), "the wrong child"),
    ("01.2", find_with(lambda p, left, right: left > right or right == 0), "the larger child"),
    ("01.2", find_with(lambda p, left, right: p >= left), "left and right are exchanged"),
    ("01.2", find_with(guarded, leaf=lambda node, first: node), "that is the leaf's node"),
    ("01.2", find_with(guarded, leaf=lambda node, first: node - first - 1), "off by one"),
    ("01.2", find_with(guarded, leaf=lambda node, first: node - 7), "right for 8 leaves"),
    ("01.2", find_for_ever, "your walk never ends"),
    ("01.2", find_of_the_notebook, "root at place 1"),
    ("01.2", find_and_step_back, "it should be leaf 4, yours is 6"),
    ("01.2", find_by_walking, "Walk down from the root"),
    ("01.2", find_in_cumulative_sums, "Walk down from the root"),
    ("01.2", find_that_clears, "it changes `nodes`"),
    ("01.2", lambda nodes, prefix: 4, "your answer is always 4"),
    ("01.2", lambda nodes, prefix: None, "is the `return` missing?"),
    ("01.2", lambda nodes: 4, "called with (nodes, prefix)"),
    ("01.2", 4, "a function is asked for"),
    ("01.3", set_by_changes, "Mistake 5"),
    ("01.3", set_leaf_alone, "sums above it are still the old"),
    ("01.3", set_with(lambda nodes, node, change: nodes[node] + change), "Mistake 5"),
    ("01.3", set_with(children, goes_on=lambda node: node > 1), "the root is node 0"),
    ("01.3", set_with(children, goes_on=lambda node: node >= 0), "one step too far"),
    ("01.3", set_with(children, parent=lambda node: node // 2), "(i - 1) // 2"),
    ("01.3", set_with(lambda nodes, node, _: nodes[2 * node] + nodes[2 * node + 1]), "2i + 1"),
    ("01.3", set_with(lambda nodes, node, _: max(nodes[2 * node + 1], nodes[2 * node + 2])), "sum"),
    ("01.3", lambda nodes, leaf, value: set_leaf(nodes, leaf + 1, value), "one place too far"),
    (
        "01.3",
        lambda nodes, leaf, value: set_leaf(nodes, leaf - len(nodes) // 2, value),
        "node number",
    ),
    (
        "01.3",
        lambda nodes, k, value: set_leaf(nodes, k, nodes[len(nodes) // 2 + k] + value),
        "add to",
    ),
    ("01.3", set_for_ever, "your walk never ends"),
    ("01.3", set_and_rebuild, "Only the ten sums"),
    ("01.3", set_in_a_copy, "a changed copy"),
    ("01.3", lambda nodes, leaf, value: nodes, "should"),
    ("01.3", lambda nodes, leaf, value: set_leaf(nodes, leaf, value)[0], "should have 15 numbers"),
    ("01.3", lambda nodes, value: nodes, "called with (nodes, leaf, value)"),
    ("01.3", [31.0], "a function is asked for"),
    ("01.1", [1, 3, 6, 13], "only if the prefix is *less*"),
    ("01.1", [1, 3, 7, 15], "subtract the left sum"),
    ("01.1", [3, 7, 14], "root is node 1"),
    ("01.1", [0, 2, 6, 13], "the root is node 1 here"),
    ("01.1", [1, 3, 7, 6], "leaf [k] is node 8 + k"),
    ("01.1", [1, 2, 5, 11], "you leave the path at node 1"),
    ("01.1", [1, 3], "you leave the path at node 3"),
    ("01.1", [1, 3, 7], "node 7 is no leaf"),
    ("01.1", [1, 3, 7, 14, 28], "four nodes are enough"),
    ("01.1", [14, 7, 3, 1], "root first, leaf last"),
    ("01.1", [31, 22, 8, 2], "those are the sums in the nodes"),
    ("01.1", [1, 2, 3, 6, 7, 14], "only visits the nodes"),
    ("01.1", 14, "the answer is a list"),
    ("01.1", [[1, 3, 7, 14]], "the answer is a list"),
    ("01.1", [], "root is node 1"),
    ("01.1", "1, 3, 7, 14", "is text"),
    ("01.1", {1, 3, 7, 14}, "a set has no order"),
    ("01.1", sum_before, "that is a function"),
    ("01.1", None, "that is None"),
    ("01.4", lambda nodes, leaf: sum_by_walking(nodes, leaf + 1), "the sum ends *before* it"),
    (
        "01.4",
        lambda nodes, leaf: nodes[1] - sum_by_walking(nodes, leaf + 1),
        "add its left sibling",
    ),
    ("01.4", sum_by_walking, "Ten are enough"),
    (
        "01.4",
        lambda nodes, leaf: nodes[1] - sum(nodes[len(nodes) // 2 + leaf :]),
        "Ten are enough",
    ),
    ("01.4", lambda nodes, leaf: sum(list(nodes)[len(nodes) // 2 :][:leaf]), "Ten are enough"),
    (
        "01.4",
        lambda nodes, leaf: np.cumsum(nodes)[leaf + len(nodes) // 2 - 1],
        "before it is 0, yours is 93",
    ),
    ("01.4", lambda nodes, leaf: sum(nodes[8 : 8 + leaf]), "right for 8 leaves"),
    ("01.4", lambda nodes, leaf: sum(nodes[1 : 1 + leaf]), "which hold the sums"),
    ("01.4", lambda nodes, leaf: nodes[len(nodes) // 2 + leaf], "the leaf alone"),
    ("01.4", with_step(lambda nodes, node: nodes[node - 1]), "you add a node at every step"),
    ("01.4", with_step(lambda nodes, node: nodes[node] * (node % 2)), "the right child that you"),
    ("01.4", sum_that_clears, "it changes `nodes`"),
    ("01.4", lambda nodes, leaf: 0.0, "your answer is always 0"),
    ("01.4", lambda nodes, leaf: sum_before(nodes, leaf) + 1, "before it is 0, yours is 1"),
    ("01.4", lambda nodes, leaf: nodes[99], "IndexError"),
    ("01.5", 16_000_000, "padded to"),
    ("01.5", 15_999_992, "padded to"),
    ("01.5", 8 * 2**20, "half of it"),
    ("01.5", 2**21, "number of nodes"),
    ("01.5", 8 * (2**21 - 1), "place 0"),
    ("01.5", 32 * 2**20, "twice too much"),
    ("01.5", 8 * 2**20 + 1, "nodes = 2 × leaves"),
    ("01.5", 16, "in MiB"),
    ("01.5", 16.777216, "in megabytes"),
    ("01.5", "16777216", "without quotation marks"),
    ("01.5", [2**24], "a single number"),
    ("01.5", float("nan"), "nodes = 2 × leaves"),
    ("01.5", 2j, "cannot be read as numbers"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words
