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


def in_place(total, uniforms):
    uniforms += np.arange(len(uniforms))
    return uniforms * total / len(uniforms)


def by_hand(total, uniforms):
    prefixes = []
    for k in range(len(uniforms)):
        prefixes.append(total / len(uniforms) * (k + uniforms[k]))
    return prefixes


RIGHT = [
    ("01.1", [1, 3, 7, 14]),
    ("01.1", (1, 3, 7, 14)),
    ("01.1", np.array([1, 3, 7, 14])),
    ("01.1", torch.tensor([1, 3, 7, 14])),
    ("01.1", (14 >> k for k in (3, 2, 1, 0))),
    ("01.2", sum_before),
    ("01.2", sum_from_the_root),
    ("01.2", sum_recursively),
    ("01.2", lambda nodes, leaf: np.float32(sum_before(nodes, leaf))),
    ("01.3", by_hand),
    ("01.3", lambda total, u: np.arange(u.size) * total / u.size + u * total / len(u)),
    ("01.3", lambda total, u: [(k + x) / len(u) * total for k, x in enumerate(u)]),
    ("01.3", lambda total, u: tuple(((np.arange(len(u)) + u) * (total / len(u))).astype("f4"))),
    ("01.3", lambda total, u: map(lambda k, x: total * (k + x) / len(u), range(len(u)), u)),
    ("01.3", lambda total, u: (torch.arange(len(u)) + torch.tensor(u)) * total / len(u)),
    ("01.4", 2 * 2**20 * 8),
    ("01.4", 16_777_216.0),
    ("01.4", np.int64(2) ** 24),
    ("01.4", SumTree(1_000_000).nodes.nbytes),
    ("01.4", Fraction(2**24)),
]

WRONG = [
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
    ("01.2", lambda nodes, leaf: sum_by_walking(nodes, leaf + 1), "the sum ends *before* it"),
    (
        "01.2",
        lambda nodes, leaf: nodes[1] - sum_by_walking(nodes, leaf + 1),
        "add its left sibling",
    ),
    ("01.2", sum_by_walking, "Ten are enough"),
    ("01.2", lambda nodes, leaf: sum(list(nodes)[len(nodes) // 2 :][:leaf]), "Ten are enough"),
    (
        "01.2",
        lambda nodes, leaf: np.cumsum(nodes)[leaf + len(nodes) // 2 - 1],
        "before it is 0, yours is 93",
    ),
    ("01.2", lambda nodes, leaf: sum(nodes[8 : 8 + leaf]), "right for 8 leaves"),
    ("01.2", lambda nodes, leaf: sum(nodes[1 : 1 + leaf]), "which hold the sums"),
    ("01.2", lambda nodes, leaf: nodes[len(nodes) // 2 + leaf], "the leaf alone"),
    ("01.2", with_step(lambda nodes, node: nodes[node - 1]), "you add a node at every step"),
    ("01.2", with_step(lambda nodes, node: nodes[node] * (node % 2)), "the right child that you"),
    ("01.2", sum_that_clears, "it changes `nodes`"),
    ("01.2", lambda nodes, leaf: 0.0, "your answer is always 0"),
    ("01.2", lambda nodes, leaf: sum_before(nodes, leaf) + 1, "before it is 0, yours is 1"),
    ("01.2", lambda nodes, leaf: nodes[99], "IndexError"),
    ("01.3", lambda total, u: [total * x for x in u], "independent draws"),
    ("01.3", lambda total, u: sorted(total * u), "independent draws, sorted"),
    ("01.3", lambda total, u: (np.arange(len(u)) + u) / len(u), "stretch them"),
    ("01.3", lambda total, u: (np.arange(len(u)) + 0.5) * total / len(u), "same prefix sums"),
    ("01.3", lambda total, u: np.linspace(0, total, len(u), endpoint=False), "same prefix sums"),
    ("01.3", lambda total, u: (np.arange(len(u)) + 1 + u) * total / len(u), "k starts at 0"),
    ("01.3", lambda total, u: (np.arange(len(u)) + 1 - u) * total / len(u), "from the right end"),
    ("01.3", lambda total, u: (np.arange(len(u)) + u**2) * total / len(u), "in its range, but not"),
    (
        "01.3",
        lambda total, u: (np.arange(len(u)) + u[0]) * total / len(u),
        "share one random number",
    ),
    ("01.3", lambda total, u: np.arange(len(u)) * total / len(u) + u, "stretch the random number"),
    ("01.3", lambda total, u: (np.arange(len(u)) + u) * 2.0, "does not change with `total`"),
    ("01.3", lambda total, u: [(k + u[k]) * total / 4 for k in range(4)], "should have 5 numbers"),
    ("01.3", lambda total, u: [0.0], "should have 4 numbers; yours has 1"),
    ("01.3", in_place, "it changes `uniforms`"),
    ("01.4", 16_000_000, "padded to"),
    ("01.4", 15_999_992, "padded to"),
    ("01.4", 8 * 2**20, "half of it"),
    ("01.4", 2**21, "number of nodes"),
    ("01.4", 8 * (2**21 - 1), "place 0"),
    ("01.4", 32 * 2**20, "twice too much"),
    ("01.4", 8 * 2**20 + 1, "nodes = 2 × leaves"),
    ("01.4", 16, "in MiB"),
    ("01.4", 16.777216, "in megabytes"),
    ("01.4", "16777216", "without quotation marks"),
    ("01.4", [2**24], "a single number"),
    ("01.4", float("nan"), "nodes = 2 × leaves"),
    ("01.4", 2j, "cannot be read as numbers"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_pass(said, name, answer):
    assert said(name, answer) == (True, f"✓ {name}: right.\n")


@pytest.mark.parametrize(("name", "answer", "mistake"), WRONG)
def test_wrong_answers_hear_their_mistake(said, name, answer, mistake):
    right, words = said(name, answer)
    assert not right
    assert mistake in words
