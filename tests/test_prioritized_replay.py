"""Replay buffers as their users meet them: what is drawn, how often, with which weight, and errors.

Where public code has had a bug (see the comments), a bugged variant of the buffer stands beside the
check, which must reject it.
"""

import copy

import numpy as np
import pytest

from per_tutorial import PrioritizedReplayBuffer, RankBasedReplayBuffer, ReplayBuffer
from per_tutorial import replay as replay_module
from per_tutorial.samplers import ProportionalSampler

KINDS = (ReplayBuffer, PrioritizedReplayBuffer, RankBasedReplayBuffer)


def fill(buffer, count, start=0):
    """Add transitions whose observation is their number."""
    for number in range(start, start + count):
        buffer.add([number], number % 2, number / 2, [number + 1], False)
    return buffer


def bugged(sampler_class):
    """A `PrioritizedReplayBuffer` with another sampler."""
    buffer = PrioritizedReplayBuffer(8, 1, alpha=0.5, seed=0)
    buffer.sampler = sampler_class(8, [0], alpha=0.5)
    return buffer


def frequencies(buffer, rounds=3000, batch=8):
    drawn = np.concatenate([buffer.sample(batch).indices for _ in range(rounds)])
    return np.bincount(drawn, minlength=buffer.storage.added[0]) / len(drawn)


# What is drawn, and how often -------------------------------------------------------------------


@pytest.mark.parametrize("count", (5, 8, 13))  # partly filled, full, wrapped around
@pytest.mark.parametrize("kind", KINDS)
def test_only_stored_transitions_are_drawn_and_all_of_them(kind, count):  # bugs 12 and 14
    buffer = fill(kind(8, 1, seed=0), count)
    drawn = np.unique(np.concatenate([buffer.sample(4).indices for _ in range(400)]))
    np.testing.assert_array_equal(drawn, np.arange(max(0, count - 8), count))


def test_a_single_transition_can_be_drawn():
    batch = fill(PrioritizedReplayBuffer(1, 1, seed=0), 1).sample(1)
    assert batch.indices.tolist() == [0] and batch.weights.tolist() == [1.0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_made_of_the_transitions_that_were_added(kind):
    batch = fill(kind(8, 1, seed=0), 13).sample(8)
    np.testing.assert_array_equal(batch.observations[:, 0], batch.indices)
    np.testing.assert_array_equal(batch.next_observations[:, 0], batch.indices + 1)
    np.testing.assert_array_equal(batch.actions, batch.indices % 2)
    np.testing.assert_array_equal(batch.rewards, batch.indices / 2)
    assert not batch.terminated.any()


def holds_the_formula(buffer):
    """P(i) = (|δ_i| + ε)^α / Σ, in the tree and in what is drawn."""
    fill(buffer, 8)
    errors = np.array([0.0, 0.5, -1.0, 2.0, 0.1, -3.0, 1.0, 0.2])
    buffer.update_priorities(np.arange(8), errors)
    expected = (np.abs(errors) + 1e-6) ** 0.5
    expected /= expected.sum()
    np.testing.assert_allclose(buffer.probabilities, expected)
    np.testing.assert_allclose(frequencies(buffer), expected, atol=0.012)


class LossSampler(ProportionalSampler):  # bugs 4 and 5
    def update(self, slots, td_errors):
        super().update(slots, 0.5 * td_errors**2)


def test_priorities_are_the_td_errors():
    holds_the_formula(PrioritizedReplayBuffer(8, 1, alpha=0.5, seed=0))
    with pytest.raises(AssertionError):
        holds_the_formula(bugged(LossSampler))


def gives_newcomers_the_largest_priority(buffer):
    fill(buffer, 4)
    buffer.update_priorities([1, 2], [-9.0, 4.0])
    buffer.update_priorities([1], [0.0])  # the largest one seen is remembered
    fill(buffer, 1, start=4)
    leaves = buffer.sampler.sums.get([np.arange(5)])[0]
    np.testing.assert_allclose(leaves, np.array([1, 1e-6, 4 + 1e-6, 1, 9 + 1e-6]) ** 0.5)


class TwiceSampler(ProportionalSampler):  # bug 6: α applied twice to new items
    def add(self, slots):
        largest = self.largest_priority[:, None] ** self.alpha
        self._set(slots, np.broadcast_to(largest, slots.shape))


class StarvingSampler(ProportionalSampler):  # bug 10: newcomers start at ε
    def add(self, slots):
        self._set(slots, np.full(slots.shape, self.priority_epsilon))


def test_newcomers_get_the_largest_priority_seen():
    gives_newcomers_the_largest_priority(PrioritizedReplayBuffer(8, 1, alpha=0.5, seed=0))
    for sampler_class in (TwiceSampler, StarvingSampler):
        with pytest.raises(AssertionError):
            gives_newcomers_the_largest_priority(bugged(sampler_class))


def test_float32_errors_leave_the_tree_in_float64():  # bug 15
    buffer = fill(PrioritizedReplayBuffer(8, 1, alpha=1, seed=0), 8)
    buffer.update_priorities(np.arange(8), np.full(8, 0.1, dtype=np.float32))
    assert buffer.sampler.sums.nodes.dtype == np.float64
    assert buffer.sampler.sums.get(np.arange(1)[None])[0, 0] == float(np.float32(0.1)) + 1e-6


# Weights ----------------------------------------------------------------------------------------


def test_full_weights_undo_the_bias():
    values = np.random.default_rng(0).normal(size=64)
    buffer = fill(PrioritizedReplayBuffer(64, 1, normalize="none", seed=0), 64)
    buffer.update_priorities(np.arange(64), values * 3)
    means, plain = [], []
    for _ in range(4000):
        batch = buffer.sample(32, beta=1)
        means.append((batch.weights * values[batch.indices] ** 2).mean())
        plain.append((values[batch.indices] ** 2).mean())
    error = np.std(means) / np.sqrt(len(means))
    assert abs(np.mean(means) - (values**2).mean()) < 4 * error
    assert abs(np.mean(plain) - (values**2).mean()) > 40 * error  # what they correct


@pytest.mark.parametrize("normalize", ("batch", "buffer", "none"))
def test_weights_follow_the_formula(normalize):
    buffer = fill(PrioritizedReplayBuffer(16, 1, normalize=normalize, seed=0), 9)
    buffer.update_priorities(np.arange(9), np.linspace(0.1, 3, 9))
    batch = buffer.sample(8, beta=0.7)
    stored = (9 * buffer.probabilities[:9]) ** -0.7
    largest = {"batch": stored[batch.indices].max(), "buffer": stored.max(), "none": 1}
    np.testing.assert_allclose(batch.weights, stored[batch.indices] / largest[normalize])


# Runs, seeds, transitions that are gone ---------------------------------------------------------


def draw_and_learn(buffer, rounds=20):
    """Some rounds of sampling and updating; returns all that was drawn."""
    drawn = []
    for _ in range(rounds):
        batch = buffer.sample(4)
        buffer.update_priorities(batch.indices, np.sin(batch.indices) * 3)
        drawn.append(batch)
    return drawn


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_a_stack_is_the_buffer_of_its_seed(kind):  # bug 25 among others
    stack = kind(8, 1, runs=3, seed=[5, 6, 7])
    for number in range(11):
        column = np.full((3, 1), number)
        stack.add(column, np.full(3, number % 2), np.full(3, number / 2), column + 1, [False] * 3)
    singles = [fill(kind(8, 1, seed=seed), 11) for seed in (5, 6, 7)]
    alone = [draw_and_learn(buffer) for buffer in singles]
    for k, batch in enumerate(draw_and_learn(stack)):
        for run in range(3):
            for together, single in zip(batch, alone[run][k], strict=True):
                np.testing.assert_array_equal(together[run], single)
    assert any((one.indices != two.indices).any() for one, two in zip(*alone[:2], strict=True))


def test_runs_may_skip_a_step():
    buffer = PrioritizedReplayBuffer(4, 1, runs=2, seed=0)
    ones = np.ones((2, 1))
    buffer.add(ones, [0, 0], [1, 1], ones, [False, False])
    buffer.add(ones, [0, 0], [1, 1], ones, [False, False], valid=[True, False])
    assert buffer.storage.sizes.tolist() == [2, 1] and len(buffer) == 1
    assert buffer.sampler.sums.total.tolist() == [2.0, 1.0]


def spares_newcomers(buffer):
    """What was overwritten between sampling and updating must not set the newcomer's priority."""
    fill(buffer, 8)
    batch = buffer.sample(8)
    fill(buffer, 3, start=8)  # takes the places of 0, 1 and 2
    buffer.update_priorities(np.arange(8), np.full(8, 0.01))
    leaves = buffer.sampler.sums.get([np.arange(8)])[0]
    np.testing.assert_array_equal(leaves[:3], 1.0)
    np.testing.assert_allclose(leaves[3:], (0.01 + 1e-6) ** 0.5)
    assert batch.indices.max() < 8
    assert buffer.sample(8).indices.max() > 7  # numbers are never used again


class StaleBuffer(PrioritizedReplayBuffer):  # bug 23
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.storage.current_slots = lambda ids: ids % self.capacity


def test_stale_updates_do_not_reach_the_new_owner_of_a_slot():
    spares_newcomers(PrioritizedReplayBuffer(8, 1, alpha=0.5, seed=0))
    with pytest.raises(AssertionError):
        spares_newcomers(StaleBuffer(8, 1, alpha=0.5, seed=0))


def test_of_duplicates_the_last_one_wins():
    buffer = fill(PrioritizedReplayBuffer(4, 1, alpha=1, seed=0), 4)
    buffer.update_priorities([2, 1, 2], [5.0, 1.0, 3.0])
    assert buffer.sampler.sums.get([[2]])[0, 0] == 3 + 1e-6


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_buffer_continues_bit_for_bit(kind, tmp_path):  # bug 24
    buffer = fill(kind(8, 1, seed=3), 11)
    draw_and_learn(buffer)
    buffer.save(tmp_path / "replay.npz")
    loaded = kind(8, 1, seed=99)
    loaded.load(tmp_path / "replay.npz")
    for one, other in ((buffer, loaded), (fill(buffer, 2, 11), fill(loaded, 2, 11))):
        for before, after in zip(draw_and_learn(one), draw_and_learn(other), strict=True):
            for mine, theirs in zip(before, after, strict=True):
                np.testing.assert_array_equal(mine, theirs)


def state(buffer):
    arrays = {**buffer.sampler.state, "rows": buffer.storage.rows, "added": buffer.storage.added}
    return {name: array.tobytes() for name, array in arrays.items()}


def damaged(path, how):
    data = bytearray(path.read_bytes())
    if how == "truncated":
        data = data[: len(data) // 2]
    elif how == "flipped":
        data[len(data) // 2] ^= 0xFF
    elif how == "other":
        data = bytearray(b"not a replay buffer")
    path.write_bytes(data)


@pytest.mark.parametrize("how", ("truncated", "flipped", "other"))
def test_a_damaged_file_is_named_and_changes_nothing(how, tmp_path):
    path = tmp_path / "replay.npz"
    fill(PrioritizedReplayBuffer(800, 1, seed=0), 800).save(path)
    damaged(path, how)
    buffer = fill(PrioritizedReplayBuffer(800, 1, seed=1), 5)
    before = state(buffer)
    with pytest.raises(ValueError, match="path: .*replay.npz"):
        buffer.load(path)
    assert state(buffer) == before


def test_files_of_other_buffers_are_refused(tmp_path):
    path = tmp_path / "replay.npz"
    fill(PrioritizedReplayBuffer(8, 1, seed=0), 5).save(path)
    for other in (
        PrioritizedReplayBuffer(9, 1),
        PrioritizedReplayBuffer(8, 2),
        PrioritizedReplayBuffer(8, 1, alpha=0.7),
        ReplayBuffer(8, 1),
    ):
        with pytest.raises(ValueError, match="was saved with"):
            other.load(path)
    with pytest.raises(FileNotFoundError, match="path"):
        PrioritizedReplayBuffer(8, 1).load(tmp_path / "missing.npz")


def test_a_failing_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "replay.npz"
    buffer = fill(PrioritizedReplayBuffer(8, 1, seed=0), 5)
    buffer.save(path)
    old = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(replay_module.np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        buffer.save(path)
    assert path.read_bytes() == old and list(tmp_path.iterdir()) == [path]


# Bad input --------------------------------------------------------------------------------------

MISUSES = {
    "too few stored": (lambda b: b.sample(6), ValueError, "batch_size: .* 5, got 6"),
    "batch of zero": (lambda b: b.sample(0), ValueError, "batch_size: .*at least 1, got 0"),
    "batch no integer": (lambda b: b.sample(2.0), TypeError, "batch_size: .*integer, got 2.0"),
    "beta": (lambda b: b.sample(2, beta=1.5), ValueError, r"beta: .*\[0, 1\], got 1.5"),
    "NaN": (lambda b: b.update_priorities([0], [np.nan]), ValueError, "td_errors: .*got nan"),
    "infinite": (lambda b: b.update_priorities([0], [np.inf]), ValueError, "td_errors: .*got inf"),
    "shapes": (lambda b: b.update_priorities([0, 1], [1.0]), ValueError, "td_errors: .*shape"),
    "column": (lambda b: b.update_priorities([0, 1], [[1.0], [2.0]]), ValueError, "td_errors: "),
    "too large": (lambda b: b.update_priorities([0, 5], [1, 1]), IndexError, r"indices: .*got 5"),
    "negative": (lambda b: b.update_priorities([-1], [1.0]), IndexError, "indices: .*got -1"),
    "no indices": (lambda b: b.update_priorities([0.5], [1.0]), TypeError, "indices: .*integers"),
    "words": (lambda b: b.update_priorities([0], ["big"]), TypeError, "td_errors: .*numbers"),
    "shape": (lambda b: b.add([1, 2], 0, 0.0, [1], False), ValueError, "observation: .*shape"),
    "reward": (lambda b: b.add([1], 0, np.nan, [1], False), ValueError, "reward: .*finite"),
    "action": (lambda b: b.add([1], 0.5, 0.0, [1], False), TypeError, "action: .*int64"),
    "terminated": (lambda b: b.add([1], 0, 0.0, [1], 2), ValueError, "terminated: .*True or False"),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_bad_input_is_named_and_changes_nothing(misuse):
    call, error, said = MISUSES[misuse]
    buffer = fill(PrioritizedReplayBuffer(8, 1, seed=0), 5)
    before = copy.deepcopy(state(buffer))
    with pytest.raises(error, match=said):
        call(buffer)
    assert state(buffer) == before


@pytest.mark.parametrize(
    ("arguments", "options", "error", "said"),
    [
        ((0, 1), {}, ValueError, "capacity: .*at least 1, got 0"),
        ((2.5, 1), {}, TypeError, "capacity: .*integer, got 2.5"),
        ((8, "four"), {}, TypeError, "observation_shape: .*integer"),
        ((8, 1), {"alpha": 1.1}, ValueError, r"alpha: .*\[0, 1\], got 1.1"),
        ((8, 1), {"alpha": -0.1}, ValueError, r"alpha: .*\[0, 1\], got -0.1"),
        ((8, 1), {"priority_epsilon": 0}, ValueError, "priority_epsilon: .*greater than 0"),
        ((8, 1), {"normalize": "max"}, ValueError, "normalize: .*'batch', 'buffer', 'none'"),
        ((8, 1), {"seed": -1}, ValueError, "seed: .*at least 0"),
        ((8, 1), {"runs": 2, "seed": [1]}, ValueError, "seed: .*2 runs"),
        ((8, 1), {"runs": 0}, ValueError, "runs: .*at least 1"),
    ],
)
def test_bad_settings_are_named(arguments, options, error, said):
    with pytest.raises(error, match=said):
        PrioritizedReplayBuffer(*arguments, **options)
