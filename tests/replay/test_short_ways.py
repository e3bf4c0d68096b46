"""The short ways of adding and drawing leave and return, to the bit, what the long ways do."""

from copy import deepcopy

import numpy as np
import pytest
from numba import njit
from replay_helpers import KINDS, bits

from per_tutorial.replay import (
    FrameStorage,
    LapSampler,
    ProportionalSampler,
    RankBasedSampler,
    Replay,
    TransitionStorage,
    UniformSampler,
)
from per_tutorial.replay.contracts import has_short_way
from per_tutorial.replay.copying import copy_bytes
from per_tutorial.replay.storages import transitions

SAMPLERS = [UniformSampler, ProportionalSampler, RankBasedSampler, LapSampler]
ROWS = {
    "floats": {"observation_shape": (4,)},
    "pictures": {"observation_shape": (2, 3, 5), "observation_dtype": np.uint8},
    "moves": {"observation_shape": 3, "action_shape": 2, "action_dtype": np.float32},
    "small actions": {"observation_shape": (), "action_dtype": np.int16},
}
CAPACITY = 7


def columns_of(storage, count, seed=0):
    """Random fields of the very types that are kept, (count, runs, ...)."""
    random, dtype = np.random.default_rng(seed), storage.rows.dtype
    return [
        random.integers(0, 2 if dtype[name].base.kind == "b" else 100, (count, storage.runs) + dtype[name].shape)
        .astype(dtype[name].base)
        for name in dtype.names
    ]  # fmt: skip


def pair(rows, sampler, runs, n_step=1):
    """A buffer, and one that always goes the long way."""
    storage = TransitionStorage(CAPACITY, runs=runs or 1, n_step=n_step, **ROWS[rows])
    buffer = Replay(storage, sampler(CAPACITY, list(range(runs or 1))), runs)
    assert buffer._puts and buffer._draws
    other = deepcopy(buffer)
    other._puts = other._draws = False
    return buffer, other


def assert_alike(buffer, other):
    assert bits(buffer) == bits(other)
    if len(buffer):
        one, two = buffer.sample(1), other.sample(1)
        for field, expected in zip(one, two, strict=True):
            assert field.dtype == expected.dtype
            np.testing.assert_array_equal(field, expected)
        for each in (buffer, other):
            each.update_priorities(one.indices, np.sin(one.indices + 1.0))


@pytest.fixture
def taken(monkeypatch):
    """How often the compiled calls of the short ways ran."""
    calls = []
    for name in ("put_rows", "put_columns", "locate_rows"):
        compiled = getattr(transitions, name)

        def counted(*arguments, name=name, compiled=compiled):
            calls.append(name)
            return compiled(*arguments)

        monkeypatch.setattr(transitions, name, counted)
    return calls


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("runs", [None, 1, 3])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_adding_one_by_one(rows, runs, sampler, taken):
    buffer, other = pair(rows, sampler, runs)
    for count, fields in enumerate(zip(*columns_of(buffer.storage, 17), strict=True)):
        fields = [each[0] for each in fields] if runs is None else fields
        for each in (buffer, other):
            each.add(*fields)
        assert taken.count("put_rows") == count + 1
        assert_alike(buffer, other)
    assert taken.count("locate_rows") == 17


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("runs", [None, 1, 3])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_adding_many(rows, runs, sampler, taken):
    buffer, other = pair(rows, sampler, runs, n_step=2)
    for count in (1, 3, CAPACITY, 2 * CAPACITY + 3):
        columns = [each.swapaxes(0, 1) for each in columns_of(buffer.storage, count, count)]
        columns = [each[0] for each in columns] if runs is None else columns
        for each in (buffer, other):
            each.extend(*columns)
        assert_alike(buffer, other)
    assert taken.count("put_columns") == 4


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_runs_that_have_nothing_to_add(sampler, taken):
    buffer, other = pair("floats", sampler, 3)
    chances = np.random.default_rng(5)
    for fields in zip(*columns_of(buffer.storage, 20), strict=True):
        valid = chances.random(3) < 0.6
        for each in (buffer, other):
            each.add(*fields, valid=valid)
        assert_alike(buffer, other)
    assert taken.count("put_rows") == 20


def test_numbers_may_be_pythons_or_numpys_and_rewards_double_precision(taken):
    buffer, other = pair("floats", ProportionalSampler, None)
    observation = np.arange(4, dtype=np.float32)
    for numbers in [
        (1, 0.1, True),
        (np.int64(2), np.float64(0.1), np.False_),
        (np.array(3), np.array(0.1), np.array(True)),
    ]:
        for each in (buffer, other):
            action, reward, terminated = numbers
            each.add(observation, action, reward, observation, terminated)
        assert_alike(buffer, other)
    assert taken.count("put_rows") == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"observation": [0.0, 1.0, 2.0, 3.0]},
        {"observation": np.arange(4.0)},
        {"observation": np.arange(4)[::-1].astype(np.uint8)},
        {"action": np.int8(3)},
        {"action": np.array(3, dtype=np.uint16)},
        {"reward": 2},
        {"terminated": 1},
        {"truncated": np.array(1.0)},
    ],
)
def test_what_must_be_converted_goes_the_long_way(changed, taken):
    buffer, other = pair("floats", ProportionalSampler, None)
    observation = np.arange(4, dtype=np.float32)
    row = {"observation": observation, "action": 1, "reward": 0.5, "next_observation": observation}
    for each in (buffer, other):
        each.add(**row | {"terminated": False} | changed)
    assert "put_rows" not in taken
    assert_alike(buffer, other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"action": 2**63}, (TypeError, ValueError)),
        ({"reward": float("nan")}, ValueError),
        ({"reward": np.float32("inf")}, ValueError),
        ({"reward": 1e39}, ValueError),
        ({"observation": np.zeros((1, 4), np.float32)}, ValueError),
        ({"action": np.zeros(1, int)}, ValueError),
    ],
)
def test_errors_are_those_of_the_long_way_and_change_nothing(kind, changed, error):
    buffer = kind(5, 4, seed=0)
    observation = np.ones(4, dtype=np.float32)
    row = {"observation": observation, "action": 1, "reward": 0.5, "next_observation": observation}
    buffer.add(**row, terminated=False)
    before = bits(buffer)
    with pytest.raises(error, match=f"^{next(iter(changed))}: "):
        buffer.add(**row | changed, terminated=False)
    assert bits(buffer) == before


def test_what_is_kept_is_no_argument():
    buffer = pair("floats", ProportionalSampler, None)[0]
    observation = np.ones(4, dtype=np.float32)
    buffer.add(observation, 1, 0.5, observation, False)
    buffer.extend(
        observation[None], np.array([1]), np.array([0.5]), observation[None], np.array([False])
    )
    before = bits(buffer)
    observation[:] = 7
    assert bits(buffer) == before


class OtherRows(TransitionStorage):
    def commit(self, write):
        super().commit(write._replace(rows=np.zeros_like(write.rows)))


class OtherWindows(TransitionStorage):
    def windows(self, slots):
        rows, steps = super().windows(slots)
        rows["reward"] = 7
        return rows, steps


class OtherPut(OtherRows):
    def put(self, *arguments):
        return False


class OtherBuffer(Replay):
    def _write(self, write, transition):
        self.written = transition
        super()._write(write, transition)


def test_what_a_subclass_overrides_is_not_passed_by():
    observation = np.ones(4, dtype=np.float32)
    for storage, buffer, reward in [
        (OtherRows, Replay, 0), (OtherWindows, Replay, 7), (OtherPut, Replay, 0), (TransitionStorage, OtherBuffer, 0.5),
    ]:  # fmt: skip
        replay = buffer(storage(5, 4), UniformSampler(5, [0]))
        replay.add(observation, 1, 0.5, observation, False)
        assert replay.sample(1).rewards == reward
    assert replay.written.reward == 0.5


def test_who_has_a_short_way():
    long_way = ("prepare", "commit")
    assert has_short_way(TransitionStorage(5, 4), "put", *long_way)
    assert has_short_way(OtherWindows(5, 4), "put", *long_way)
    assert has_short_way(OtherPut(5, 4), "put", *long_way)
    assert not has_short_way(OtherRows(5, 4), "put", *long_way)
    assert not has_short_way(FrameStorage(5, (2, 3)), "put", *long_way)


def test_bytes_are_copied_and_nothing_beside_them():
    for copy in (copy_bytes, njit(lambda *arguments: copy_bytes(*arguments))):
        source, target = np.arange(40, dtype=np.uint8), np.full(40, 99, dtype=np.uint8)
        for start, target_start, count in [(0, 0, 0), (3, 5, 1), (7, 20, 17)]:
            expected = target.copy()
            expected[target_start : target_start + count] = source[start : start + count]
            copy(source, start, target, target_start, count)
            np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("environments", [1, 2])
def test_frames_without_truncated_are_truncated_nowhere(environments):
    storage = FrameStorage(6, (2, 3), environments=environments)
    replay = Replay(storage, ProportionalSampler(6, seeds=[0]))
    black = np.zeros((environments, 2, 3), dtype=np.uint8)  # and so it stays
    for _ in range(2):
        replay.add(black, [1] * environments, [0.5] * environments, black, [False] * environments)
    assert len(replay) == 2 * environments and not storage.rows["truncated"].any()
