"""Declares and examines exercises: a right answer, inputs, and mistakes with their hints."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.notebook.checking.answers import (
    Case,
    Give,
    Hint,
    Stopped,
    a_copy,
    ask,
    cases_of,
    number,
    numbers,
    part,
)
from per_tutorial.notebook.checking.comparing import (
    Function,
    Part,
    Row,
    compare,
    one_by_one,
    remembers,
)

Array = NDArray[np.float64]
Rows = Iterable[Iterable[Any]]  # values of the arguments, a row for each call
Checker = Callable[[Any], str | None]  # an answer → None if it is right, else the likely mistake

CHECKERS: dict[str, Checker] = {}

TWO_ANSWERS = (
    "the same call returns a different answer the second time: it depends on earlier calls or on "
    "chance."
)
AN_INDEX = (
    "iu",
    "the right numbers, but as {}: an index must be an int, as `//` returns it.",
)


@dataclass(frozen=True, kw_only=True)
class FunctionExercise(Part):
    """An exercise that asks for a function with one result or several parts.

    Args:
        right: the right function; mistakes replace its keyword arguments.
        cases: the arguments of each call. They should tell the mistakes apart.
        larger: more cases, for answers that are right only for small inputs.
        parts: its results if there are several, each with its mistakes.
        later: cases that are tried when all others are right, and a hint if they fail; {} is what
            went wrong.
        trained: names of the tensors through which a gradient must flow back.
        give: makes the arguments that the answer gets.
        asked_twice: cases, and a hint about answers that change when they are repeated; for a
            function with one result.
        after: a last check when all results are right.
        calls: (answer, *arguments) → what is compared, if that is not simply what is returned.
    """

    right: Function
    cases: Sequence[Case]
    larger: Sequence[Case]
    parts: Sequence[Part] = ()
    later: Sequence[tuple[Sequence[Case], str]]
    trained: Sequence[str] = ()
    give: Give = a_copy
    asked_twice: tuple[Sequence[Case], str]
    after: Checker = lambda answer: None
    calls: Function | None = None

    def __call__(self, answer: Any) -> str | None:
        """None for a right answer, else the likely mistake."""
        if self.trained:
            from per_tutorial.notebook.checking.tensors import tensors

            return self.examine(answer, tensors(self.trained))
        try:
            return self.examine(answer, self.give)
        except Stopped:
            if "torch" not in sys.modules:
                raise
            from per_tutorial.notebook.checking.tensors import of_the_other_kind

            # It may want tensors where it was given arrays, or the other way round.
            try:
                return self.examine(answer, of_the_other_kind)
            except Hint:
                pass
            raise

    def examine(self, answer: Any, give: Give) -> str | None:
        """The same with inputs of one kind, arrays or tensors."""
        original, answer = answer, self.called(answer)
        repeated, sentence = self.asked_twice
        if repeated and remembers(answer, repeated, give):
            return sentence
        if mistake := self.compared(answer, self.cases, self.larger, give):
            return mistake
        for case in self.cases if self.trained else ():
            from per_tutorial.notebook.checking.tensors import check_gradient

            check_gradient(answer, self.right, case, self.trained)
        for more, sentence in self.later:
            try:
                later = self.compared(answer, more, (), give, known=False)
            except Hint as hint:
                later = str(hint)
            if later:
                return sentence.format(later)
        if mistake := self.after(original):
            return mistake
        # They were right a moment ago.
        again = [*self.cases[:3], *self.cases[:3]]
        return TWO_ANSWERS if self.compared(answer, again, (), give, known=False) else None

    def called(self, answer: Any) -> Any:
        """The function whose results are compared."""
        if self.calls is None or not callable(answer):
            return answer
        return wraps(answer)(partial(self.calls, answer))

    def compared(
        self,
        answer: Any,
        cases: Sequence[Case],
        larger: Sequence[Case],
        give: Give,
        *,
        known: bool = True,
    ) -> str | None:
        """The hint about the first wrong part, with or without its known mistakes, or None."""
        for index, each in enumerate(self.each_part):
            mistake = compare(
                answer,
                partial(self.right_part, index),
                cases,
                each,
                larger=larger,
                give=give,
                read=partial(self.read_part, index),
                known=known,
            )
            if mistake:
                return each.intro + mistake if known else mistake
            for case in cases if each.dtype else ():
                if mistake := each.wrong_dtype(self.part_of(index, ask(answer, case, give))):
                    return mistake
        return None

    @property
    def each_part(self) -> Sequence[Part]:
        """The results that are compared one after the other."""
        return self.parts or [self]

    def part_of(self, index: int, result: Any, right: Any = None) -> Any:
        """One of several results, or the only one."""
        names = [each.name for each in self.parts]
        return part(result, index, names, right) if names else result

    def right_part(self, index: int, *given: Any, **steps: Any) -> Any:
        """One result of the right function, by default or with other ``steps``."""
        return self.part_of(index, self.right(*given, **steps))

    def read_part(self, index: int, result: Any, right: Any) -> Any:
        """The numbers of one result."""
        if hint := self.each_part[index].forms(result, right):
            raise Hint(hint)
        return self.each_part[index].read(self.part_of(index, result, right), right)


def function_exercise(
    name: str,
    right: Function,
    arguments: str,
    inputs: Rows,
    mistakes: Sequence[Row] = (),
    *,
    larger: Rows = (),
    later: Sequence[tuple[Rows, str]] = (),
    asked_twice: tuple[Rows, str] = ((), ""),
    **fields: Any,
) -> None:
    """Declare an exercise that asks for a function.

    Args:
        name: the notebook's number and its own, such as "01.2".
        right, mistakes, larger, later, asked_twice, fields: as in `FunctionExercise` and `Part`.
        arguments: the names of the arguments, as in the notebook.
        inputs: a row of argument values for each call, here and wherever a field holds cases.
    """
    CHECKERS[name] = FunctionExercise(
        right=right,
        cases=cases_of(arguments, inputs),
        mistakes=mistakes,
        larger=cases_of(arguments, larger),
        later=[(cases_of(arguments, rows), sentence) for rows, sentence in later],
        asked_twice=(cases_of(arguments, asked_twice[0]), asked_twice[1]),
        **fields,
    )


@dataclass(frozen=True)
class ValueExercise:
    """An exercise that asks for a number or a list of numbers.

    Args:
        right: the right value.
        mistakes: rows of wrong values with the hint that they share.
        otherwise: what is said about any other value.
    """

    right: Any
    mistakes: Sequence[Row]
    otherwise: Callable[[Any], str]

    def __call__(self, answer: Any) -> str | None:
        """None for a right answer, else the likely mistake."""
        got = numbers(answer) if np.ndim(self.right) else number(answer)
        for value, sentence in [(self.right, None), *one_by_one(self.mistakes)]:
            if np.shape(value) == np.shape(got) and np.allclose(got, value, rtol=1e-9, atol=0):
                return sentence
        return self.otherwise(got)
