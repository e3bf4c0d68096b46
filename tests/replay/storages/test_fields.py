"""What the ring storages share: numbers and slots, and what a field must be."""

import numpy as np
import pytest
import torch

from per_tutorial.replay.storages.fields import as_field, as_shape

# ---------------------------------------------------------------- fields

PICTURE = np.dtype((np.uint8, (2, 3)))


@pytest.mark.parametrize(
    ("values", "dtype", "error", "said"),
    [
        ([300], np.int8, ValueError, r"must be in \[-128, 127\] \(int8\), got 300 to 300"),
        ([-1], np.uint8, ValueError, r"must be in \[0, 255\] \(uint8\), got -1 to -1"),
        (np.array([2**63], np.uint64), np.int64, ValueError, r"\(int64\), got 9223372036854775808"),
        ([2**63], np.int64, ValueError, r"\(int64\), got 9223372036854775808"),
        ([-1], np.uint64, ValueError, r"must be in \[0, 18446744073709551615\] \(uint64\), got -1"),
        ([2**70], np.int64, TypeError, "must be int64, got object"),
        ([0.5], np.int64, TypeError, "must be int64, got float64"),
        ([1j], np.float32, TypeError, "must be float32, got complex128"),
        (["1"], np.float32, TypeError, "must be float32, got <U1"),
        ([None], np.float32, TypeError, "must be float32, got object"),
        ([2], np.bool_, ValueError, "must be True or False"),
        ([[1]], np.int64, ValueError, r"must have the shape \(1,\) with runs = 1, got \(1, 1\)"),
        (np.ma.masked_array([1], [True]), np.int64, ValueError, "must have no masked entries"),
    ],
)
def test_a_field_that_would_become_something_else_is_refused(values, dtype, error, said):
    with pytest.raises(error, match=f"^name: .*{said}"):
        as_field("name", values, np.dtype(dtype), runs=1)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.array([127], np.uint64), np.int8),
        (np.array([255], np.uint16), np.uint8),
        (np.array([2**63 - 1], np.uint64), np.int64),
        ([True], np.int64),
        ([1.0], np.bool_),
        ([0], np.bool_),
        ([3], np.float32),
        (np.array([0.1]), np.float32),
        (torch.tensor([0.5], requires_grad=True), np.float32),
        (np.ma.masked_array([4], [False]), np.int64),
    ],
)
def test_a_field_that_fits_is_taken_as_it_is(values, dtype):
    taken = as_field("name", values, np.dtype(dtype), runs=1)
    values = values.detach().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    np.testing.assert_array_equal(taken.astype(dtype), values.astype(dtype))


def test_a_field_has_the_axes_asked_for_and_then_its_own():
    values = np.zeros((2, 5, 2, 3), dtype=np.uint8)
    assert as_field("name", values, PICTURE, runs=2, environments=5) is values
    said = r"must have the shape \(2, 4, 2, 3\) with runs = 2, environments = 4, got \(2, 5, 2, 3\)"
    with pytest.raises(ValueError, match=f"name: {said}"):
        as_field("name", values, PICTURE, runs=2, environments=4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39, -1e39])
@pytest.mark.parametrize("runs", [1, 3])
def test_rewards_are_finite_also_in_float32(bad, runs):
    rewards = np.zeros(runs)
    rewards[-1] = bad
    with pytest.raises(ValueError, match="reward: must be finite"):
        as_field("reward", rewards, np.dtype(np.float32), runs=runs)
    largest = np.full(runs, np.finfo(np.float32).max)
    assert as_field("reward", largest, np.dtype(np.float32), runs=runs) is largest


def test_a_number_is_a_shape_of_one_axis():
    assert as_shape("name", 3) == (3,) == as_shape("name", [3])
    assert as_shape("name", ()) == ()
    with pytest.raises(ValueError, match="name: must be at least 1, got 0"):
        as_shape("name", (2, 0))
