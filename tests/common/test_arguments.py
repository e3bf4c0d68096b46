"""Checks of arguments: what passes comes back with one type; what does not is named in the
error.
"""

import math

import numpy as np
import pytest

from per_tutorial.common.arguments import (
    float_array,
    index_array,
    one_of,
    real_number,
    whole_number,
)

HUGE = 10**30


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_a_whole_number_becomes_an_int(value):
    number = whole_number("n", value)
    assert (number, type(number)) == (3, int)


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, [3], np.array(3)])
def test_what_is_no_integer_is_a_type_error(value):
    with pytest.raises(TypeError, match="^n: must be an integer, got "):
        whole_number("n", value)


def test_whole_numbers_have_bounds():
    assert whole_number("n", 1) == 1
    assert whole_number("n", 0, minimum=0) == 0
    assert whole_number("n", 2**63 - 1) == 2**63 - 1
    assert whole_number("n", HUGE, maximum=None) == HUGE
    for value, arguments, said in (
        (0, {}, "n: must be at least 1, got 0"),
        (-1, {"minimum": 0}, "n: must be at least 0, got -1"),
        (9, {"maximum": 8}, "n: must be at most 8, got 9"),
        (2**63, {}, f"n: must be at most {2**63 - 1}, got {2**63}"),
        (np.uint64(2**63), {}, f"n: must be at most {2**63 - 1}, got {2**63}"),
        (HUGE, {}, f"n: must be at most {2**63 - 1}, got {HUGE}"),
        (-HUGE, {}, f"n: must be at least 1, got -{HUGE}"),
    ):
        with pytest.raises(ValueError) as caught:
            whole_number("n", value, **arguments)
        assert str(caught.value) == said


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int16(2)])
def test_a_real_number_becomes_a_float(value):
    number = real_number("x", value)
    assert (number, type(number)) == (2.0, float)


@pytest.mark.parametrize("value", [True, "2", None, 2j, [2.0], np.array(2.0)])
def test_what_is_no_real_number_is_a_type_error(value):
    with pytest.raises(TypeError, match="^x: must be a number, got "):
        real_number("x", value)


def test_real_numbers_have_bounds():
    assert real_number("x", 0.5, 0, 1) == 0.5
    assert [real_number("x", end, 0, 1) for end in (0, 1)] == [0.0, 1.0]
    assert real_number("x", HUGE) == 1e30
    for value, arguments, said in (
        (1.5, {"low": 0, "high": 1}, "x: must be in [0, 1], got 1.5"),
        (math.nan, {"low": 0, "high": 1}, "x: must be in [0, 1], got nan"),
        (math.nan, {}, "x: must be finite, got nan"),
        (-math.inf, {}, "x: must be finite, got -inf"),
        (0, {"above": 0}, "x: must be greater than 0, got 0"),
        (math.nan, {"above": 0}, "x: must be greater than 0, got nan"),
        (math.inf, {"above": 0}, "x: must be finite, got inf"),
        (HUGE, {"low": 0, "high": 1}, f"x: must be in [0, 1], got {HUGE}"),
    ):
        with pytest.raises(ValueError) as caught:
            real_number("x", value, **arguments)
        assert str(caught.value) == said


def test_one_of_the_choices():
    assert one_of("sampler", "rank", ("uniform", "rank")) == "rank"
    assert one_of("sampler", "rank", {"rank": 1}) == "rank"
    for value in ("ran", "", None, 7, ["rank"]):
        with pytest.raises(ValueError) as caught:
            one_of("sampler", value, ("uniform", "rank"))
        assert str(caught.value) == f"sampler: must be one of 'uniform', 'rank', got {value!r}"


@pytest.mark.parametrize(
    "values", [[], [1, 2], (1, 2), np.array([1, 2], np.uint64), np.array([1, 2], np.int8)]
)
def test_indices_become_int64(values):
    array = index_array("indices", values)
    assert (array.dtype, array.tolist()) == (np.int64, list(values))


def test_int64_arrays_are_not_copied():
    indices, errors = np.arange(3), np.arange(3.0)
    assert index_array("indices", indices) is indices
    assert float_array("errors", errors) is errors


@pytest.mark.parametrize("values", [[1.0], [True], ["1"], [1, None], [2**64]])
def test_what_are_no_integers_is_a_type_error(values):
    with pytest.raises(TypeError, match="^indices: must be integers, got "):
        index_array("indices", values)


@pytest.mark.parametrize("values", [np.array([0, 2**63], np.uint64), [2**64 - 1], 2**63])
def test_integers_beyond_int64_are_refused_not_wrapped_around(values):
    with pytest.raises(ValueError, match=f"^indices: must be at most {2**63 - 1}, got [0-9]+$"):
        index_array("indices", values)


def test_numbers_become_float64():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([1.0, 2.0], requires_grad=True)
    short = tensor.to(torch.bfloat16)  # NumPy has no such type
    arrays = np.array([1, 2], np.float16), np.array([1, 2], np.uint64)
    for values in ([1, 2], *arrays, tensor, short):
        array = float_array("errors", values)
        assert (array.dtype, array.tolist()) == (np.float64, [1.0, 2.0])


@pytest.mark.parametrize("values", [[True], ["1"], [1j], [None], [HUGE]])
def test_what_are_no_real_numbers_is_a_type_error(values):
    with pytest.raises(TypeError, match="^errors: must be numbers, got "):
        float_array("errors", values)


@pytest.mark.parametrize("check", [index_array, float_array])
def test_masked_entries_are_refused(check):
    masked = np.ma.array([1, 2, 3], mask=[False, True, True])
    with pytest.raises(ValueError, match="^values: must have no masked entries, got 2$"):
        check("values", masked)
    unmasked = check("values", np.ma.array([1, 2], mask=[False, False]))
    assert (type(unmasked), unmasked.tolist()) == (np.ndarray, [1, 2])
