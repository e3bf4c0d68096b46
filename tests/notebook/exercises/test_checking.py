"""What `check` does with an answer, whatever it is. The exercises are tested beside this."""

import numpy as np
import pytest
import torch

from per_tutorial.notebook.checking import EXERCISES, Exercise, check


@pytest.fixture
def told(monkeypatch, said):
    """(an answer, an exercise's fields) → what is printed about it, as exercise "99.1"."""

    def say(answer, **fields):
        monkeypatch.setitem(EXERCISES, "99.1", Exercise(**fields))
        right, words = said("99.1", answer)
        assert right is words.startswith("✓")
        assert words.count("\n") == 1
        return words.removeprefix("✗ 99.1: ").rstrip()

    return say


def ratio(x, n, step=np.divide):
    return step(x, n)


ROWS = [(np.array([1.0, 2.0]), 4), (np.array([4.0, 0.5, 7.0]), 7), (np.array([1.0]), 1)]
HINTS = [(lambda x, n: x * n, "Divide."), (lambda x, n: ratio(x, n, np.subtract), "Not minus.")]
RATIO = {"right": ratio, "cases": ROWS, "hints": HINTS}
CALLS = []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x, n: x / n, "✓ 99.1: right."),
        (lambda x, n: torch.tensor(x) / n, "✓ 99.1: right."),
        (lambda x, n: np.float32(x / n), "✓ 99.1: right."),
        (lambda x, n: x * n, "for x = [1, 2], n = 4 the result should be [0.25, 0.5], yours is "
         "[4, 8]. Divide."),
        (lambda x, n: x - n, "for x = [1, 2], n = 4 the result should be [0.25, 0.5], yours is "
         "[-3, -2]. Not minus."),
        (lambda x, n: x * n if n > 1 else x - n, "for x = [1, 2], n = 4 the result should be "
         "[0.25, 0.5], yours is [4, 8]."),
        (lambda x, n: x / n + 1e-8, "for x = [1, 2], n = 4 the result should be [0.25, 0.5], yours "
         "is [0.25000001, 0.50000001]."),
        (lambda x, n: x * np.nan, "for x = [1, 2], n = 4 the result should be [0.25, 0.5], yours "
         "is [nan, nan]."),
        (lambda x, n: x[5], "for x = [1, 2], n = 4 your function stopped with IndexError: index"),
        (lambda x, n: x[None] / n, "the result: got the shape (1, 2), expected (2,)."),
        (lambda x, n: x[:, None] / n, "the result: got the shape (2, 1), expected (2,). Where a "
         "column (B, 1) meets (B,)"),
        (lambda x, n: None, "your function returns None: does one branch lack a `return`?"),
        (lambda x, n: "3", "numbers are asked for, not '3'."),
        (lambda x, n: [1, [2, 3]], "the rows have different lengths"),
        (lambda x, n: (each / n for each in x), "that is a generator, which can be read only once"),
        (5, "give `check` the name of what you defined, without calling it."),
        (lambda x, n: x.__itruediv__(n), "it changes `x`, which belongs to the caller"),
        (lambda x, n: x / n + (CALLS.append(n) or len(CALLS)), "for x = [1, 2], n = 4 the result "
         "should be [0.25, 0.5], yours is [1.25, 1.5]. The same call returns another answer"),
        (lambda x, n: x / n + (CALLS.append(n) or len(CALLS) > 3), "The same call returns another"),
        (..., "○ 99.1: not solved yet."),
        (lambda x, n: ..., "○ 99.1: not solved yet."),
    ],
)  # fmt: skip
def test_every_answer_is_told_what_it_is(told, answer, words):
    CALLS.clear()
    assert told(answer, **RATIO).startswith(words)


def test_changes_deep_in_an_argument_are_noticed_and_undone(told):
    rows = [[1], (np.array([1.0, 2.0]), 3)]
    for change in (lambda rows: rows[0].append(3) or 1, lambda rows: rows[1][0].fill(0) or 1):
        words = told(change, right=lambda rows: 1, cases=[(rows,)])
        assert words.startswith("it changes `rows`")
    assert repr(rows) == "[[1], (array([1., 2.]), 3)]"


def test_several_results_are_told_by_their_names(told):
    fields = {"right": lambda x, n: (x / n, x.sum()), "cases": ROWS, "parts": ["shares", "the sum"]}
    assert told(lambda x, n: [x / n, x.sum()], **fields).startswith("✓")
    assert told(lambda x, n: (x / n, n), **fields).endswith(" the sum should be 3, yours is 4.")
    assert told(lambda x, n: (n, x), **fields) == "shares: got the shape (), expected (2,)."
    assert told(lambda x, n: n, **fields) == "return 2 things: shares, the sum. Yours is 4."


def test_an_index_is_an_int_and_a_screen_has_bytes(told):
    fields = {"right": lambda n: n // 2, "cases": [(4,), (7,)], "kinds": True}
    assert told(lambda n: np.int32(n // 2), **fields).startswith("✓")
    words = told(lambda n: float(n // 2), **fields)
    assert words == "the right numbers, but as float64: int64 is needed."
    fields |= {"right": lambda n: np.uint8(n)}
    assert told(lambda n: n, **fields) == "the right numbers, but as int64: uint8 is needed."


def test_values_are_compared_and_hinted(told):
    fields = {"right": [1, 2], "hints": [([2, 1], "Turn it round.")]}
    assert told((1, 2), **fields).startswith("✓")
    assert told([2, 1], **fields) == "[2, 1] is not right. Turn it round."
    assert told([1, 2, 3], **fields) == "[1, 2, 3] is not right."


def test_a_last_look_a_case_in_words_and_what_a_cell_begins_with(told):
    assert told(lambda x, n: x / n, also=lambda answer: "but slow.", **RATIO) == "but slow."
    words = told(lambda x, n: x, words=lambda x, n: f"{n} shares", **RATIO)
    assert words.startswith("for 4 shares the result should be")
    began = {"begins_as": lambda x, n: x + n, **RATIO}
    assert told(lambda x, n: n + x, **began).startswith("not solved yet. Repair the class")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda a, b: a * b, "✓"),
        (lambda a, b: b * a + b.detach() * 0, "✓"),
        (lambda a, b: (a * b).detach(), "the values are right, but no gradient can flow back"),
        (lambda a, b: list(a * b), "the values are right, but no gradient can flow back"),
        (lambda a, b: a.numpy() * b.numpy(), "the values are right, but no gradient can flow back"),
        (lambda a, b: a.detach() * b, "the values are right, but the gradient is not"),
        (lambda a, b: 2 * a * b - (a * b).detach(), "the values are right, but the gradient is"),
        (lambda a, b: (p := a * b).detach() + (p - p.detach()).flip(0), "the values are right"),
        (lambda a, b: a.mul_(b), "it changes `a`"),
    ],
)
def test_the_gradient_must_flow_back(told, answer, words):
    case = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    fields = {"right": lambda a, b: a * b, "cases": [case], "gradient": ["a", "b"]}
    assert told(answer, **fields).startswith(words)


def test_an_interrupt_is_not_taken_for_a_mistake(monkeypatch):
    def interrupted(x, n):
        raise KeyboardInterrupt

    monkeypatch.setitem(EXERCISES, "99.1", Exercise(**RATIO))
    with pytest.raises(KeyboardInterrupt):
        check("99.1", interrupted)


@pytest.mark.parametrize("name", ["98.1", "00.9", "1.2", "", "exercise"])
def test_a_name_without_exercise_is_an_error(name):
    with pytest.raises(ValueError, match="name: must be an exercise such as '01.2', got"):
        check(name, ...)
