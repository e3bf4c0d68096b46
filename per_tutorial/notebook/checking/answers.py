"""Calls an answer and reads what it returns; whatever goes wrong becomes a `Hint`."""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Case = Mapping[str, Any]  # the arguments of one call by name, in their order
Give = Callable[[str, Any], Any]  # (an argument's name, its value) → the copy that the answer gets


def cases_of(names: str, rows: Iterable[Iterable[Any]]) -> list[Case]:
    """The arguments of several calls, from the names in one string and a row of values per call."""
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


class Hint(Exception):
    """A sentence about the mistake in an answer."""


class Stopped(Hint):
    """A function stopped with an exception."""


class Unsolved(Exception):
    """An answer is still the stub that the notebook starts with."""


def that_ends(answer: Any, *given: Any, hint: str, lines: int = 1_000_000) -> Any:
    """What an answer returns; raises a `Hint` if it runs more than ``lines`` lines of Python.

    Lines are counted, not seconds, so that slow and fast machines decide alike.
    """
    left = lines

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Hint(hint)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return answer(*given)
    finally:
        sys.settrace(before)


def is_stub(value: object) -> bool:
    """Whether this is a stub's `...` or NotImplemented, alone or in a tuple or list."""
    several = value if isinstance(value, tuple | list) else (value,)
    return any(each is ... or each is NotImplemented for each in several)


# Calling ------------------------------------------------------------------------------------------


def a_copy(name: str, value: Any) -> Any:
    return deepcopy(value)


def ask(answer: Any, case: Case, give: Give = a_copy) -> Any:
    """What a function returns for copies of these arguments, which it must not change."""
    given = {name: give(name, value) for name, value in case.items()}
    result = call(answer, given)
    for name, value in case.items():
        if not identical(given[name], give(name, value)):
            raise Hint(f"it changes `{name}`, which belongs to the caller: work on a copy.")
    return result


def call(answer: Any, arguments: Case) -> Any:
    """What a function returns for these arguments."""
    if not callable(answer):
        raise Hint("a function is asked for: give `check` its name, without calling it.")
    try:
        inspect.signature(answer).bind(*arguments.values())
    except TypeError:
        names = ", ".join(arguments)
        raise Hint(f"your function is called with ({names}): keep these arguments.") from None
    except ValueError:  # some functions written in C have no signature
        pass
    try:
        result = answer(*arguments.values())
    except Hint:  # from an argument that watches how it is used
        raise
    except Exception as error:  # noqa: BLE001  (a wrong answer may raise anything)
        if "requires grad" in str(error):
            raise Hint(
                "your function leaves torch, and the gradient would be lost on the way: use the "
                "operations of torch."
            ) from None
        raise Stopped(
            f"your function stopped with {type(error).__name__}: {error} — for "
            f"{described(arguments)}."
        ) from None
    if is_stub(result):
        raise Unsolved
    if result is None:
        raise Hint("your function returns None: does one branch lack a `return`?")
    refuse_iterators(result)
    return result


def refuse_iterators(value: Any) -> None:
    """Raise a `Hint` about an iterator, which is empty after it was read once."""
    if isinstance(value, Iterator):
        kind = type(value).__name__
        raise Hint(f"that is a {kind}, which can be read only once: make a list of it, `list(…)`.")
    if isinstance(value, list | tuple):
        for each in value:
            refuse_iterators(each)


def identical(a: Any, b: Any) -> bool:
    """Whether two arguments are the same: type, shape and values."""
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(identical, a, b))
    a, b = np.asarray(plain(a)), np.asarray(plain(b))
    return a.dtype == b.dtype and np.array_equal(a, b)


# Reading ------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Tensors as arrays, also in a list or a tuple (then a list); everything else unchanged."""
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def numbers(value: Any) -> NDArray[np.float64]:
    """The numbers in a list, a tuple, an array, a tensor or a number."""
    refuse_iterators(value)
    value = plain(value)
    if value is None:
        raise Hint("that is None, and a number is asked for.")
    if isinstance(value, Set | Mapping):
        raise Hint(f"a {type(value).__name__} has no order: return a list or an array.")
    if callable(value):
        raise Hint("that is a function, and a number is asked for: call it.")
    try:
        kind = np.asarray(value).dtype.kind
    except ValueError:
        raise Hint("the rows have different lengths, so they do not form an array.") from None
    if kind in "US":
        raise Hint(f"{shown(value)} is text: write the number without quotation marks.")
    if kind == "c":
        raise Hint(f"{shown(value)} cannot be read as numbers.")
    if kind == "b":
        raise Hint(f"{shown(value)} is not a number: return the value, not True or False.")
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise Hint(f"{value!r} cannot be read as numbers.") from None


def number(value: Any) -> float:
    """One number."""
    array = numbers(value)
    if array.shape != ():
        raise Hint(f"a single number is asked for; yours has the shape {array.shape}.")
    return float(array)


def like(result: Any, right: Any) -> NDArray[np.float64]:
    """The numbers of a result, or a `Hint` if it lacks the shape of the right one."""
    got, shape = numbers(result), tuple(np.shape(right))
    if got.shape == shape:
        return got
    if shape == ():
        raise Hint(f"a single number is asked for; yours has the shape {got.shape}.")
    if len(shape) == 1 and got.shape == (*shape, 1):
        raise Hint(
            f"the shape is {got.shape}, a column. As soon as {shape} meets it, broadcasting makes "
            f"a table of {shape * 2} without an error: return {shape}."
        )
    if len(shape) == 1 and got.shape == shape * 2:
        raise Hint(
            f"the result is a table of {got.shape}; {shape} is asked for. Where a column "
            f"{(*shape, 1)} meets {shape}, broadcasting pairs each number with all others: bring "
            "both to one shape first."
        )
    if len(shape) == 1 and got.ndim < 2:
        raise Hint(f"the result should have {shape[0]} numbers; yours has {got.size}.")
    raise Hint(f"the result should have the shape {shape}; yours has the shape {got.shape}.")


def part(result: Any, index: int, names: Sequence[str], right: Any = None) -> Any:
    """One of several results that a function should return.

    Args:
        result: what the function returned.
        index: of the one to take.
        names: what they are, in their order.
        right: the right one; its shape reveals a wrong order.
    """
    wanted = f"return {len(names)} things, {' and '.join(names)}"
    size = tuple(np.shape(plain(result))) if hasattr(result, "shape") else None
    if size not in (None, (len(names),)):
        raise Hint(f"{wanted}; yours is one array of the shape {size}.")
    try:
        parts = () if isinstance(result, str | Set | Mapping) else tuple(result)
    except TypeError:
        raise Hint(f"{wanted}; yours is one number.") from None
    if len(parts) != len(names):
        raise Hint(f"{wanted}, as a tuple; yours is {shown(result)}.")
    shapes = [np.shape(plain(each)) for each in parts]
    if right is not None and np.shape(right) in shapes and shapes[index] != np.shape(right):
        raise Hint(f"in this order, please: {', then '.join(names)}.")
    return parts[index]


# Showing ------------------------------------------------------------------------------------------


def same(a: Any, b: Any, *, exact: bool = False) -> bool:
    """Whether two results are equal up to the rounding of float32 (if exact: of float64)."""
    a, b = np.asarray(a), np.asarray(b)
    rtol, atol = (1e-12, 1e-12) if exact else (1e-5, 1e-6)
    return a.shape == b.shape and np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)


def shown(value: Any, digits: int = 4) -> str:
    """A value on one line, with this many significant digits."""
    value = plain(value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        some = [shown(each, digits) for each in value[:12]] + ["…"] * (len(value) > 12)
        return f"[{', '.join(some)}]"
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        return f"{value:.0f}" if whole else f"{value:.{digits}g}"
    return repr(value)


def told_apart(right: Any, got: Any) -> tuple[str, str]:
    """Two different values, with enough digits to show the difference."""
    for digits in range(4, 17):
        texts = shown(right, digits), shown(got, digits)
        if texts[0] != texts[1]:
            return texts
    return texts


def described(case: Case) -> str:
    """A call's arguments as text for a sentence."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in case.items())
