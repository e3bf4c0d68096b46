"""`check`: says whether an answer is right, and which mistake a wrong one points to."""

import pytest

from per_tutorial.notebook import exercises


@pytest.fixture
def checker():
    """Registers a checker for one test."""

    @exercises.checks("test")
    def sum_of_two(add):
        return None if add(1, 2) == 3 else "subtracted, not added"

    yield
    del exercises.CHECKERS["test"]


@pytest.mark.parametrize(
    ("answer", "passes", "message"),
    [
        (lambda a, b: a + b, True, "✓ test: right."),
        (lambda a, b: a - b, False, "✗ test: subtracted, not added"),
        (lambda a, b: 1 / 0, False, "✗ test: the check stopped with ZeroDivisionError"),
        (lambda a: a, False, "✗ test: the check stopped with TypeError"),
        (5, False, "✗ test: the check stopped with TypeError"),
        (..., False, "○ test: not solved yet"),
        (NotImplemented, False, "○ test: not solved yet"),
        (lambda a, b: ..., False, "○ test: not solved yet"),
        (lambda a, b: NotImplemented, False, "○ test: not solved yet"),
    ],
)
def test_check_says_what_the_answer_is(checker, capsys, answer, passes, message):
    assert exercises.check("test", answer) is passes
    assert capsys.readouterr().out.startswith(message)


def sum_by_walking(nodes, leaf):
    first = len(nodes) // 2
    return sum(nodes[first : first + leaf])


def sum_inclusive(nodes, leaf):
    return sum_by_walking(nodes, leaf + 1)


def sum_after(nodes, leaf):
    return nodes[1] - sum_inclusive(nodes, leaf)


def sum_of_eight(nodes, leaf):
    return sum(nodes[8 : 8 + leaf])


def sum_that_clears(nodes, leaf):
    before = sum_by_walking(nodes, leaf)
    nodes[1] = 0.0
    return before


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("01.1", [1, 3, 6, 13], "only if the prefix is *less*"),
        ("01.1", [1, 3, 7, 15], "subtract the left sum"),
        ("01.1", [3, 7, 14], "root is node 1"),
        ("01.1", [1, 3, 7, 6], "leaf [k] is node 8 + k"),
        ("01.1", [1, 2, 5, 11], "you leave the path at node 1"),
        ("01.1", [1, 3], "you leave the path at node 3"),
        ("01.1", [1, 3, 7, 14, 28], "four nodes are enough"),
        ("01.1", 14, "TypeError"),
        ("01.2", sum_inclusive, "the sum ends *before* it"),
        ("01.2", sum_after, "add its left sibling"),
        ("01.2", sum_by_walking, "Ten are enough"),
        ("01.2", sum_of_eight, "where the leaves begin"),
        ("01.2", sum_that_clears, "only read it"),
        ("01.2", lambda nodes, leaf: 0.0, "the sum before it is 3, yours is 0.0"),
        ("01.3", lambda total, u: [total * x for x in u], "independent draws"),
        ("01.3", lambda total, u: [(k + x) / 4 for k, x in enumerate(u)], "stretch them"),
        ("01.3", lambda total, u: [(k + 0.5) * total / 4 for k in range(4)], "same prefix sums"),
        ("01.3", lambda total, u: [(k + 1 + x) * 2 for k, x in enumerate(u)], "k starts at 0"),
        ("01.3", lambda total, u: [(k + 1 - x) * 2 for k, x in enumerate(u)], "draw k belongs"),
        ("01.3", lambda total, u: [(k + x * x) * 2 for k, x in enumerate(u)], "in its range"),
        ("01.3", lambda total, u: [0.0], "one prefix sum for each"),
        ("01.4", 16_000_000, "padded to"),
        ("01.4", 15_999_992, "padded to"),
        ("01.4", 8 * 2**20, "the leaves alone"),
        ("01.4", 2**21, "number of nodes"),
        ("01.4", 8 * (2**21 - 1), "place 0"),
        ("01.4", 32 * 2**20, "twice too much"),
        ("01.4", 8 * 2**20 + 1, "nodes = 2 × leaves"),
    ],
)
def test_checks_name_the_mistake(capsys, name, answer, mistake):
    assert exercises.check(name, answer) is False
    assert mistake in capsys.readouterr().out
