"""Compares an answer with the right one, over cases that tell the known mistakes apart."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
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
    numbers,
    part,
    plain,
    same,
    shown,
    told_apart,
)

Function = Callable[..., Any]
Row = tuple[Any, ...]  # wrong answers, then the hint that they share
Tell = Callable[..., str | None]  # (a case, a wrong result, …) → a sentence about it


@dataclass(frozen=True, kw_only=True)
class Part:
    """What is known about one result of a function.

    Args:
        mistakes: rows of wrong answers with the hint that they share. A wrong answer is a function,
            or a dictionary of keyword arguments that replace steps of the right function.
        name: what it is, if the function returns several that are compared one by one.
        intro: text before a hint about it.
        names: what the results are, if several are compared together.
        forms: (all that was returned, what is right) → a hint about its form, or None.
        reads: (a result, what is right) → its numbers.
        dtype: the allowed dtype (NumPy's letters of kinds, or a name), and a hint about any other.
        exact: whether rounding to float32 makes it wrong.
        told: (case, result) → a hint about a wrong result, before the mistakes are tried.
        otherwise: (case, result, results of all cases) → a hint if no mistake explains it.
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

    def read(self, result: Any, right: Any) -> Any:
        """The numbers of a result."""
        if not self.names:
            return self.reads(result, right)
        each = [part(result, k, self.names) for k in range(len(self.names))]
        return np.array([self.reads(*pair) for pair in zip(each, right, strict=True)])

    def wrong_dtype(self, result: Any) -> str | None:
        """The hint about a wrong dtype, or None."""
        allowed, hint = self.dtype or ("", "")
        dtype = np.asarray(plain(result)).dtype
        return None if dtype.kind in allowed or dtype.name == allowed else hint.format(dtype)


def one_by_one(rows: Iterable[Row], right: Any = None) -> Iterator[tuple[Any, str]]:
    """Each wrong answer of a table with its hint; a dictionary holds keywords of the right one."""
    for *wrongs, hint in rows:
        for wrong in wrongs:
            yield (partial(right, **wrong) if isinstance(wrong, dict) else wrong), hint


def compare(
    answer: Any,
    right: Function,
    cases: Sequence[Case],
    about: Part,
    *,
    larger: Sequence[Case] = (),
    give: Give = a_copy,
    read: Callable[[Any, Any], Any] = like,
    known: bool = True,
) -> str | None:
    """None if a function returns what the right one does in all cases, else the likely mistake.

    A known mistake explains an answer if it returns the same in every case, including those where
    it is right. So another case separates two mistakes that coincide in one. If none explains all
    results, one that explains the wrong results will do.

    Args:
        answer: the reader's function.
        right: the right function.
        cases: the arguments of each call. Two cases that differ in one argument alone show whether
            the answer uses it.
        about: what is known about the result; the first of its mistakes that fits is reported.
            Integers are always compared exactly.
        larger: more cases, for answers that are right only for small inputs.
        give: makes the arguments that the answer gets.
        read: (what the answer returned, what is right) → what is compared.
        known: whether mistakes are tried.
    """
    cases = [*cases, *larger]
    expected = [right(*case.values()) for case in cases]
    exact = about.exact or all(np.asarray(value).dtype.kind in "iu" for value in expected)
    got, stopped = results_of(answer, cases, expected, give, read)
    expected = [numbers(value) for value in expected]
    wrong = [k for k, value in enumerate(got) if not same(value, expected[k], exact=exact)]
    if not wrong and stopped:
        raise stopped
    if not wrong:
        return None
    first, everywhere = wrong[0], range(len(got))
    mistakes = list(one_by_one(about.mistakes, right)) if known else []

    def explained(places: Sequence[int]) -> str:
        """The hint about the first mistake that gives the same results in these cases, or ''."""

        def explains(mistake: Function) -> bool:
            return all(same(got[k], outcome(mistake, cases[k]), exact=exact) for k in places)

        return next((sentence for mistake, sentence in mistakes if explains(mistake)), "")

    return (
        about.told(cases[first], got[first])
        or explained(everywhere)
        or always_the_same(got)
        or rounded(got, expected, exact)
        or unused_argument(cases, got, expected)
        # One wrong case may be chance, and a mistake that shows in an earlier case is another one.
        or (explained([*range(first), *wrong]) if len(wrong) > 1 else "")
        or about.otherwise(cases[first], got[first], got)
        or (
            "right as long as the inputs are small; but "
            if first >= len(cases) - len(larger)
            else ""
        )
        + "for {} it should be {}, yours is {}.".format(
            described(cases[first]), *told_apart(expected[first], got[first])
        )
    )


def results_of(
    answer: Any,
    cases: Sequence[Case],
    expected: Sequence[Any],
    give: Give,
    read: Callable[[Any, Any], Any],
) -> tuple[list[Any], Hint | None]:
    """What a function returns in these cases, and the hint that stopped it early, if any."""
    got: list[Any] = []
    for case, value in zip(cases, expected, strict=True):
        try:
            got.append(read(ask(answer, case, give), value))
        except Hint as hint:
            return got, hint
    return got, None


def outcome(mistake: Function, case: Case) -> Any:
    """What a known mistake returns, or None where it stops."""
    try:
        return numbers(mistake(*case.values()))
    except Exception:  # noqa: BLE001  (an index that is out of range, for instance)
        return None


def always_the_same(got: Sequence[Any]) -> str:
    """A sentence about results that are all the same, or else ''."""
    if len(got) > 1 and all(same(value, got[0]) for value in got):
        return f"your answer is always {shown(got[0])}; it should depend on the arguments."
    return ""


def rounded(got: Sequence[Any], expected: Sequence[Any], exact: bool) -> str:
    """A sentence about results that are right but for their digits, or else ''."""
    pairs = list(zip(got, expected, strict=False))
    ways: list[Function] = [np.floor, np.ceil, np.trunc]
    ways += [partial(np.round, decimals=digits) for digits in range(6)]
    if len(pairs) > 1 and any(
        all(same(value, way(right), exact=exact) for value, right in pairs) for way in ways
    ):
        return "right but for the rounding: do not round."
    if all(same(value, np.float32(right), exact=True) for value, right in pairs):
        return "right but for the rounding: float32 has seven digits, float64 has sixteen."
    return ""


def unused_argument(cases: Sequence[Case], got: Sequence[Any], expected: Sequence[Any]) -> str:
    """A sentence about a number that should change the result but never does, or else ''."""
    changes: dict[str, bool] = {}
    for k in range(len(got)):
        for j in range(k):
            names = [name for name in cases[k] if not identical(cases[k][name], cases[j][name])]
            # Lists are left out: an answer may use only a part, and they may differ elsewhere.
            single = len(names) == 1 and np.ndim(cases[k][names[0]]) == 0
            if single and not same(expected[j], expected[k]):
                changes[names[0]] = changes.get(names[0], False) or not same(got[j], got[k])
    sentence = "your answer does not change with `{}`: is the argument used everywhere?"
    return next((sentence.format(name) for name, change in changes.items() if not change), "")


def remembers(answer: Any, cases: Sequence[Case], give: Give = a_copy) -> bool:
    """Whether a function answers differently when all these cases are repeated."""

    def results() -> list[Any]:
        return [numbers(ask(answer, case, give)) for case in cases]

    try:
        return not all(map(same, results(), results()))
    except Hint:  # something else is wrong with it
        return False
