"""A transition is staged as it will be kept, whatever type it comes in; what does not fit is
refused.
"""

import numpy as np
import pytest
from numba import njit
from per_tutorial.replay.intrinsics import copy_bytes
from replay_helpers import KINDS, bits

from per_tutorial.replay import ProportionalSampler, Replay, ReplayBuffer, TransitionStorage

ROWS = {
    "floats": {"observation_shape": (4,)},
    "pictures": {"observation_shape": (2, 3, 5), "observation_dtype": np.uint8},
    "moves": {"observation_shape": 3, "action_shape": 2, "action_dtype": np.float32},
    "small actions": {"observation_shape": (), "action_dtype": np.int16},
}
CAPACITY = 7


def columns_of(storage, count, seed=0):
    """Random fields of the very types that are kept, (runs, count, ...)."""
    random, dtype = np.random.default_rng(seed), storage.rows.dtype
    shape = (storage.runs, count)
    return [
        random.integers(0, 2 if dtype[name].base.kind == "b" else 100, shape + dtype[name].shape)
        .astype(dtype[name].base)
        for name in dtype.names
    ]  # fmt: skip


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("runs", [None, 1, 3])
def test_fields_of_the_types_that_are_kept_and_others_make_the_same_rows(rows, runs):
    """One by one, as lists and wide types, and many at once: the same to the bit."""
    native, converted, many = (
        Replay(
            TransitionStorage(CAPACITY, runs=runs or 1, **ROWS[rows]),
            ProportionalSampler(CAPACITY, list(range(runs or 1))),
            runs,
        )
        for _ in range(3)
    )
    for count in (1, 3, CAPACITY, 2 * CAPACITY + 3):
        columns = columns_of(native.storage, count, seed=count)
        for k in range(count):
            fields = [column[:, k] if runs else column[0, k] for column in columns]
            native.add(*fields)
            converted.add(*(np.asarray(field).tolist() for field in fields))
        many.extend(*(column if runs else column[0] for column in columns))
        assert bits(native) == bits(converted) == bits(many)


@pytest.mark.parametrize(
    "changed",
    [
        {"action": np.int64(1), "reward": np.float64(0.1), "terminated": np.False_},
        {"action": np.array(1), "reward": np.array(0.1), "terminated": np.array(False)},
        {"observation": np.arange(4.0), "action": np.int8(1), "terminated": 0},
        {"observation": np.arange(8, dtype=np.float32)[::2] / 2, "truncated": np.array(0.0)},
    ],
)
def test_a_number_may_be_pythons_or_numpys(changed):
    observation = np.arange(4, dtype=np.float32)
    row = {"observation": observation, "action": 1, "reward": 0.1, "next_observation": observation}
    one, other = ReplayBuffer(5, 4, seed=0), ReplayBuffer(5, 4, seed=0)
    one.add(**row, terminated=False)
    other.add(**{**row, "terminated": False, **changed})
    assert bits(one) == bits(other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"action": 2**63}, (TypeError, ValueError)),
        ({"reward": float("nan")}, ValueError),
        ({"reward": np.float32("inf")}, ValueError),
        ({"reward": np.array(np.nan)}, ValueError),
        ({"reward": 1e39}, ValueError),
        ({"reward": 10**400}, (TypeError, ValueError)),
        ({"observation": np.zeros((1, 4), np.float32)}, ValueError),
        ({"action": np.zeros(1, int)}, ValueError),
    ],
)
def test_what_does_not_fit_is_named_and_changes_nothing(kind, changed, error):
    buffer = kind(5, 4, seed=0)
    observation = np.ones(4, dtype=np.float32)
    row = {"observation": observation, "action": 1, "reward": 0.5, "next_observation": observation}
    buffer.add(**row, terminated=False)
    before = bits(buffer)
    with pytest.raises(error, match=f"^{next(iter(changed))}: "):
        buffer.add(**row | changed, terminated=False)
    assert bits(buffer) == before


def test_what_is_kept_is_no_argument():
    buffer = ReplayBuffer(5, 4, seed=0)
    observation = np.ones(4, dtype=np.float32)
    buffer.add(observation, 1, 0.5, observation, False)
    buffer.extend(
        observation[None], np.array([1]), np.array([0.5]), observation[None], np.array([False])
    )
    before = bits(buffer)
    observation[:] = 7
    assert bits(buffer) == before


def test_bytes_are_copied_and_nothing_beside_them():
    for copy in (copy_bytes, njit(lambda *arguments: copy_bytes(*arguments))):
        source, target = np.arange(40, dtype=np.uint8), np.full(40, 99, dtype=np.uint8)
        for start, target_start, count in [(0, 0, 0), (3, 5, 1), (7, 20, 17)]:
            expected = target.copy()
            expected[target_start : target_start + count] = source[start : start + count]
            copy(source, start, target, target_start, count)
            np.testing.assert_array_equal(target, expected)
