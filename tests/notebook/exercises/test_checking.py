"""What `check` does with an answer, whatever it is. The exercises are tested beside this."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from per_tutorial.notebook import checking
from per_tutorial.notebook.checking import check, declaring
from per_tutorial.notebook.checking.answers import (
    Hint,
    ask,
    cases_of,
    identical,
    like,
    number,
    part,
    told_apart,
)
from per_tutorial.notebook.checking.comparing import Part, compare, remembers
from per_tutorial.notebook.checking.declaring import AN_INDEX, function_exercise
from per_tutorial.notebook.checking.tensors import check_gradient, tensors

# check --------------------------------------------------------------------------------------------


@pytest.fixture
def sum_of_two(monkeypatch):
    """Registers a checker for one test."""

    def checker(add):
        result = ask(add, {"a": 1, "b": 2})
        return None if number(result) == 3 else "subtracted, not added."

    monkeypatch.setitem(checking.CHECKERS, "99.1", checker)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda a, b: a + b, "✓ 99.1: right."),
        (lambda a, b: a - b, "✗ 99.1: subtracted, not added."),
        (lambda a, b: [][a],
         "✗ 99.1: your function stopped with IndexError: list index out of range — for a = 1, b"),
        (lambda a: a, "✗ 99.1: your function is called with (a, b): keep these arguments."),
        (5, "✗ 99.1: a function is asked for: give `check` its name, without calling it."),
        (lambda a, b: None, "✗ 99.1: your function returns None: does one branch lack"),
        (lambda a, b: "3", "✗ 99.1: '3' is text: write the number without quotation marks."),
        (..., "○ 99.1: not solved yet."),
        (NotImplemented, "○ 99.1: not solved yet."),
        ([...], "○ 99.1: not solved yet."),
        (lambda a, b: ..., "○ 99.1: not solved yet."),
        (lambda a, b: NotImplemented, "○ 99.1: not solved yet."),
        (lambda a, b: (..., ...), "○ 99.1: not solved yet."),
    ],
)  # fmt: skip
def test_check_says_what_the_answer_is(sum_of_two, said, answer, words):
    right, printed = said("99.1", answer)
    assert right is printed.startswith("✓")
    assert printed.startswith(words)
    assert printed.count("\n") == 1


def test_an_interrupt_is_not_taken_for_a_mistake(sum_of_two):
    def interrupted(a, b):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("99.1", interrupted)


@pytest.mark.parametrize("name", ["98.1", "00.9", "1.2", "", "exercise"])
def test_a_name_without_exercise_is_an_error(name):
    with pytest.raises(ValueError, match="name: must be an exercise such as '01.2', got"):
        check(name, ...)


@pytest.mark.parametrize("notebook", ["00", "01"])
def test_exercises_without_torch_load_no_torch(notebook):
    code = f"""if True:
        import sys
        from per_tutorial.notebook.checking import check, declaring
        assert check("{notebook}.1", 0) is False
        assert "torch" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


# Calling and reading ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        (lambda array, rows, count: array.__imul__(2), "array"),
        (lambda array, rows, count: array.resize(4, refcheck=False), "array"),
        (lambda array, rows, count: rows.append(3), "rows"),
        (lambda array, rows, count: rows[0].append(3), "rows"),
        (lambda array, rows, count: rows.__setitem__(1, (5, 6)), "rows"),
    ],
)
def test_an_answer_that_changes_its_arguments_is_told_which(change, argument):
    def answer(array, rows, count):
        change(array, rows, count)
        return 0

    case = {"array": np.array([1.0, 2.0, 3.0]), "rows": [[1], (2, 3)], "count": 1}
    with pytest.raises(Hint, match=f"it changes `{argument}`"):
        ask(answer, case)
    assert identical(case["array"], np.array([1.0, 2.0, 3.0]))
    assert case["rows"] == [[1], (2, 3)]


@pytest.mark.parametrize("other", [[1, 2.0], (1, 2), [1], np.array([1, 2]), [1, 2, 3]])
def test_lists_are_the_same_only_if_type_and_values_are(other):
    assert identical([1, 2], [1, 2])
    assert not identical([1, 2], other)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.array(2), torch.tensor(2.0)])
def test_a_number_may_come_in_any_form(value):
    assert number(value) == 2.0


@pytest.mark.parametrize(
    ("value", "right", "hint"),
    [
        (np.zeros((4, 1)), np.zeros(4), r"\(4, 1\), a column"),
        (np.zeros((4, 4)), np.zeros(4), r"a table of \(4, 4\)"),
        (np.zeros(3), np.zeros(4), "should have 4 numbers; yours has 3"),
        (0.0, np.zeros(4), "should have 4 numbers; yours has 1"),
        (np.zeros(4), 0.0, r"a single number is asked for; yours has the shape \(4,\)"),
        (np.zeros((3, 2)), np.zeros((2, 3)), r"should have the shape \(2, 3\)"),
        # Broadcasting these against the right shape stops with an error: no table is made.
        (np.zeros((2, 4, 1)), np.zeros((2, 4)), r"should have the shape \(2, 4\)"),
        (np.zeros((2, 4, 2, 4)), np.zeros((2, 4)), r"should have the shape \(2, 4\)"),
        ([1, [2, 3]], np.zeros(2), "rows have different lengths"),
        ({1.0, 2.0}, np.zeros(2), "a set has no order"),
        (["1", "2"], np.zeros(2), "is text"),
        ([True, False], np.zeros(2), "is not a number"),
    ],
)
def test_results_of_another_form_are_told_so(value, right, hint):
    with pytest.raises(Hint, match=hint):
        like(value, right)


@pytest.mark.parametrize("result", [(1, 2), [1, 2], np.array([1, 2]), torch.tensor([1, 2])])
def test_two_things_may_come_in_any_form(result):
    assert part(result, 1, ["one", "other"]) == 2


def test_numbers_that_differ_are_told_with_digits_enough():
    assert told_apart(0.55, 0.5500001) == ("0.55", "0.5500001")
    assert told_apart(0.7, 0.75) == ("0.7", "0.75")
    assert told_apart(np.array([1.0, 0.7]), [1, 0.70001]) == ("[1, 0.7]", "[1, 0.70001]")
    assert told_apart(16_777_216.0, 16_777_215.0) == ("16777216", "16777215")


# Comparing ----------------------------------------------------------------------------------------


CASES = cases_of("a b", [(2, 2), (2, 3), (5, 3), (4, 1)])
PRODUCT = Part(
    mistakes=[
        (lambda a, b: a + b, "added."),
        (lambda a, b: a**b, "raised."),
        (lambda a, b: a * b + (a == 5), "one too much."),
    ]
)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda a, b: a * b, None),
        (lambda a, b: a + b, "added."),
        (lambda a, b: a**b, "raised."),  # the first case alone could not tell these apart
        (lambda a, b: a * b if b < 3 else a + b, "added."),
        (
            lambda a, b: 3 * a,
            "your answer does not change with `b`: is the argument used everywhere?",
        ),
        (lambda a, b: 7, "your answer is always 7; it should depend on the arguments."),
        (lambda a, b: 2 * a * b, "for a = 2, b = 2 it should be 4, yours is 8."),
        (lambda a, b: a + b if a < 5 else [][0], "added."),
    ],
)
def test_the_mistake_that_explains_all_cases_is_told(answer, words):
    assert compare(answer, lambda a, b: a * b, CASES, PRODUCT) == words


def test_an_answer_that_is_right_until_it_stops_is_told_where():
    with pytest.raises(Hint, match="stopped with IndexError: .* — for a = 5, b = 3"):
        compare(lambda a, b: a * b if a < 5 else [][0], lambda a, b: a * b, CASES, PRODUCT)


def test_an_answer_that_remembers_is_found_out():
    calls = []
    cases = cases_of("step", [(step,) for step in range(8)])
    assert remembers(lambda step: calls.append(step) or len(calls), cases)
    assert not remembers(lambda step: step, cases)


def test_what_shows_earlier_is_another_mistake():
    late = Part(mistakes=[(lambda a, b: 0, "always 0.")])
    words = compare(lambda a, b: a * b if a < 4 else 0, lambda a, b: a * b, CASES, late)
    assert words == "for a = 5, b = 3 it should be 15, yours is 0."


# Declaring ----------------------------------------------------------------------------------------


@pytest.fixture
def declared(monkeypatch, said):
    """(an answer, fields of the exercise "99.2", whose right answer is x / n) → what is printed."""

    def ask_for(answer, right=lambda x, n: x / n, **fields):
        monkeypatch.setattr(declaring, "CHECKERS", checking.CHECKERS)
        monkeypatch.setitem(checking.CHECKERS, "99.2", None)
        rows = [(np.array([1.0, 2.0]), 3), (np.array([4.0, 0.5, 7.0]), 7), (np.array([1.0]), 1)]
        function_exercise("99.2", right, "x n", rows, **fields)
        return said("99.2", answer)[1].removeprefix("✗ 99.2: ").rstrip()

    return ask_for


CALLS = []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x, n: x / n, "✓ 99.2: right."),
        (lambda x, n: (x / n).tolist(), "✓ 99.2: right."),
        (lambda x, n: torch.div(x, n), "✓ 99.2: right."),  # arrays would be refused by torch
        (lambda x, n: np.float32(x / n), "✓ 99.2: right."),
        (lambda x, n: (each / n for each in x), "that is a generator, which can be read only once"),
        (lambda x, n: map(float, x / n), "that is a map, which can be read only once"),
        (lambda x, n: np.round(x / n, 2), "right but for the rounding: do not round."),
        (lambda x, n: x // n, "right but for the rounding: do not round."),
        (lambda x, n: x / min(n, 8), "right as long as the inputs are small; but for x = [2, 3]"),
        (lambda x, n: x * 0 + len(CALLS) + (CALLS.append(x) or 0), "for x = [1, 2], n = 3"),
        (lambda x, n: x / n + (CALLS.append(x) or len(CALLS) > 7), "the same call returns"),
        # Wrong in every call after the first four, which are the cases
        (lambda x, n: x / n + (CALLS.append(x) or len(CALLS) > 4), "the same call returns"),
        (lambda x, n: torch.sum(x) / n, "your function stopped with TypeError"),
    ],
)
def test_answers_of_all_kinds_are_examined(declared, answer, words):
    CALLS.clear()
    larger = [(np.array([2.0, 3.0]), 90)]
    assert declared(answer, larger=larger).startswith(words)


def test_mistakes_replace_steps_of_the_right_answer(declared):
    def right(x, n, step=np.divide):
        return step(x, n)

    rows = [
        (dict(step=np.multiply), dict(step=np.add), "divide."),
        (lambda x, n: n / x, "upside down."),
    ]
    assert declared(lambda x, n: x * n, right, mistakes=rows) == "divide."
    assert declared(lambda x, n: x + n, right, mistakes=rows) == "divide."
    assert declared(lambda x, n: n / x, right, mistakes=rows) == "upside down."


def test_an_index_is_an_int(declared):
    def right(x, n):
        return [int(each) // n for each in x]

    assert declared(right, right, dtype=AN_INDEX).startswith("✓")
    words = declared(lambda x, n: x // n, right, dtype=AN_INDEX)
    assert words.startswith("the right numbers, but as float64")


def test_float32_is_too_coarse_where_results_are_exact(declared):
    words = declared(lambda x, n: np.float32(x / n), exact=True)
    assert words == "right but for the rounding: float32 has seven digits, float64 has sixteen."


def test_later_inputs_and_other_looks_come_last(declared):
    later = [([(np.array([5.0]), 11)], "not for 11 ({})")]

    def cut(x, n):
        return x / min(n, 10)

    told = "not for 11 (for x = [5], n = 11 it should be [0.4545], yours is [0.5].)"
    assert declared(cut, later=later) == told
    assert declared(lambda x, n: x / n, after=lambda answer: "but slow.") == "but slow."
    assert declared(lambda x, n: 0 * x, after=lambda answer: "but slow.") != "but slow."


def test_parts_are_told_one_after_the_other(declared):
    parts = [
        Part(name="the shares", mistakes=[(lambda x, n: x, "divide.")]),
        Part(name="the sum", intro="the sum: ", mistakes=[(lambda x, n: n, "not n.")]),
    ]

    def right(x, n):
        return x / n, x.sum()

    assert declared(right, right, parts=parts).startswith("✓")
    assert declared(lambda x, n: (x, n), right, parts=parts) == "divide."
    assert declared(lambda x, n: (x / n, n), right, parts=parts) == "the sum: not n."
    assert declared(lambda x, n: x.sum(), right, parts=parts).startswith("return 2 things")


@pytest.mark.parametrize("calls", [6, 9])
def test_parts_that_change_from_call_to_call_are_noticed(declared, calls):
    """The shares become wrong after each part was right in each of the three cases."""
    CALLS.clear()

    def right(x, n):
        return x / n, x.sum()

    def answer(x, n):
        CALLS.append(n)
        return x / n + (len(CALLS) > calls), x.sum()

    parts = [Part(name="the shares"), Part(name="the sum")]
    assert declared(answer, right, parts=parts).startswith("the same call returns")


# Gradients ----------------------------------------------------------------------------------------


def test_trained_arguments_carry_a_gradient_and_can_be_changed_in_place():
    give = tensors(["a"])
    a, b = (give(name, torch.ones(2)) for name in "ab")
    assert (a.requires_grad, b.requires_grad) == (True, False)
    a += 1  # a leaf would refuse
    assert give("n", 3) == 3


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda a, b: a * b, None),
        (lambda a, b: b * a + b.detach() * 0, None),
        (lambda a, b: (a * b).detach(), "no gradient flows back"),
        (lambda a, b: (a * b).tolist(), "no gradient flows back"),
        (lambda a, b: list(a * b), "a list of tensors. Return one tensor"),
        (lambda a, b: a.detach() * b, "the gradient is not"),
        (lambda a, b: a.numpy() * b, "leaves torch"),
        (lambda a, b: 2 * a * b - (a * b).detach(), "the gradient is 2 times the right one"),
        (lambda a, b: (a * b).sum().backward() or a * b, "calls `.backward\\(\\)` itself"),
    ],
)
def test_answers_let_the_gradient_through(answer, hint):
    case = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([3.0, 5.0])}

    def gradient():
        check_gradient(answer, lambda a, b: a * b, case, ["a", "b"])

    if hint is None:
        gradient()
    else:
        with pytest.raises(Hint, match=hint):
            gradient()
