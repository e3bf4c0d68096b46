"""Checks of the notebooks' exercises: what is right, and which mistake a wrong answer points to.

A checker takes the answer and returns None if it is right, or else a sentence about the mistake. It
is registered under the exercise's name, the notebook's number and its own: `@checks("01.2")`.
"""

import functools

CHECKERS = {}


class _Unsolved(Exception):
    """An answer is still the stub that the notebook starts with."""


def checks(name):
    """Register a checker for the exercise of this name."""

    def register(checker):
        CHECKERS[name] = checker
        return checker

    return register


def check(name, answer):
    """Print whether the answer to an exercise is right; return True if it is, False if not.

    Never raises because of the answer, so that a notebook runs to its end while it is unsolved.

    Args:
        name: the exercise, such as "01.2".
        answer: a value or a function; `...` (or a function that returns it) counts as unsolved.
    """
    try:
        if _is_stub(answer):
            raise _Unsolved
        mistake = CHECKERS[name](_watched(answer) if callable(answer) else answer)
    except _Unsolved:
        print(
            f"○ {name}: not solved yet. Put your answer in place of the dots and run the cell again."
        )
        return False
    except Exception as error:  # noqa: BLE001  (a wrong answer may raise anything)
        mistake = f"the check stopped with {type(error).__name__}: {error}"
    print(f"✓ {name}: right." if mistake is None else f"✗ {name}: {mistake}")
    return mistake is None


def _is_stub(value):
    return value is ... or value is NotImplemented


def _watched(function):
    """The function, except that a stub's result ends the check."""

    @functools.wraps(function)
    def call(*arguments, **keywords):
        result = function(*arguments, **keywords)
        if _is_stub(result):
            raise _Unsolved
        return result

    return call


# Notebook 01: the segment tree

_LEAVES = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]


class _CountedList(list):
    """A list that counts how often it is read, and that nobody can change unseen."""

    def __init__(self, values):
        super().__init__(values)
        self.reads = 0

    def __getitem__(self, place):
        span = range(*place.indices(len(self))) if isinstance(place, slice) else [place]
        self.reads += len(span)
        return super().__getitem__(place)


def _sum_nodes(leaves):
    nodes = [0.0] * len(leaves) + list(leaves)
    for node in reversed(range(1, len(leaves))):
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
    return nodes


@checks("01.1")
def _path_of_a_prefix(path):
    path = list(path)
    if path == [1, 3, 7, 14]:
        return None
    if path == [1, 3, 6, 13]:
        return (
            "at node 3 the prefix equals the left sum, 14. A leaf's share does not hold its right "
            "end: go left only if the prefix is *less* than the left sum."
        )
    if path == [1, 3, 7, 15] or path == [1, 3, 7]:
        return (
            "down to node 7 that is right, but from there? After each step to the right, subtract "
            "the left sum from the prefix, and go on until you stand on a leaf."
        )
    if path[:1] != [1]:
        return "the walk starts at the root, and the root is node 1."
    if path[-1:] == [6]:
        return "leaf [6] it is, but as a node it has another number: leaf [k] is node 8 + k."
    right = [1, 3, 7, 14]
    for step in range(1, len(right)):
        if path[step : step + 1] != right[step : step + 1]:
            parent = right[step - 1]
            return (
                f"you leave the path at node {parent}: is the prefix that is left there less than "
                f"the sum of node {2 * parent}?"
            )
    return "the walk is over when it stands on a leaf; four nodes are enough."


@checks("01.2")
def _sum_before_a_leaf(prefix_sum):
    nodes = _sum_nodes(_LEAVES)
    for leaf in range(8):
        before, after = sum(_LEAVES[:leaf]), sum(_LEAVES[leaf + 1 :])
        given = _CountedList(nodes)
        got = prefix_sum(given, leaf)
        if given != nodes:
            return "it changes the tree; it should only read it."
        if got == before:
            continue
        if got == before + _LEAVES[leaf]:
            return f"for leaf {leaf} you count the leaf itself: the sum ends *before* it."
        if got == after:
            return (
                f"for leaf {leaf} that is the sum of what lies to its right. Standing on a right "
                "child, add its left sibling, not the other way round."
            )
        return f"for leaf {leaf} of {_LEAVES} the sum before it is {before:g}, yours is {got}."
    large = _CountedList(_sum_nodes([1.0] * 1024))
    if prefix_sum(large, 1023) != 1023:
        return "it is right for 8 leaves, but not for 1024; does it know where the leaves begin?"
    if large.reads > 20:
        return (
            f"right, but it read {large.reads} nodes of a tree of 1024 leaves. Ten are enough: walk "
            "up, and add whole subtrees on the way."
        )
    return None


@checks("01.3")
def _one_draw_in_each_range(stratified):
    uniforms, total = [0.5, 0.25, 0.75, 0.0], 8.0
    right = [1.0, 2.5, 5.5, 6.0]
    got = [float(prefix) for prefix in stratified(total, uniforms)]
    if got == right:
        return None
    if len(got) != len(right):
        return f"one prefix sum for each of the {len(right)} random numbers; you return {len(got)}."
    if got == [total * uniform for uniform in uniforms]:
        return (
            "these are independent draws from all of [0, total); draw number k has its own range."
        )
    if got == [prefix / total for prefix in right]:
        return "these are in [0, 1): stretch them to [0, total)."
    if got in ([1.0, 3.0, 5.0, 7.0], [0.0, 2.0, 4.0, 6.0]):
        return "every batch would get the same prefix sums; where in its range is up to the random number."
    if got == [prefix + 2.0 for prefix in right]:
        return "every range is one too far to the right, and the last lies beyond the total: k starts at 0."
    if not all(2.0 * k <= prefix < 2.0 * (k + 1) for k, prefix in enumerate(got)):
        return (
            f"with total 8 and four draws, draw k belongs in [2k, 2k + 2); yours are {got} for the "
            f"random numbers {uniforms}."
        )
    return f"each lies in its range, but not where the random number {uniforms} says: {got}."


@checks("01.4")
def _bytes_of_a_tree(answer):
    leaves = 2**20
    if answer == 2 * leaves * 8:
        return None
    known = {
        2 * 1_000_000 * 8: "a million is no power of two: what is it padded to?",
        (2 * 1_000_000 - 1) * 8: "a million is no power of two: what is it padded to?",
        leaves * 8: "these are the leaves alone; the sums above them need as much again.",
        2 * leaves: "that is the number of nodes; each is a float64 of 8 bytes.",
        (2 * leaves - 1) * 8: "nearly: the array has a place 0, too, though no node uses it.",
        4 * leaves * 8: "twice too much: 2**20 is more than a million already.",
        2 * leaves * 4: "the sums are float64, 8 bytes each; float32 would round too coarsely.",
    }
    return known.get(answer, "bytes = 8 × nodes, nodes = 2 × leaves, leaves = a power of two.")
