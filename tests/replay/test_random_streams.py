"""The random numbers of a run: reproducible, its own, and uniform."""

import numpy as np
import pytest
from naive import NaiveStream

from per_tutorial.replay import ProportionalSampler, RankBasedSampler, UniformSampler
from per_tutorial.replay.random_streams import RandomStreams, next_uniform, seeds_for


def test_the_twin_gives_the_published_numbers_of_splitmix64():
    """The first outputs for the state 1234567, the check that Rosetta Code lists."""
    stream = NaiveStream(1234567)
    assert [stream.bits() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_streams_equal_their_naive_twins_bit_for_bit():
    streams = RandomStreams([0, 1, 2**63], "replay")
    twins = [NaiveStream(state) for state in streams.states]
    expected = [[twin.uniform() for _ in range(200)] for twin in twins]
    np.testing.assert_array_equal(streams.uniform(200), expected)
    assert streams.states.tolist() == [twin.state for twin in twins]


def test_the_largest_number_is_below_one():
    """53 bits and no more: 64 would round up to 1.0, which is outside [0, 1)."""
    largest = (2**64 - 1 >> 11) * 2.0**-53
    assert largest == np.nextafter(1.0, 0.0)
    states = np.array([0], dtype=np.uint64)
    drawn = [next_uniform(states, 0) for _ in range(1000)]
    assert 0 <= min(drawn) and max(drawn) < 1
    assert all(number * 2**53 == int(number * 2**53) for number in drawn)


def test_seeds_and_purposes_give_different_streams():
    streams = [
        RandomStreams([seed], purpose).uniform(4).tobytes()
        for seed in (0, 1, 2, 2**32, 2**64, 2**64 + 1)
        for purpose in ("replay", "exploration")
    ]
    assert len(set(streams)) == 12


# ---------------------------------------------------------------- seeds_for


@pytest.mark.parametrize(
    ("seed", "runs", "seeds"),
    [
        (3, 1, [3]),
        (3, 3, [3, 4, 5]),
        (np.int64(2**63 - 1), 2, [2**63 - 1, 2**63]),
        ([9, 2], 2, [9, 2]),
        (range(2), 2, [0, 1]),
        (np.array([4, 4]), 2, [4, 4]),
    ],
)
def test_one_seed_per_run(seed, runs, seeds):
    result = seeds_for(seed, runs)
    assert result == seeds
    assert all(type(one) is int for one in result)


def test_without_a_seed_the_system_gives_one():
    first, second = seeds_for(None, 3), seeds_for(None, 3)
    assert len(set(first + second)) == 6


@pytest.mark.parametrize(
    ("seed", "error", "said"),
    [
        (-1, ValueError, ["at least 0", "got -1"]),
        ([3, -1], ValueError, ["at least 0", "got -1"]),
        ([1], ValueError, ["each of 2 runs", "got 1"]),
        (1.5, TypeError, ["integer", "got 1.5"]),
        ("12", TypeError, ["integer", "got '12'"]),
        ([1, 2.0], TypeError, ["integer", "got 2.0"]),
    ],
)
def test_bad_seeds_are_named(seed, error, said):
    with pytest.raises(error) as caught:
        seeds_for(seed, 2)
    assert all(part in str(caught.value) for part in ["seed:", *said]), caught.value


@pytest.mark.parametrize("sampler", [UniformSampler, ProportionalSampler, RankBasedSampler])
@pytest.mark.parametrize(
    ("seeds", "error", "said"),
    [
        (0, TypeError, "seeds: must be one int for each run, such as .0., got 0"),
        ("12", TypeError, "got '12'"),
        ([[1], [2, 3]], TypeError, r"seeds: must be an integer, got \[1\]"),
        ([], ValueError, "seeds: must be at least one"),
        ([-1], ValueError, "seeds: must be at least 0, got -1"),
    ],
)
def test_a_sampler_names_bad_seeds(sampler, seeds, error, said):
    with pytest.raises(error, match=said):
        sampler(8, seeds)
