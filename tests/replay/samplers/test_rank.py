"""Rank-based replay against a naive twin, the formula's probabilities and bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from per_tutorial.replay import PrioritizedReplayBuffer, RankBasedReplayBuffer, RankBasedSampler
from per_tutorial.replay.samplers.rank import find_rank


def filled(capacity=100, seed=0, runs=1, **options):
    """A sampler whose slots have the TD errors 1, 2, …, one order a run, and the sizes."""
    sampler = RankBasedSampler(capacity, range(seed, seed + runs), **options)
    slots = np.tile(np.arange(capacity), (runs, 1))
    sampler.add(slots, np.full(runs, capacity))
    orders = [np.random.default_rng(seed + run).permutation(capacity) for run in range(runs)]
    sampler.update(slots, np.array(orders) + 1.0)
    for run in range(runs):
        sampler.sort(run)
    return sampler, np.full(runs, capacity)


def formula(size, alpha):
    """P(rank) for the ranks 1, …, size."""
    shares = np.arange(1, size + 1) ** -alpha
    return shares / shares.sum()


def buffer_with(count, capacity=None, **options):
    buffer = RankBasedReplayBuffer(capacity or count, (2,), seed=0, **options)
    for i in range(count):
        buffer.add(np.full(2, i, dtype=np.float32), i % 3, float(i), np.zeros(2), False)
    return buffer


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
def test_the_heap_agrees_with_a_naive_twin_after_every_operation(script, sort_every):
    sampler = RankBasedSampler(13, [0, 1], sort_every=sort_every)
    twin, largest, added = {}, 1.0, np.zeros(2, dtype=np.int64)
    for adds, pairs in script:
        slots = np.array([[slot for slot, _ in pairs]] * 2, dtype=np.int64).reshape(2, -1)
        slots[1] = -1  # nothing ever happens to the other run
        if adds:
            added[0] += (slots[0] >= 0).sum()
            sampler.add(slots, added)
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


def test_a_full_sort_makes_positions_ranks():
    sampler, _ = filled(200, runs=2, sort_every=10**9)
    rng = np.random.default_rng(0)
    for _ in range(50):
        sampler.update(rng.integers(0, 200, (2, 8)), rng.normal(size=(2, 8)))
    before = dict(zip(sampler.slots[1].tolist(), sampler.keys[1].tolist(), strict=True))
    assert (np.diff(sampler.keys[:, 1:]) > 0).any()
    sampler.sort(1)
    assert (np.diff(sampler.keys[1, 1:]) <= 0).all()
    assert (np.diff(sampler.keys[0, 1:]) > 0).any()
    del before[-1]
    assert_heap_holds(sampler, 1, before)


def test_full_sorts_come_at_intervals():
    sampler = RankBasedSampler(64, [0], sort_every=100)
    sampler.add(np.arange(64)[None], np.array([64]))
    rng = np.random.default_rng(0)
    sampler.update(rng.permutation(64)[None, :35], rng.random((1, 35)))
    assert sampler.written == 99
    assert (np.diff(sampler.keys[0, 1:]) > 0).any()
    sampler.update(np.array([[3, -1]]), np.array([[0.5, 7.0]]))
    assert sampler.written == 0
    assert (np.diff(sampler.keys[0, 1:]) <= 0).all()


def test_newcomers_come_first_among_equals():
    sampler = RankBasedSampler(100, [0])
    for slot in range(50):
        sampler.add(np.array([[slot]]), np.array([slot + 1]))
        assert sampler.ranks[0, slot] == 1


def test_newcomers_get_the_largest_priority_seen():
    buffer = buffer_with(4, capacity=8)
    buffer.update_priorities([0, 1], [-9.0, 2.0])
    buffer.update_priorities([0], [0.1])
    buffer.add(np.zeros(2), 0, 0.0, np.zeros(2), False)
    assert buffer.sampler.slots[0, 1] == 4
    assert buffer.sampler.keys[0, 1] == 9.0


def test_the_order_stays_close_to_sorted_between_sorts():
    # What the approximation costs: each share of ranks against the true mean |δ| of that share.
    sampler, _ = filled(4096, sort_every=10**9)
    rng = np.random.default_rng(1)
    for _ in range(200):
        sampler.update(rng.integers(0, 4096, (1, 32)), rng.uniform(0, 4096, (1, 32)))
    keys = sampler.keys[0, 1:]
    true_ranks = np.argsort(np.argsort(-keys))
    assert np.corrcoef(true_ranks, np.arange(4096))[0, 1] > 0.6
    assert keys[:41].mean() > 0.97 * np.sort(keys)[-41:].mean()


# What is drawn ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.7, 1.0])
@pytest.mark.parametrize(("size", "batch", "draws"), [(1, 1, 100), (7, 3, 10_000), (100, 32, 6250)])
def test_draws_follow_the_formula(alpha, size, batch, draws):
    sampler, sizes = filled(size, alpha=alpha)
    counts = np.zeros(size)
    for _ in range(draws):
        slots, _ = sampler.sample(batch, sizes, 0.5)
        counts += np.bincount(sampler.ranks[0, slots[0]] - 1, minlength=size)
    expected = formula(size, alpha) * draws * batch
    # Stratified draws scatter less than independent ones, so 5 sigma of those is ample.
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected) + 1e-9).all()


def test_probabilities_are_the_formulas():
    sampler, sizes = filled(1000, alpha=0.7)
    slots = np.arange(1000)[None]
    by_rank = sampler.probabilities(slots, sizes)[0][sampler.slots[0, 1:]]
    np.testing.assert_allclose(by_rank, formula(1000, 0.7), rtol=1e-12)
    assert by_rank.sum() == pytest.approx(1, abs=1e-12)


def test_each_batch_takes_one_rank_from_each_segment():
    sampler, sizes = filled(1000, alpha=0.7)
    sums = np.concatenate(([0.0], np.cumsum(formula(1000, 0.7))))
    for _ in range(200):
        slots, _ = sampler.sample(32, sizes, 0.4)
        ranks = sampler.ranks[0, slots[0]]
        segments = np.arange(32) / 32
        assert (sums[ranks] > segments - 1e-12).all()
        assert (sums[ranks - 1] < segments + 1 / 32 + 1e-12).all()


def test_every_number_of_transitions_has_its_own_exact_probabilities():
    buffer = RankBasedReplayBuffer(500, (1,), alpha=0.6, seed=3)
    for size in range(1, 501):
        buffer.add(np.zeros(1), 0, 0.0, np.zeros(1), False)
        by_rank = buffer.probabilities[buffer.sampler.slots[0, 1 : size + 1]]
        np.testing.assert_allclose(by_rank, formula(size, 0.6), rtol=1e-10)
        assert (buffer.sample(min(size, 4)).indices < size).all()


def test_rounding_leads_to_no_rank_that_is_not_there():
    sums = np.concatenate(([0.0], np.cumsum(np.arange(1, 11) ** -0.7)))
    for size in (1, 7, 10):
        assert find_rank(sums, size, 0.0) == 1
        assert find_rank(sums, size, np.nextafter(sums[size], 0)) == size
        assert find_rank(sums, size, sums[size]) == size


# Weights ----------------------------------------------------------------------------------------


def test_weights_follow_the_formula():
    sampler, sizes = filled(50, alpha=0.7, normalize="none")
    slots, weights = sampler.sample(16, sizes, 0.6)
    probabilities = formula(50, 0.7)[sampler.ranks[0, slots[0]] - 1]
    np.testing.assert_allclose(weights[0], (50 * probabilities) ** -0.6, rtol=1e-12)


@pytest.mark.parametrize("normalize", ["batch", "buffer"])
def test_the_largest_weight_is_one(normalize):
    sampler, sizes = filled(20, runs=3, normalize=normalize)
    plain, _ = filled(20, runs=3, normalize="none")
    weights, raw = sampler.sample(12, sizes, 0.5)[1], plain.sample(12, sizes, 0.5)[1]
    smallest = formula(20, 0.7)[-1]
    largest = raw.max(axis=1, keepdims=True) if normalize == "batch" else (20 * smallest) ** -0.5
    np.testing.assert_allclose(weights, raw / largest, rtol=1e-12)


def test_full_correction_gives_the_mean_over_the_memory_even_where_the_heap_is_unsorted():
    sampler, sizes = filled(60, alpha=0.9, normalize="none", sort_every=10**9)
    rng = np.random.default_rng(5)
    sampler.update(rng.permutation(60)[None, :30], rng.random((1, 30)) * 60)
    assert (np.diff(sampler.keys[0, 1:]) > 0).any()
    values = rng.normal(3.0, 1.0, size=60)
    means = []
    for _ in range(4000):
        slots, weights = sampler.sample(8, sizes, 1.0)
        means.append((weights * values[slots]).mean())
    assert np.mean(means) == pytest.approx(values.mean(), abs=4 * np.std(means) / np.sqrt(4000))


# Outliers ---------------------------------------------------------------------------------------


def test_one_huge_error_takes_all_draws_by_proportion_but_not_by_rank():
    shares = {}
    for kind in (PrioritizedReplayBuffer, RankBasedReplayBuffer):
        buffer = kind(100, (1,), alpha=0.7, seed=0)
        for _ in range(100):
            buffer.add(np.zeros(1), 0, 0.0, np.zeros(1), False)
        errors = np.ones(100)
        errors[17] = 1e6
        buffer.update_priorities(np.arange(100), errors)
        shares[kind] = buffer.probabilities[17]
    assert shares[PrioritizedReplayBuffer] > 0.99
    assert shares[RankBasedReplayBuffer] == pytest.approx(formula(100, 0.7)[0])


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"alpha": 0.5}, {"normalize": "none"}, {"sort_every": 6}])
def test_a_buffer_with_other_settings_is_not_loaded(tmp_path, other):
    buffer_with(5).save(tmp_path / "replay.npz")
    target = buffer_with(5, **other)
    with pytest.raises(ValueError, match=f"was saved with {next(iter(other))}"):
        target.load(tmp_path / "replay.npz")


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
