"""What an exercise is: a right answer, inputs, and mistakes with their hints. The rest is here."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from per_tutorial.notebook.checking.answers import (
    Case,
    Give,
    Hint,
    Stopped,
    a_copy,
    cases_of,
    like,
    number,
    numbers,
    part,
    plain,
)
from per_tutorial.notebook.checking.comparing import (
    Function,
    Row,
    Tell,
    compare,
    one_by_one,
    remembers,
)

Checker = Callable[[Any], str | None]  # an answer → None if it is right, else the likely mistake

CHECKERS: dict[str, Checker] = {}

TWO_ANSWERS = (
    "asked for the same again it gives another answer: it remembers the calls before, or chance "
    "takes part in it."
)
AN_INDEX = (
    "iu",
    "the right numbers, but as {}: what counts places must be an int, as `//` makes it.",
)


@dataclass(frozen=True, kw_only=True)
class Part:
    """What is known about one result of a function.

    Args:
        mistakes: rows of wrong answers with the hint that they share. A wrong answer is a function,
            or a dictionary of keyword arguments: other steps of the right function.
        name: what it is, if the function returns several that are compared one after the other.
        intro: what is said before a hint about it.
        names: what several numbers are that are compared together.
        forms: (all that was returned, what is right) → a hint about its form, or None.
        reads: (a result, what is right) → its numbers.
        dtype: the kinds (letters of NumPy) or the name of its dtype, and a hint about another.
        exact: whether it must not be rounded to float32.
        told: (case, result) → a sentence about a wrong one, before the mistakes are tried.
        otherwise: (case, result, results of all cases) → one if no mistake explains it.
    """

    mistakes: Sequence[Row] = ()
    name: str = ""
    intro: str = ""
    names: Sequence[str] = ()
    forms: Callable[[Any, Any], str | None] = lambda result, right: None
    reads: Callable[[Any, Any], Any] = like
    dtype: tuple[str, str] | None = None
    exact: bool = False
    told: Tell = lambda case, got: None
    otherwise: Tell = lambda case, got, results: None


@dataclass(frozen=True, kw_only=True)
class FunctionExercise:
    """An exercise that asks for a function; `function_exercise` says what its fields are."""

    right: Function
    cases: Sequence[Case]
    larger: Sequence[Case]
    parts: Sequence[Part]
    later: Sequence[tuple[Sequence[Case], str]]
    trained: Sequence[str]
    give: Give
    asked_twice: tuple[Sequence[Case], str]
    before: Checker
    after: Checker
    wraps: Function

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
        """The same with inputs of one kind."""
        original, answer = answer, self.wraps(answer)
        repeated, sentence = self.asked_twice
        if repeated and remembers(answer, repeated, give):
            return sentence
        if mistake := self.before(answer) or self.compared(answer, self.cases, self.larger, give):
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
        return TWO_ANSWERS if remembers(answer, self.cases[:3], give) else None

    def compared(
        self,
        answer: Any,
        cases: Sequence[Case],
        larger: Sequence[Case],
        give: Give,
        *,
        known: bool = True,
    ) -> str | None:
        """What is wrong with the first part that is, its known mistakes tried or not."""
        names = [each.name for each in self.parts]
        for place, each in enumerate(self.parts):
            dtypes: list[np.dtype] = []

            def right(*given: Any, place: int = place, **steps: Any) -> Any:
                results = self.right(*given, **steps)
                return results[place] if len(names) > 1 else results

            def read(
                result: Any,
                expected: Any,
                place: int = place,
                each: Part = each,
                dtypes: list[np.dtype] = dtypes,
            ) -> Any:
                if hint := each.forms(result, expected):
                    raise Hint(hint)
                if len(names) > 1:
                    result = part(result, place, names, expected)
                if each.names:
                    some = [part(result, k, each.names) for k in range(len(each.names))]
                    return np.array(
                        [each.reads(*pair) for pair in zip(some, expected, strict=True)]
                    )
                    pairs = zip(result, expected, strict=True)
                    got = np.array([each.reads(*pair) for pair in pairs])
                else:
                    got = each.reads(result, expected)
                dtypes.append(np.asarray(plain(result)).dtype)
                return got

            mistake = compare(
                answer,
                right,
                cases,
                list(one_by_one(each.mistakes, right)) if known else [],
                larger=larger,
                give=give,
                read=read,
                exact=each.exact,
                told=each.told,
                otherwise=each.otherwise,
            )
            if mistake:
                return each.intro + mistake if known else mistake
            if each.dtype:
                allowed, hint = each.dtype
                for dtype in dtypes:
                    if dtype.kind not in allowed and dtype != allowed:
                        return hint.format(dtype)
        return None


def function_exercise(
    name: str,
    right: Function,
    arguments: str,
    inputs: Iterable[Iterable[Any]],
    mistakes: Sequence[Row] = (),
    *,
    larger: Iterable[Iterable[Any]] = (),
    parts: Sequence[Part] = (),
    later: Sequence[tuple[Iterable[Iterable[Any]], str]] = (),
    trained: Sequence[str] = (),
    give: Give = a_copy,
    asked_twice: tuple[Iterable[Iterable[Any]], str] = ((), ""),
    before: Checker = lambda answer: None,
    after: Checker = lambda answer: None,
    wraps: Function = lambda answer: answer,
    **part_of_one: Any,
) -> None:
    """Declare an exercise that asks for a function.

    Args:
        name: the notebook's number and its own, such as "01.2".
        right: the right function. What mistakes replace are keyword arguments with a default.
        arguments: the names of the arguments, as in the notebook.
        inputs: values for the arguments, a row for each call. They should tell the mistakes apart.
        mistakes: as in `Part`; its other fields may be given as well.
        larger: more inputs, for answers that are right only as long as the numbers are small.
        parts: instead of mistakes, the several results that the function returns.
        later: inputs that are tried when all others are right, and a sentence for who fails there;
            {} is what went wrong.
        trained: tensors through which a gradient must flow back.
        give: makes the arguments that the answer gets.
        asked_twice: inputs, and a sentence about answers that change when they are given again.
        before: what else is looked at first, given the answer.
        after: what else is looked at when all results are right.
        wraps: makes a function that can be compared, if the answer does more than return a result.
    """
    CHECKERS[name] = FunctionExercise(
        right=right,
        cases=cases_of(arguments, inputs),
        larger=cases_of(arguments, larger),
        parts=parts or [Part(mistakes=mistakes, **part_of_one)],
        later=[(cases_of(arguments, rows), sentence) for rows, sentence in later],
        trained=trained,
        give=give,
        asked_twice=(cases_of(arguments, asked_twice[0]), asked_twice[1]),
        before=before,
        after=after,
        wraps=wraps,
    )


@dataclass(frozen=True, kw_only=True)
class ValueExercise:
    """An exercise that asks for a value; `value_exercise` says what its fields are."""

    right: Any
    mistakes: Sequence[Row]
    otherwise: Callable[[Any], str]
    rtol: float

    def __call__(self, answer: Any) -> str | None:
        """None for a right answer, else the likely mistake."""
        got = numbers(answer) if np.ndim(self.right) else number(answer)
        for value, sentence in [(self.right, None), *one_by_one(self.mistakes)]:
            if np.shape(value) == np.shape(got) and np.allclose(got, value, self.rtol, atol=0):
                return sentence
        return self.otherwise(got)


def value_exercise(
    name: str,
    right: Any,
    mistakes: Sequence[Row],
    otherwise: Callable[[Any], str],
    *,
    rtol: float = 1e-9,
) -> None:
    """Declare an exercise that asks for a number or a list of numbers.

    Args:
        name: the notebook's number and its own, such as "01.5".
        right: the right value.
        mistakes: rows of wrong values with the hint that they share.
        otherwise: what is said about any other value.
        rtol: by which share of the right value an answer may be off.
    """
    CHECKERS[name] = ValueExercise(right=right, mistakes=mistakes, otherwise=otherwise, rtol=rtol)
