"""Notebook 01, the segment tree: a walk by hand, `find` and `set` from memory."""

import numpy as np

from per_tutorial.notebook.checking import EXERCISES, Exercise, Wrong, is_stub, shown

LEAVES = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
LARGE = np.random.default_rng(2).integers(1, 10, 1024).astype(float).tolist()


class CountedNodes(list):
    """Nodes that count how often they are read."""

    reads = 0

    def __getitem__(self, place):
        found = super().__getitem__(place)
        self.reads += len(found) if isinstance(place, slice) else 1
        return found

    def __iter__(self):
        return (self[place] for place in range(len(self)))


def sums(leaves):
    """The nodes of a tree with its root at index 1; without the first, the root is at index 0."""
    nodes = [0.0] * len(leaves) + list(leaves)
    for node in reversed(range(1, len(leaves))):
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
    return nodes


def tree(nodes):
    """A tree in words."""
    return f"the leaves {shown(nodes[len(nodes) // 2 :])}"


def reads_few(nodes, *rest):
    """A last look: whether an answer reads few nodes of a large tree."""

    def also(answer):
        counted = CountedNodes(nodes)
        answer(counted, *rest)
        if counted.reads <= 60:
            return None
        return f"right, but it read {counted.reads} nodes of a tree with 1024 leaves: walk."

    return also


EXERCISES["01.1"] = Exercise(right=[1, 3, 7, 14], hints=[
    ([1, 3, 6, 13],
     "At node 3 the prefix equals the left sum, 14: go left only if it is *less*."),
    ([1, 3, 7, 15], "Right as far as node 7: did you subtract the left sum at both steps right?"),
    ([1, 3, 7], "Right so far, but node 7 is not a leaf: go on until you reach one."),
    ([1, 3, 7, 6], "It is leaf [6], but as a node it has another number: leaf [k] is node 8 + k."),
])  # fmt: skip


def find(nodes, prefix, left_if=lambda prefix, left, right: prefix < left or right == 0):
    node = 0
    while node < len(nodes) // 2:
        left, right = nodes[2 * node + 1], nodes[2 * node + 2]
        if left_if(prefix, left, right):
            node = 2 * node + 1
        else:
            prefix, node = prefix - left, 2 * node + 2
    return node - len(nodes) // 2


EXERCISES["01.2"] = Exercise(
    right=find, kinds=True,
    words=lambda nodes, prefix: f"a dart at {shown(prefix, 16)} and {tree(nodes)}",
    # Ends of strips, equal children, empty leaves, and prefixes that rounding has made too large.
    cases=[(sums(leaves)[1:], prefix) for leaves, prefix in (
        *((LEAVES, prefix) for prefix in (0.0, 7.5, 14.0, 30.5)), ([7.0], 3.0), ([2.0, 5.0], 2.0),
        ([1.0, 3.0, 1.0, 3.0], 4.5), ([2.0, 2.0, 1.0, 1.0], 3.0), ([0.0, 2.0, 1.0, 1.0], 0.0),
        ([0.3, 0.0, 0.7, 0.0], np.nextafter(1.0, 0.0)), ([0.5, 1e-14, 0.5, 2e-14], 1 + 2e-14),
        (LARGE[:16], 61.0))],
    hints=[
        (lambda n, p: find(n, p, lambda p, left, right: p < left),
         "After rounding, the prefix can be all that is left: never go right where the sum is 0."),
        (lambda n, p: find(n, p, lambda p, left, right: p <= left or right == 0),
         "With `<=` a dart at the left end of a strip goes to the strip before."),
        (lambda n, p: find(n, p, lambda p, left, right: left == right or p < left or right == 0),
         "Equal children are not a special case."),
        (lambda n, p: find(n, p) + len(n) // 2,
         "That is the leaf's node; the number of the leaf is asked for, counted from 0."),
    ],
    also=reads_few(sums(LARGE)[1:], 4000.25))  # fmt: skip


def set_leaf(nodes, leaf, value, write=lambda left, right, old, change: left + right):
    node = len(nodes) // 2 + leaf
    change, nodes[node] = value - nodes[node], value
    while node > 0:
        node = (node - 1) // 2
        nodes[node] = write(nodes[2 * node + 1], nodes[2 * node + 2], nodes[node], change)
    return nodes


def on_own_nodes(answer):
    """The answer, given nodes that it must change and return."""

    def used(nodes, leaf, value):
        own = list(nodes)
        result = answer(own, leaf, value)
        if result is not own and not is_stub(result):
            raise Wrong("change `nodes` itself, and return it.")
        return result

    return used


EXERCISES["01.3"] = Exercise(
    right=set_leaf, tried=on_own_nodes,
    words=lambda nodes, leaf, value: f"{tree(nodes)}, leaf = {leaf} and value = {shown(value)}",
    # With 1e17, a sum that is changed by a difference forgets what is small.
    cases=[(sums(leaves)[1:], leaf, value) for leaves, leaf, value in (
        ([2.0, 5.0], 0, 4.0), (LEAVES, 0, 5.0), (LEAVES, 5, 2.5), (LEAVES, 6, 7.0), ([7.0], 0, 3.0),
        ([1.0, 1e17], 1, 2.0), ([0.1, 0.7, 1e-7, 0.3], 1, 1 / 3), (LARGE[:16], 13, 20.0))],
    hints=[
        (lambda n, k, v: set_leaf(n, k, v, lambda left, right, old, change: old),
         "The leaf has its new value; the sums above it are still the old ones."),
        (lambda n, k, v: set_leaf(n, k, v, lambda left, right, old, change: old + change),
         "You add the change, and the sums keep every rounding error."),
        (lambda n, k, v: set_leaf(n, k, v, lambda left, right, old, change: max(left, right)),
         "A node holds the sum of its children, not the larger of them."),
    ],
    also=reads_few(sums(LARGE)[1:], 500, 30.0))  # fmt: skip
