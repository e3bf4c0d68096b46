"""Comparing an answer with the right one, over cases that tell the known mistakes apart."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from per_tutorial.notebook.checking.answers import (
    Case,
    Give,
    Hint,
    a_copy,
    ask,
    described,
    identical,
    like,
    number,
    numbers,
    same,
    shown,
    told_apart,
)

Function = Callable[..., Any]
Mistake = tuple[Function, str]  # a wrong answer, and the sentence about it


def compare(
    answer: Any,
    right: Function,
    cases: Sequence[Case],
    mistakes: Sequence[Mistake],
    *,
    give: Give = a_copy,
    read: Callable[[Any, Any], Any] = like,
    otherwise: Callable[[Case, Any], str | None] = lambda case, got: None,
) -> str | None:
    """None if a function returns what the right one does in all cases, or else the likely mistake.

    A known mistake explains an answer if it returns the same in every case, also in those in which
    it happens to be right. Two mistakes that coincide in one case are thus told apart by another.
    If there is none, one that explains all the wrong results is told.

    Args:
        answer: the reader's function.
        right: the right function.
        cases: the arguments of each call. Two cases that differ in one argument alone find out
            whether the answer uses it.
        mistakes: wrong functions, each with the sentence about it; the first that fits is told.
        give: makes the arguments that the answer gets.
        read: takes what the answer returned and what is right, and returns what can be compared.
        otherwise: a sentence about a wrong result that no known mistake explains, given the case
            and the result.
    """
    expected = [right(*case.values()) for case in cases]
    got: list[Any] = []
    stopped: Hint | None = None
    for case, value in zip(cases, expected, strict=True):
        try:
            got.append(read(ask(answer, case, give), value))
        except Hint as hint:
            stopped = hint
            break
    expected = [numbers(value) for value in expected]
    wrong = [k for k, value in enumerate(got) if not same(value, expected[k])]
    if not wrong:
        if stopped:
            raise stopped
        return None

    def explains(mistake: Function, places: Sequence[int]) -> bool:
        return all(same(got[k], outcome(mistake, cases[k])) for k in places)

    for mistake, sentence in mistakes:
        if explains(mistake, range(len(got))):
            return sentence
    if len(got) > 1 and all(same(value, got[0]) for value in got):
        return f"your answer is always {shown(got[0])}; it should depend on the arguments."
    if name := unused_argument(cases, got, expected):
        return f"your answer does not change with `{name}`: is the argument used everywhere?"
    for mistake, sentence in mistakes:
        if len(wrong) > 1 and explains(mistake, wrong):  # one case alone may be chance
            return sentence
    first = wrong[0]
    if told := otherwise(cases[first], got[first]):
        return told
    should, does = told_apart(expected[first], got[first])
    return f"for {described(cases[first])} it should be {should}, yours is {does}."


def outcome(mistake: Function, case: Case) -> Any:
    """What a known mistake returns, or None where it stops."""
    try:
        return numbers(mistake(*case.values()))
    except Exception:  # noqa: BLE001  (an index that is out of range, for instance)
        return None


def unused_argument(cases: Sequence[Case], got: Sequence[Any], expected: Sequence[Any]) -> str:
    """The name of a number that should change the result and never does, or else ''."""
    changes: dict[str, bool] = {}
    for k in range(len(got)):
        for j in range(k):
            names = [name for name in cases[k] if not identical(cases[k][name], cases[j][name])]
            # Of a list, an answer may use a part: then two lists that differ elsewhere say nothing.
            single = len(names) == 1 and np.ndim(cases[k][names[0]]) == 0
            if single and not same(expected[j], expected[k]):
                changes[names[0]] = changes.get(names[0], False) or not same(got[j], got[k])
    return next((name for name, change in changes.items() if not change), "")


def remembers(answer: Any, cases: Sequence[Case]) -> bool:
    """Whether a function returns another number when it is asked again."""
    before = [number(ask(answer, case)) for case in cases]
    again = [0, len(cases) // 4]
    return not same([number(ask(answer, cases[k])) for k in again], [before[k] for k in again])
