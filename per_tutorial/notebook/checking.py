"""`check`, which the notebooks call: is an answer right, and if not, where is it wrong and why?

An exercise is a reference answer, the inputs that matter, and at most five usual mistakes with a
hint each. A wrong answer is shown the first input where it is wrong. If it agrees with a usual
mistake in every case, it hears that hint as well. The exercises of a page are in
`exercises/notebook_NN.py`; to add one, add it to `EXERCISES` there.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHANGES = "The same call returns another answer the second time: it remembers, or it is chance."
NO_GRADIENT = (
    "the values are right, but no gradient can flow back: return one tensor, made by torch alone, "
    "without `.item()`, `.detach()` or `float()`."
)
WRONG_GRADIENT = (
    "the values are right, but the gradient is not: is a part cut off from it (`.detach()`), or "
    "does `.backward()` run inside?"
)


class Wrong(Exception):
    """A sentence about what is wrong with an answer."""


class Unsolved(Exception):
    """An answer is still the stub that the notebook starts with."""


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """What is asked for, and how an answer is examined.

    Args:
        right: the reference, a function or a value. Its arguments have the names of the page.
        cases: the arguments of each call, the simplest first. One case alone could be right by
            chance, and large ones are hard to read.
        hints: (wrong answer, sentence about it), at most five; the first one that fits is said.
        parts: what each of several results is, if the function returns several.
        kinds: whether results need the reference's kind of number: an index must be an int.
        gradient: the names of arguments that must receive the right gradient (torch).
        tried: makes the function that is called from what the reader gives, such as a class.
        begins_as: what the cell holds at first, where that is more than dots.
        words: a case in words, from the arguments; by default their names and values.
        also: looks at an answer that is right so far; returns a sentence about it, or None.
    """

    right: Any
    cases: Sequence[tuple[Any, ...]] = ()
    hints: Sequence[tuple[Any, str]] = ()
    parts: Sequence[str] = ()
    kinds: bool = False
    gradient: Sequence[str] = ()
    tried: Callable[[Any], Any] = lambda answer: answer
    begins_as: Any = None
    words: Callable[..., str] | None = None
    also: Callable[[Any], str | None] = lambda answer: None

    def examine(self, answer: Any) -> str | None:
        """None for a right answer, else what is wrong; may raise `Wrong` or `Unsolved`."""
        if not callable(self.right):
            return self.examine_value(answer)
        if not callable(answer):
            raise Wrong("give `check` the name of what you defined, without calling it.")
        function, right = self.tried(answer), self.tried(self.right)
        if self.begins_as:
            untouched = self.outcomes(self.tried(self.begins_as))
            if agree(self.outcomes(function), untouched):
                raise Wrong("not solved yet. Repair the class and run the cell again.")
        if mistake := self.first_mistake(function, right):
            return " ".join([mistake, self.hint(function)]).rstrip()
        if self.gradient:
            self.check_gradient(function, right)
        if mistake := self.also(answer):
            return mistake
        return CHANGES if self.first_mistake(function, right) else None

    def examine_value(self, answer: Any) -> str | None:
        got = numbers(answer)
        if same(got, numbers(self.right)):
            return None
        hints = [hint for wrong, hint in self.hints if same(got, numbers(wrong))]
        return " ".join([f"{shown(got)} is not right.", *hints[:1]])

    def first_mistake(self, function: Any, right: Any) -> str | None:
        """What is wrong in the first case where anything is."""
        for case in self.cases:
            try:
                results = self.results(function, case)
            except (Wrong, Unsolved):
                raise
            except Exception as error:  # noqa: BLE001  (an answer may raise anything)
                what = f"{type(error).__name__}: {error}"
                return f"for {self.described(case)} your function stopped with {what}."
            names = self.parts or ["the result"]
            for name, got, right_one in zip(names, results, self.results(right, case), strict=True):
                if got.shape != right_one.shape:
                    return unlike(name, got.shape, right_one.shape)
                if not same(got, right_one):
                    should, does = told_apart(right_one, got)
                    return f"for {self.described(case)} {name} should be {should}, yours is {does}."
                if self.kinds and not np.can_cast(got.dtype, right_one.dtype, "same_kind"):
                    return f"the right numbers, but as {got.dtype}: {right_one.dtype} is needed."
        return None

    def results(self, function: Any, case: tuple[Any, ...]) -> list[NDArray[Any]]:
        """The parts of what a function returns for copies of these arguments."""
        given = deepcopy(case)
        result = function(*given)
        if is_stub(result):
            raise Unsolved
        if result is None:
            raise Wrong("your function returns None: does one branch lack a `return`?")
        for name, before, after in zip(self.names, case, given, strict=True):
            if not unchanged(before, after):
                raise Wrong(f"it changes `{name}`, which belongs to the caller: work on a copy.")
        if not self.parts:
            return [numbers(result)]
        several = list(result) if isinstance(result, tuple | list) or np.ndim(result) else []
        if len(several) != len(self.parts):
            wanted = ", ".join(self.parts)
            raise Wrong(f"return {len(self.parts)} things: {wanted}. Yours is {shown(result)}.")
        return [numbers(each) for each in several]

    def outcomes(self, function: Any) -> list[list[NDArray[Any]]]:
        """The results in all cases; none where the function stops."""
        found = []
        for case in self.cases:
            try:
                found.append(self.results(function, case))
            except Exception:  # noqa: BLE001  (such as an index that is out of range)
                found.append([])
        return found

    def hint(self, function: Any) -> str:
        """The hint about the first usual mistake that agrees in every case, or ''."""
        got = self.outcomes(function)
        if not agree(got, self.outcomes(function)):
            return CHANGES
        mistakes = ((self.outcomes(self.tried(wrong)), hint) for wrong, hint in self.hints)
        return next((hint for outcomes, hint in mistakes if agree(got, outcomes)), "")

    def check_gradient(self, function: Any, right: Any) -> None:
        """Raise `Wrong` unless the gradient of the first case's result is the right one."""
        import torch

        found = []
        for each in (right, function):
            given = dict(zip(self.names, deepcopy(self.cases[0]), strict=True))
            leaves = [given[name].requires_grad_() for name in self.gradient]
            try:
                result = each(*given.values())
            except RuntimeError:  # NumPy gets no values of a tensor that carries a gradient
                result = None
            if not torch.is_tensor(result) or not result.requires_grad:
                raise Wrong(NO_GRADIENT)
            # Another factor for each number, so that two that are swapped get noticed.
            factors = torch.linspace(1.0, 2.0, result.numel()).reshape(result.shape)
            (result * factors).sum().backward()
            found.append([np.zeros(0) if one.grad is None else one.grad.numpy() for one in leaves])
        if not all(map(same, *found)):
            raise Wrong(WRONG_GRADIENT)

    @property
    def names(self) -> list[str]:
        """The arguments of the function that is tried, as the page names them."""
        return list(signature(self.tried(self.right)).parameters)[: len(self.cases[0])]

    def described(self, case: tuple[Any, ...]) -> str:
        if self.words:
            return self.words(*case)
        pairs = zip(self.names, case, strict=True)
        return ", ".join(f"{name} = {shown(value)}" for name, value in pairs)


EXERCISES: dict[str, Exercise] = {}


def check(name: str, answer: object) -> bool:
    """Print whether the answer to an exercise is right; return True if it is, False if not.

    Never raises because of the answer, so that a notebook runs to its end while it is unsolved.

    Args:
        name: the exercise, such as "01.2".
        answer: a value or a function; `...` (or a function that returns it) counts as unsolved.

    Raises:
        ValueError: no exercise has this name.
    """
    exercise = find_exercise(name)
    try:
        if is_stub(answer):
            raise Unsolved
        # What is said is clearer than NumPy's warnings about the same.
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            mistake = exercise.examine(answer)
    except Unsolved:
        where = "Put your answer in place of the dots and run the cell again."
        print(f"○ {name}: not solved yet. {where}")
        return False
    except Wrong as wrong:
        mistake = str(wrong)
    except Exception as error:  # noqa: BLE001  (an answer may be an object that does anything)
        mistake = f"the check cannot read this answer ({type(error).__name__}: {error})."
    print(f"✓ {name}: right." if mistake is None else f"✗ {name}: {mistake}")
    return mistake is None


def find_exercise(name: str) -> Exercise:
    """An exercise by its name; imports those of its notebook on first use."""
    number = re.match(r"\d\d(?=\.)", name)
    module = f"per_tutorial.notebook.exercises.notebook_{number[0]}" if number else ""
    if module and find_spec(module):
        import_module(module)
    if name not in EXERCISES:
        raise ValueError(f"name: must be an exercise such as '01.2', got {name!r}")
    return EXERCISES[name]


# Reading an answer ------------------------------------------------------------------------------


def is_stub(value: object) -> bool:
    """Whether this is a stub's `...` or NotImplemented, alone or in a tuple or list."""
    several = value if isinstance(value, tuple | list) else (value,)
    return any(each is ... or each is NotImplemented for each in several)


def numbers(value: Any) -> NDArray[Any]:
    """The numbers in a list, a tuple, an array, a tensor or a number; raises `Wrong` otherwise."""
    if isinstance(value, Iterator):
        kind = type(value).__name__
        raise Wrong(f"that is a {kind}, which can be read only once: make a list of it, `list(…)`.")
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    elif isinstance(value, list | tuple):
        value = [numbers(each) for each in value]
    try:
        array = np.asarray(value)
    except ValueError:
        raise Wrong("the rows have different lengths, so they do not form an array.") from None
    if array.dtype.kind not in "biuf":
        raise Wrong(f"numbers are asked for, not {shown(value)}.")
    return array


def unchanged(before: Any, after: Any) -> bool:
    """Whether an argument is still the same: type, shape and values."""
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(map(unchanged, before, after))
    return type(before) is type(after) and np.array_equal(numbers(before), numbers(after))


# Comparing and showing ----------------------------------------------------------------------------


def same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two results are equal up to the rounding of the type they come in."""
    coarse = np.float32 in (a.dtype, b.dtype)
    rtol, atol = (1e-5, 1e-6) if coarse else (1e-9, 1e-12)
    return a.shape == b.shape and np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)


def agree(some: list[list[NDArray[Any]]], others: list[list[NDArray[Any]]]) -> bool:
    """Whether two functions return the same in all cases."""
    pairs = zip(some, others, strict=True)
    return all(len(one) == len(other) and all(map(same, one, other)) for one, other in pairs)


def unlike(name: str, got: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """A sentence about a shape that is not the expected one."""
    sentence = f"{name}: got the shape {got}, expected {expected}."
    if len(expected) == 1 and got in (expected * 2, (*expected, 1)):
        sentence += (
            " Where a column (B, 1) meets (B,), broadcasting makes a table (B, B) without an "
            "error: bring both to one shape first."
        )
    return sentence


def shown(value: Any, digits: int = 4) -> str:
    """A value on one line, with this many significant digits and at most twelve items."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        some = [shown(each, digits) for each in value[:12]] + ["…"] * (len(value) > 12)
        return f"[{', '.join(some)}]"
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        return f"{value:.0f}" if whole else f"{value:.{digits}g}"
    return repr(value)[:100]


def told_apart(should: NDArray[Any], does: NDArray[Any]) -> tuple[str, str]:
    """Two different values, with enough digits to show the difference."""
    for digits in range(4, 18):
        texts = shown(should, digits), shown(does, digits)
        if texts[0] != texts[1]:
            break
    return texts
