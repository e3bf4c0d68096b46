"""Saving and loading: files are whole, as small as what is stored, and of no other buffer."""

import errno
import pickle
from functools import partial

import numpy as np
import pytest
from copied_buffers import BUFFERS, go_on
from replay_helpers import add, bits, every_kind, used

from per_tutorial.common.files import write_arrays
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
        (partial(PrioritizedReplayBuffer, 5, 2, runs=2), ["runs = 2", "not None"]),
        (partial(PrioritizedReplayBuffer, 5, 2, alpha=0.5), ["alpha = 0.5", "not 0.6"]),
        (partial(PrioritizedReplayBuffer, 5, 2, n_step=3), ["n_step = 3", "not 1"]),
        (partial(PrioritizedReplayBuffer, 5, 2, discount=0.9), ["discount = 0.9", "not 0.99"]),
        (partial(RankBasedReplayBuffer, 5, 2), ["sampler = 'rank'", "not 'proportional'"]),
    ],
)
def test_a_file_with_other_settings_is_refused(saved, said, tmp_path):
    path = tmp_path / "replay.npz"
    saved().save(path)
    assert_load_fails(path, ValueError, said)


def test_a_state_whose_runs_hold_unequally_many_is_refused():
    """Earlier versions could save one."""
    buffer = ReplayBuffer(5, 1, runs=2, seed=0)
    buffer.add(np.zeros((2, 1)), [0, 0], [0, 0], np.zeros((2, 1)), [False, False])
    before, state = bits(buffer), buffer.state | {"storage.added": np.array([1, 0])}
    with pytest.raises(ValueError, match=r"^state: added must be the same .*, got \[1 0\]"):
        buffer.restore(state)
    assert bits(buffer) == before


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


def test_a_file_that_lacks_an_array_is_refused(tmp_path):
    path, buffer = tmp_path / "replay.npz", add(PrioritizedReplayBuffer(5, 2), 7)
    for name in buffer.state:
        rest = {other: array for other, array in buffer.state.items() if other != name}
        write_arrays(path, buffer.settings, rest)
        assert_load_fails(path, ValueError, [f"state: must have {name.partition('.')[2]}, got"])


@pytest.mark.parametrize("kind", ["uniform", "frames"])
@pytest.mark.parametrize("steps", [0, 40, 600])
def test_a_pickle_is_little_larger_than_what_is_stored(steps, kind):
    buffer = go_on(BUFFERS[kind](capacity=500, pixels=900), steps)
    stored = sum(array.nbytes for array in buffer.state.values())
    assert len(pickle.dumps(buffer)) < 1.2 * stored + 9000
