"""Saving and loading: a loaded buffer continues as if it had never stopped, and no file
does harm.
"""

import errno
from functools import partial

import numpy as np
import pytest
from replay_helpers import add, bits, every_kind, used

from per_tutorial.replay import (
    PrioritizedReplayBuffer,
    RankBasedReplayBuffer,
    ReplayBuffer,
)


@every_kind
def test_the_file_is_where_it_was_asked_for(kind, tmp_path):
    for name in ("replay", "replay.npz", "replay.checkpoint"):
        used(kind).save(tmp_path / name)
        used(kind).load(str(tmp_path / name))
    assert len(list(tmp_path.iterdir())) == 3


def test_the_number_of_runs_may_be_numpys(tmp_path):
    ReplayBuffer(5, 1, runs=np.int64(2), seed=0).save(tmp_path / "replay")
    ReplayBuffer(5, 1, runs=2, seed=0).load(tmp_path / "replay")


@every_kind
def test_the_longest_of_several_runs_is_saved_whole(kind, tmp_path):
    buffer, other = (kind(9, 1, runs=2, seed=seed) for seed in (0, 1))
    for k in range(8):
        buffer.add(
            [[k]] * 2, [k] * 2, [k] * 2, [[k]] * 2, [False] * 2, valid=np.array([True, k < 2])
        )
    buffer.save(tmp_path / "replay")
    other.load(tmp_path / "replay")
    assert bits(other) == bits(buffer)
    assert other.storage.rows["action"][0].tolist() == [*range(8), 0]


@every_kind
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(kind, tmp_path, monkeypatch):
    path = tmp_path / "replay.npz"
    buffer = used(kind)
    buffer.save(path)
    old = path.read_bytes()

    def disk_full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", disk_full)
    with pytest.raises(OSError, match="No space left"):
        add(buffer).save(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        (partial(PrioritizedReplayBuffer, 6, 2), ["capacity = 6", "not 5"]),
        (
            partial(PrioritizedReplayBuffer, 5, 3),
            ["observation = 'float32 (3,)', not 'float32 (2,)'"],
        ),
        (
            partial(PrioritizedReplayBuffer, 5, 2, action_dtype=np.int32),
            ["saved with action = 'int32 ()', not 'int64 ()'"],
        ),
        (partial(PrioritizedReplayBuffer, 5, 2, runs=2), ["runs = 2", "not None"]),
        (partial(PrioritizedReplayBuffer, 5, 2, alpha=0.5), ["alpha = 0.5", "not 0.6"]),
        (
            partial(PrioritizedReplayBuffer, 5, 2, priority_epsilon=1e-3),
            ["priority_epsilon = 0.001", "not 1e-06"],
        ),
        (
            partial(PrioritizedReplayBuffer, 5, 2, normalize="buffer"),
            ["normalize = 'buffer'", "not 'batch'"],
        ),
        (partial(PrioritizedReplayBuffer, 5, 2, n_step=3), ["n_step = 3", "not 1"]),
        (partial(PrioritizedReplayBuffer, 5, 2, discount=0.9), ["discount = 0.9", "not 0.99"]),
        (partial(ReplayBuffer, 5, 2), ["sampler = 'uniform'", "not 'proportional'"]),
        (partial(RankBasedReplayBuffer, 5, 2), ["sampler = 'rank'", "not 'proportional'"]),
    ],
)
def test_a_file_with_other_settings_is_refused(saved, said, tmp_path):
    path = tmp_path / "replay.npz"
    saved().save(path)
    assert_load_fails(path, ValueError, said)


def assert_load_fails(path, error, said=()):
    buffer = used(PrioritizedReplayBuffer)
    before = bits(buffer)
    with pytest.raises(error) as caught:
        buffer.load(path)
    assert all(part in str(caught.value) for part in ["path:", path.name, *said]), caught.value
    assert bits(buffer) == before


def test_a_missing_file_is_named(tmp_path):
    assert_load_fails(tmp_path / "missing.npz", FileNotFoundError, ["no file"])
    assert_load_fails(tmp_path, FileNotFoundError, ["no file"])


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path):
    path = tmp_path / "replay.npz"
    add(PrioritizedReplayBuffer(5, 2), 7).save(path)
    data = path.read_bytes()
    for length in [*range(0, len(data), 31), len(data) - 1]:
        path.write_bytes(data[:length])
        assert_load_fails(path, ValueError)


@pytest.mark.slow
def test_a_flipped_bit_is_noticed_or_does_not_matter(tmp_path):
    """All kinds of bytes: a few (dates, flags that nobody reads) leave the content intact."""
    path = tmp_path / "replay.npz"
    original = add(PrioritizedReplayBuffer(5, 2, seed=3), 7)
    original.save(path)
    data = path.read_bytes()
    buffer = PrioritizedReplayBuffer(5, 2, seed=4)
    refused = 0
    for position in range(0, len(data), 7):
        before = bits(buffer)
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        try:
            buffer.load(path)
        except ValueError as error:
            refused += 1
            assert "path:" in str(error)
            assert bits(buffer) == before
        else:
            assert bits(buffer) == bits(original)
            buffer = PrioritizedReplayBuffer(5, 2, seed=4)
    assert refused > 0.7 * len(data) / 7


def test_files_that_are_no_replay_buffers_are_refused(tmp_path):
    path = tmp_path / "file.npz"
    for content in (b"", b"hello", b"PK\x03\x04"):
        path.write_bytes(content)
        assert_load_fails(path, ValueError, ["is damaged, or is not such a file"])
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    assert_load_fails(path, ValueError, ["is damaged, or is not such a file"])
    np.savez(path, weights=np.zeros(3))
    assert_load_fails(path, ValueError, ["is damaged, or is not such a file"])
    np.savez(path, settings=np.array([{}], dtype=object))  # a pickle could run any code
    assert_load_fails(path, ValueError, ["is damaged, or is not such a file"])


def test_a_file_that_lacks_an_array_is_refused(tmp_path):
    path = tmp_path / "replay.npz"
    add(PrioritizedReplayBuffer(5, 2), 7).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    for name in arrays:
        np.savez(path, **{other: arrays[other] for other in arrays if other != name})
        assert_load_fails(path, ValueError)
