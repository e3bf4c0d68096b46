"""The rank sampler's heap against a naive twin; the state machine tells what is drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from per_tutorial.replay import RankBasedReplayBuffer, RankBasedSampler
from per_tutorial.replay.samplers import rank

# The heap ---------------------------------------------------------------------------------------


def assert_heap_holds(sampler, run, expected):
    """The heap of a run is a heap, its three arrays agree, and it holds {slot: key}."""
    size = sampler.sizes[run]
    keys, slots, ranks = sampler.keys[run], sampler.slots[run], sampler.ranks[run]
    positions = np.arange(2, size + 1)
    assert (keys[positions // 2] >= keys[positions]).all()
    assert (
        dict(zip(slots[1 : size + 1].tolist(), keys[1 : size + 1].tolist(), strict=True))
        == expected
    )
    assert (ranks[slots[1 : size + 1]] == np.arange(1, size + 1)).all()
    assert (ranks == 0).sum() == sampler.capacity - size
    if size:
        assert keys[1] == max(expected.values())


errors = st.floats(-100, 100) | st.sampled_from([0.0, 1.0, -1.0])
operations = st.lists(
    st.tuples(st.booleans(), st.lists(st.tuples(st.integers(-1, 12), errors), max_size=6)),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(operations, st.sampled_from([1, 5, None]))
@pytest.mark.slow
def test_the_heap_agrees_with_a_naive_twin_after_every_operation(script, sort_every):
    sampler = RankBasedSampler(13, [0, 1], sort_every=sort_every)
    twin, largest = {}, 1.0
    for adds, pairs in script:
        slots = np.array([[slot for slot, _ in pairs]] * 2, dtype=np.int64).reshape(2, -1)
        slots[1] = -1  # nothing ever happens to the other run
        if adds:
            sampler.add(slots)
            twin |= {slot: largest for slot in slots[0].tolist() if slot >= 0}
        else:
            values = np.array([[error for _, error in pairs]] * 2).reshape(2, -1)
            sampler.update(slots, values)
            for slot, error in pairs:  # of duplicates the last one counts
                if slot >= 0:
                    twin[slot] = abs(error)
                    largest = max(largest, abs(error))
        assert sampler.largest_priority.tolist() == [largest, 1.0]
        assert_heap_holds(sampler, 0, twin)
        assert_heap_holds(sampler, 1, {})


def test_full_sorts_come_at_intervals():
    sampler = RankBasedSampler(64, [0], sort_every=100)
    sampler.add(np.arange(64)[None])
    rng = np.random.default_rng(0)
    sampler.update(rng.permutation(64)[None, :35], rng.random((1, 35)))
    assert sampler.written == 99
    assert (np.diff(sampler.keys[0, 1:]) > 0).any()
    sampler.update(np.array([[3, -1]]), np.array([[0.5, 7.0]]))
    assert sampler.written == 0
    assert (np.diff(sampler.keys[0, 1:]) <= 0).all()


def test_newcomers_come_first_among_equals():
    sampler = RankBasedSampler(100, [0], sort_every=20)
    for slot in range(50):
        sampler.add(np.array([[slot]]))
        assert sampler.ranks[0, slot] == 1
        assert sampler.metrics(sampler.sizes)["priority"] == 1  # the mean of those that are stored
    largest = sampler.metrics(sampler.sizes)["largest_priority"]
    sampler.update(np.array([[0]]), np.array([[9.0]]))
    assert largest == [1] and sampler.metrics(sampler.sizes)["largest_priority"] == [9]


# What is drawn ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number, drawn", [(0.0, 1), (np.nextafter(1.0, 0.0), 7)])
def test_rounding_leads_to_no_rank_that_is_not_there(monkeypatch, number, drawn):
    monkeypatch.setattr(rank, "next_uniform", lambda states, run: number)
    ranks = np.zeros((1, 1), dtype=np.int64)
    sums = RankBasedSampler(10, [0]).sums
    rank.sample_ranks.py_func(sums, np.array([7]), None, ranks)
    assert ranks == drawn


# Bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alpha": "much"}, TypeError, "alpha: must be a number"),
        ({"normalize": "sum"}, ValueError, "normalize: must be one of 'batch', 'buffer', 'none'"),
        ({"sort_every": 0}, ValueError, "sort_every: must be at least 1, got 0"),
        ({"sort_every": 1.5}, TypeError, "sort_every: must be an integer"),
    ],
)
def test_settings_that_make_no_sense(options, error, message):
    with pytest.raises(error, match=message):
        RankBasedReplayBuffer(**{"capacity": 10, "observation_shape": 2, **options})
