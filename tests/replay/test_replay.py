"""Replay buffers over their whole life: what they keep, hand out, take back, save and refuse.

What is drawn how often is in `test_samplers`. As there, a function named `holds_…` states a property
of the buffers that `make(...)` makes: real ones have it, those with the bug put in must fail it.
"""

import errno
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NaivePrioritizedReplay, NaiveStream, NStepQueue, naive_window

from per_tutorial import PrioritizedReplayBuffer, RankBasedReplayBuffer, ReplayBuffer
from per_tutorial.replay.buffers import Replay
from per_tutorial.replay.random_streams import seeds_for
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.samplers.uniform import UniformSampler
from per_tutorial.replay.storages.transitions import TransitionStorage

KINDS = [ReplayBuffer, PrioritizedReplayBuffer, RankBasedReplayBuffer]
every_kind = pytest.mark.parametrize("kind", KINDS)

RUNS = 3
sizes = st.integers(1, 12).flatmap(lambda most: st.tuples(st.just(most), st.integers(1, most)))


def add(buffer, count=1):
    """Add transitions whose fields all tell their number, k: (k, −k), k, k/2, (k+1, −k), k even."""
    for _ in range(count):
        k = int(buffer.storage.added[0])
        buffer.add([k, -k], k, k / 2, [k + 1, -k], k % 2 == 0)
    return buffer


def learn(buffer, rounds=1, batch_size=3):
    """Sample and update, as training does; returns all that was drawn."""
    batches = []
    for _ in range(rounds):
        batches.append(buffer.sample(batch_size))
        buffer.update_priorities(batches[-1].indices, np.sin(batches[-1].indices + 1.0))
    return batches


def used(kind, capacity=5, **options):
    """A buffer that has wrapped around and learned."""
    buffer = add(kind(capacity, 2, **{"seed": 0, **options}), capacity + 2)
    learn(buffer, rounds=4)
    return buffer


def state(buffer):
    """All there is to a buffer, to the bit."""
    arrays = {"rows": buffer.storage.rows, "added": buffer.storage.added, **buffer.sampler.state}
    return {name: array.tobytes() for name, array in arrays.items()}


def assert_same_batches(batches, expected):
    for batch, other in zip(batches, expected, strict=True):
        for mine, theirs in zip(batch, other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def check(holds, bugged):
    holds(PrioritizedReplayBuffer)
    with pytest.raises(AssertionError):
        holds(bugged)


# ---------------------------------------------------------------- the naive twin

adding = st.integers(1, 8)
replaying = st.tuples(
    st.integers(1, 5),  # batch size
    st.integers(0, 4),  # transitions added between sampling and updating
    st.lists(st.integers(-800, 800), min_size=5, max_size=5),  # TD errors, in eighths
    st.sampled_from([0.0, 0.4, 1.0]),  # beta
)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.integers(1, 70), st.lists(st.one_of(adding, replaying), max_size=12), st.integers(0, 99))
def test_the_buffer_equals_its_naive_twin_draw_by_draw(capacity, steps, seed):
    """All priorities are multiples of 1/1024, so that sums are exact and draws must be equal."""
    options = {"alpha": 1.0, "priority_epsilon": 2.0**-10}
    buffer = PrioritizedReplayBuffer(capacity, 2, seed=seed, normalize="none", **options)
    twin = NaivePrioritizedReplay(
        capacity, stream=NaiveStream(buffer.sampler.streams.states[0]), **options
    )

    def add_to_both(count):
        add(buffer, count)
        for _ in range(count):
            twin.add()

    add_to_both(1)
    for step in steps:
        if isinstance(step, int):
            add_to_both(step)
        else:
            batch_size, added_meanwhile, eighths, beta = step
            batch_size = min(batch_size, len(buffer))
            batch = buffer.sample(batch_size, beta)
            numbers, weights = twin.sample(batch_size, beta)
            assert batch.indices.tolist() == numbers
            np.testing.assert_allclose(batch.weights, weights, rtol=1e-12)
            add_to_both(added_meanwhile)
            td_errors = np.array(eighths[:batch_size]) / 8
            buffer.update_priorities(numbers, td_errors)
            twin.update(numbers, td_errors)
        assert len(buffer) == min(twin.added, capacity)
        assert buffer.sampler.largest_priority.tolist() == [twin.largest]
        assert buffer.probabilities.tolist() == twin.probabilities()


# ---------------------------------------------------------------- transitions and their numbers


@every_kind
@pytest.mark.parametrize("added", [1, 4, 5, 6, 23])
def test_a_batch_is_made_of_transitions_as_they_were_added(kind, added):
    buffer = add(kind(5, 2, seed=0), added)
    seen = set()
    for _ in range(60):
        batch = buffer.sample(min(3, added))
        k = batch.indices
        np.testing.assert_array_equal(batch.observations, np.stack([k, -k], axis=1))
        np.testing.assert_array_equal(batch.actions, k)
        np.testing.assert_array_equal(batch.rewards, k / 2)
        np.testing.assert_array_equal(batch.next_observations, np.stack([k + 1, -k], axis=1))
        np.testing.assert_array_equal(batch.terminated, k % 2 == 0)
        seen.update(k.tolist())
    # Numbers keep growing after the buffer has wrapped around; the newest is there at once.
    assert seen == set(range(max(0, added - 5), added))


@every_kind
def test_fields_keep_their_shapes_and_types(kind):
    options = {"observation_dtype": np.uint8, "action_shape": 2, "action_dtype": np.float32}
    buffer = kind(4, (3, 2), seed=0, **options)
    picture = np.arange(6, dtype=np.uint8).reshape(3, 2)
    for _ in range(4):
        buffer.add(picture, [0.5, -0.5], 1, picture + 1, True)
    batch = buffer.sample(4)
    described = {name: (field.shape, field.dtype) for name, field in batch._asdict().items()}
    assert described == {
        "observations": ((4, 3, 2), np.uint8),
        "actions": ((4, 2), np.float32),
        "rewards": ((4,), np.float32),
        "next_observations": ((4, 3, 2), np.uint8),
        "terminated": ((4,), np.bool_),
        "weights": ((4,), np.float64),
        "indices": ((4,), np.int64),
        "steps": ((4,), np.int64),
    }
    np.testing.assert_array_equal(batch.next_observations[0], picture + 1)


@every_kind
def test_a_batch_is_a_copy(kind):
    buffer = add(kind(2, 2, seed=0), 2)
    before = state(buffer)["rows"]
    for field in buffer.sample(2):
        field[...] = 0
    assert state(buffer)["rows"] == before


@pytest.mark.parametrize("capacity", [1, 2, 5])
def test_numbers_and_slots_belong_together(capacity):
    """The k-th transition lies in slot k % capacity, until the (k + capacity)-th takes its place."""
    storage = TransitionStorage(capacity, 1, runs=2)
    for added in range(3 * capacity + 2):
        storage.added[:] = added, added + 1
        for run, count in enumerate(storage.added):
            numbers = np.arange(count)
            stored = numbers >= count - capacity
            expected = np.where(stored, numbers % capacity, -1)
            rows = np.zeros((2, count), dtype=np.int64)
            rows[run] = numbers
            slots = storage.current_slots(rows)[run]
            np.testing.assert_array_equal(slots, expected)
            rows[run, stored] = expected[stored]
            np.testing.assert_array_equal(storage.ids(rows)[run, stored], numbers[stored])


class StaleWriteBack(PrioritizedReplayBuffer):
    """Bug 23: priorities go to the slot, whoever lives there now."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.storage.current_slots = lambda numbers: numbers % self.capacity


def holds_newcomers_keep_their_priority(make):
    buffer = add(make(4, 2, alpha=1.0), 4)
    numbers = [0, 1, 2, 3]  # were sampled; then 4 and 5 take the slots of 0 and 1
    add(buffer, 2)
    buffer.update_priorities(numbers, [7.0, 7.0, 3.0, 3.0])
    assert buffer.probabilities == pytest.approx(np.array([1, 1, 3, 3]) / 8)
    assert buffer.sampler.largest_priority == pytest.approx(3.0)


def test_a_transition_overwritten_since_it_was_sampled_is_skipped():  # bug 23
    check(holds_newcomers_keep_their_priority, StaleWriteBack)


def test_td_errors_may_come_from_torch():
    buffer, other = used(PrioritizedReplayBuffer), used(PrioritizedReplayBuffer)
    buffer.update_priorities([3, 4], torch.tensor([0.5, -2.0], requires_grad=True))
    other.update_priorities([3, 4], [0.5, -2.0])
    assert state(buffer) == state(other)


# ---------------------------------------------------------------- many at once


def holds_extending_is_adding_one_by_one(make, lengths, capacity=5, runs=None, **options):
    """Chunks of random transitions, training in between; the buffers stay the same to the bit."""
    together, single = (make(capacity, 2, runs=runs, seed=4, **options) for _ in range(2))
    rng = np.random.default_rng(0)
    for length in lengths:
        shape = (runs or 1, length)
        columns = [rng.normal(size=(*shape, 2)), rng.integers(9, size=shape), rng.normal(size=shape)]
        columns += [columns[0] + 1, rng.random(shape) < 0.1, rng.random(shape) < 0.1]
        together.extend(*(columns if runs else [column[0] for column in columns]))
        for k in range(length):
            fields = [column[:, k] for column in columns]
            single.add(*(fields if runs else [field[0] for field in fields]))
        if len(single):
            assert_same_batches(learn(together, 2, len(single)), learn(single, 2, len(single)))
        np.testing.assert_array_equal(together.storage.rows, single.storage.rows)
        np.testing.assert_array_equal(together.storage.added, single.storage.added)
        for name, array in single.sampler.state.items():
            np.testing.assert_array_equal(together.sampler.state[name], array)


@every_kind
@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.integers(0, 30), max_size=8), sizes, st.sampled_from([None, RUNS]))
def test_extending_is_adding_one_by_one(kind, lengths, size, runs):
    capacity, n_step = size
    holds_extending_is_adding_one_by_one(kind, lengths, capacity, runs, n_step=n_step)


class SortsAtTheEnd(RankBasedReplayBuffer):
    """All newcomers enter the heap before it is sorted."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.sampler.add = lambda slots: self.sampler._set(slots, np.ones(slots.shape))


class KeepsTheFirst(ReplayBuffer):
    """Of more transitions than there is room for, the first ones stay."""

    def extend(self, *columns):
        kept = [np.concatenate([column[self.capacity :], column]) for column in columns]
        super().extend(*(column[: len(columns[0])] for column in kept))


@pytest.mark.parametrize("bugged", [SortsAtTheEnd, KeepsTheFirst])
def test_extending_differently_is_noticed(bugged):
    lengths = [3, 4, 0, 13, 2]
    holds_extending_is_adding_one_by_one(bugged.__base__, lengths)
    with pytest.raises(AssertionError):
        holds_extending_is_adding_one_by_one(bugged, lengths)


@every_kind
def test_extending_needs_no_word_on_truncation_and_takes_lists(kind):
    together, single = kind(3, 2, seed=0), kind(3, 2, seed=0)
    together.extend([[0, 0], [1, -1]], [0, 1], [0, 0.5], [[1, 0], [2, -1]], [True, False])
    assert_same_batches([together.sample(2)], [add(single, 2).sample(2)])
    assert not together.storage.rows["truncated"].any()


# ---------------------------------------------------------------- n-step returns

happenings = st.sampled_from(["on", "on", "on", "terminated", "truncated", "both", "nothing"])
lives = st.lists(st.tuples(*[happenings] * RUNS), min_size=8, max_size=40)
varied = settings(deadline=None, derandomize=True, max_examples=150)


def live(storage, life):
    """Add what happens to each run step by step; yields the runs' logs, as in `naive_window`.

    "nothing" is a step that only resets the environment. All numbers tell which step it is.
    """
    logs = [[] for _ in range(RUNS)]
    for happening in life:
        counts = np.array([len(log) for log in logs])
        values = 100.0 * np.arange(RUNS) + counts
        fields = (
            values[:, None],
            counts,
            values + 1,
            values[:, None] + 0.5,
            np.array([each in ("terminated", "both") for each in happening]),
            np.array([each in ("truncated", "both") for each in happening]),
        )
        valid = np.array([each != "nothing" for each in happening])
        storage.add(*fields, valid=valid)
        for run in np.flatnonzero(valid):
            logs[run].append(tuple(field[run].item() for field in fields))
        yield logs


def stored_windows(storage, run):
    """All that is stored of a run: {number: what `naive_window` says of it}."""
    added = int(storage.added[run])
    numbers = np.arange(max(0, added - storage.capacity), added)
    slots = np.tile(numbers % storage.capacity, (RUNS, 1))
    rows, steps = storage.windows(slots)
    names = ("observation", "action", "reward", "next_observation", "terminated")
    columns = [rows[name][run].reshape(-1).tolist() for name in names]
    windows = zip(*columns, steps[run].tolist(), strict=True)
    return dict(zip(numbers.tolist(), windows, strict=True))


def holds_windows_are_those_of_the_log(make, size, life, discount):
    capacity, n_step = size
    storage = make(capacity, 1, RUNS, n_step=n_step, discount=discount)
    for logs in live(storage, life):
        for run, log in enumerate(logs):
            windows = stored_windows(storage, run)
            assert len(windows) == min(len(log), capacity)
            for number, window in windows.items():
                assert window == naive_window(log, number, n_step, discount)


@varied
@given(sizes, lives, st.sampled_from([0.0, 0.5, 1.0]))  # with these, sums are exact
def test_windows_are_those_of_the_whole_log(size, life, discount):
    holds_windows_are_those_of_the_log(TransitionStorage, size, life, discount)


class NoTruncation(TransitionStorage):
    """Bug 20: only terminations are stored, so windows run on into the next episode."""

    def add(self, *fields, valid):
        return super().add(*fields[:5], valid=valid)


class AcrossTheNewest(TransitionStorage):
    """Windows run on from the newest transition into the oldest, which lies behind it."""

    def windows(self, slots):
        added, windows = self.added, []
        for column in slots.T:
            self.added = column  # as if it were the oldest one of its run
            windows.append(super().windows(column[:, None]))
        self.added = added
        rows, steps = zip(*windows, strict=True)
        return np.hstack(rows), np.hstack(steps)


class NoYoungOnes(TransitionStorage):
    """A window that is not complete yet is taken for a single step."""

    def windows(self, slots):
        rows, steps = super().windows(slots)
        unfinished = (steps < self.n_step) & ~rows["terminated"] & ~rows["truncated"]
        rows[unfinished] = self.gather(slots)[unfinished]
        return rows, np.where(unfinished, 1, steps)


@pytest.mark.parametrize("bugged", [NoTruncation, AcrossTheNewest, NoYoungOnes])
def test_windows_that_end_elsewhere_are_noticed(bugged):  # bug 20
    life = [("on", "on", "on"), ("on", "truncated", "on"), ("on", "on", "nothing")] * 4
    holds_windows_are_those_of_the_log(TransitionStorage, (5, 3), life, 0.5)
    with pytest.raises(AssertionError):
        holds_windows_are_those_of_the_log(bugged, (5, 3), life, 0.5)


@varied
@given(sizes, lives)
def test_windows_are_those_of_the_textbooks_queue_and_young_ones_are_shorter(size, life):
    """The queue gives a transition out when its window is complete; ours are there at once."""
    capacity, n_step = size
    storage = TransitionStorage(capacity, 1, RUNS, n_step=n_step, discount=0.5)
    queues, complete = [NStepQueue(n_step, 0.5) for _ in range(RUNS)], [[] for _ in range(RUNS)]
    for logs in live(storage, life):
        for run, log in enumerate(logs):
            if len(log) > len(complete[run]) + len(queues[run].waiting):  # a step was valid
                complete[run] += queues[run].add(*log[-1])
            for number, window in stored_windows(storage, run).items():
                if number < len(complete[run]):
                    assert window == complete[run][number]
                else:
                    assert window[-1] == len(log) - number < n_step


def test_a_window_by_hand():
    """γ = ½, n = 3, five slots; transitions 3 to 7 are stored, and 5 is cut off by a time limit."""
    buffer = ReplayBuffer(5, 1, n_step=3, discount=0.5, seed=0)
    for k in range(8):
        buffer.add([k], k, 2.0**k, [k + 0.5], False, k == 5)
    seen = {}
    for _ in range(40):
        batch = buffer.sample(5)
        for k, *others in zip(
            batch.indices.tolist(),
            batch.rewards.tolist(),
            batch.next_observations[:, 0].tolist(),
            batch.steps.tolist(),
            strict=True,
        ):
            seen[k] = others
    assert seen == {
        3: [8 + 0.5 * 16 + 0.25 * 32, 5.5, 3],
        4: [16 + 0.5 * 32, 5.5, 2],  # the episode is over
        5: [32, 5.5, 1],
        6: [64 + 0.5 * 128, 7.5, 2],  # the next step has not happened yet
        7: [128, 7.5, 1],
    }
    assert not batch.terminated.any()
    buffer.add([8], 8, 256.0, [8.5], True)  # now it has, and is the last one of its episode
    batch = buffer.sample(5)
    while 6 not in batch.indices:
        batch = buffer.sample(5)
    sixth = batch.indices.tolist().index(6)
    assert batch.rewards[sixth] == 64 + 0.5 * 128 + 0.25 * 256
    assert batch.next_observations[sixth] == 8.5 and batch.terminated[sixth]


@every_kind
def test_single_steps_are_windows_of_one(kind):
    batch = used(kind, discount=0.5).sample(5)
    np.testing.assert_array_equal(batch.rewards, batch.indices / 2)
    assert (batch.steps == 1).all()


# ---------------------------------------------------------------- runs side by side


class OneGenerator(UniformSampler):
    """All runs draw from one generator, as they would with NumPy's."""

    def __init__(self, capacity, seeds):
        super().__init__(capacity, seeds)
        self.generator = np.random.default_rng(seeds[0])

    def sample(self, batch_size, sizes, beta):
        uniform = self.generator.random((len(sizes), batch_size))
        return (uniform * sizes[:, None]).astype(np.int64), np.ones(uniform.shape)


class SharedMaximum(ProportionalSampler):
    """The largest priority seen in any run counts for all."""

    def update(self, slots, td_errors):
        super().update(slots, td_errors)
        self.largest_priority[:] = self.largest_priority.max()


def with_sampler(sampler, capacity, shape, runs=None, seed=None):
    storage = TransitionStorage(capacity, shape, runs or 1)
    return Replay(storage, sampler(capacity, seeds_for(seed, storage.runs)), runs)


def holds_a_run_does_not_notice_the_others(make, seeds=(11, 5, 8)):
    """Three runs with rewards, skipped steps and TD errors of their own, together and alone."""
    runs, rng = len(seeds), np.random.default_rng(0)
    stack = make(5, 1, runs=runs, seed=list(seeds))
    alone = [make(5, 1, seed=seed) for seed in seeds]
    for step in range(40):
        observation, reward = rng.normal(size=(runs, 1)), rng.normal(size=runs)
        action, terminated = rng.integers(2, size=runs), rng.random(runs) < 0.1
        valid = (rng.random(runs) < 0.8) | (step < 3)
        stack.add(observation, action, reward, observation + 1, terminated, valid=valid)
        for run in np.flatnonzero(valid):
            row = observation[run], action[run], reward[run], observation[run] + 1, terminated[run]
            alone[run].add(*row)
        if step >= 3:
            together, batches = stack.sample(3), [buffer.sample(3) for buffer in alone]
            assert_same_batches(zip(*together, strict=True), batches)
            td_errors = rng.normal(size=(runs, 3)) * [[1.0], [10.0], [100.0]]
            stack.update_priorities(together.indices, td_errors)
            for buffer, batch, errors in zip(alone, batches, td_errors, strict=True):
                buffer.update_priorities(batch.indices, errors)


@every_kind
@pytest.mark.parametrize("n_step", [1, 3])
def test_a_run_of_a_stack_is_the_buffer_of_its_seed_bit_for_bit(kind, n_step):
    holds_a_run_does_not_notice_the_others(partial(kind, n_step=n_step))


@pytest.mark.parametrize(
    ("sampler", "bugged"), [(UniformSampler, OneGenerator), (ProportionalSampler, SharedMaximum)]
)
def test_runs_that_share_anything_are_noticed(sampler, bugged):
    holds_a_run_does_not_notice_the_others(partial(with_sampler, sampler))
    with pytest.raises(AssertionError):
        holds_a_run_does_not_notice_the_others(partial(with_sampler, bugged))


@every_kind
def test_the_seed_and_priorities_of_one_run_leave_the_others_untouched(kind):
    def second_run(first_seed, first_td_error):
        stack = kind(4, 1, runs=2, seed=[first_seed, 7])
        for k in range(6):
            stack.add([[k], [k]], [k, k], [k, k], [[k], [k]], [False, False])
        batches = []
        for _ in range(20):
            batch = stack.sample(3)
            batches.append([field[1] for field in batch])
            stack.update_priorities(batch.indices, [[first_td_error] * 3, np.sin(batch.indices[1])])
        return batches

    expected = second_run(first_seed=0, first_td_error=0.0)
    assert_same_batches(second_run(first_seed=1, first_td_error=0.0), expected)
    assert_same_batches(second_run(first_seed=0, first_td_error=1e99), expected)


def test_a_stack_is_as_long_as_its_shortest_run():
    stack = ReplayBuffer(4, 1, runs=2)
    rows = np.zeros((2, 1)), [0, 0], [0, 0], np.zeros((2, 1)), [False, False]
    stack.add(*rows, valid=[True, False])
    assert len(stack) == 0 and stack.storage.sizes.tolist() == [1, 0]
    stack.add(*rows)
    assert len(stack) == 1 and stack.sample(1).observations.shape == (2, 1, 1)


@every_kind
def test_one_run_may_have_an_axis_for_runs(kind):
    stack, alone = kind(4, 1, runs=1, seed=3), kind(4, 1, seed=3)
    for k in range(4):
        stack.add([[k]], [k], [k], [[k]], [False])
        alone.add([k], k, k, [k], False)
    assert_same_batches([[field[0] for field in stack.sample(4)]], [alone.sample(4)])


@every_kind
def test_same_seed_same_life_and_another_seed_another(kind):
    def life(seed):
        return state(used(kind, capacity=20, seed=seed))

    assert life(1) == life(1)
    assert life(1) != life(2)
    assert life(None) != life(None)


# ---------------------------------------------------------------- save and load


class ForgetsMaximum(PrioritizedReplayBuffer):
    """Bug 24: the largest priority is not in the file."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        del self.sampler.state["largest_priority"]


class ForgetsGenerator(PrioritizedReplayBuffer):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        del self.sampler.state["streams"]


class ForgetsPriorities(PrioritizedReplayBuffer):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        del self.sampler.state["sums"]

    def load(self, path):
        super().load(path)
        self.sampler.add(np.arange(len(self))[None])


def holds_a_loaded_buffer_goes_on_as_if_it_had_never_stopped(make, directory, added=17):
    path = directory / "replay.npz"
    buffer = add(make(8, 2, seed=1), added)
    buffer.update_priorities([added - 1], [50.0])  # the largest priority is that of one that …
    add(buffer, 8)  # … is gone by now
    learn(buffer, rounds=5)
    buffer.save(path)
    loaded = used(make, capacity=8, seed=2)
    loaded.load(path)
    for _ in range(10):
        assert_same_batches(learn(loaded), learn(buffer))
        add(buffer)
        add(loaded)


@every_kind
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("added", [1, 17])
def test_a_loaded_buffer_goes_on_as_if_it_had_never_stopped(kind, added, n_step, tmp_path):
    make = partial(kind, n_step=n_step)
    holds_a_loaded_buffer_goes_on_as_if_it_had_never_stopped(make, tmp_path, added)


@pytest.mark.parametrize("bugged", [ForgetsMaximum, ForgetsGenerator, ForgetsPriorities])
def test_a_checkpoint_that_forgets_is_noticed(bugged, tmp_path):  # bug 24
    with pytest.raises(AssertionError):
        holds_a_loaded_buffer_goes_on_as_if_it_had_never_stopped(bugged, tmp_path)


@pytest.mark.parametrize("normalize", ["batch", "buffer", "none"])
def test_partly_filled_stacks_can_be_saved_and_empty_buffers_too(normalize, tmp_path):
    make = partial(PrioritizedReplayBuffer, 4, 2, runs=3, normalize=normalize)
    stack = make(seed=1)
    for added in range(3):
        path = tmp_path / f"{added}.npz"
        stack.save(path)
        loaded = make(seed=9)
        loaded.load(str(path))
        assert state(loaded) == state(stack)
        rows = np.ones((3, 2)), [1] * 3, [1] * 3, np.ones((3, 2)), [True] * 3
        stack.add(*rows, valid=[True, added > 0, False])


@every_kind
def test_the_file_is_where_it_was_asked_for(kind, tmp_path):
    for name in ("replay", "replay.npz", "replay.checkpoint"):
        used(kind).save(tmp_path / name)
        used(kind).load(str(tmp_path / name))
    assert len(list(tmp_path.iterdir())) == 3


@every_kind
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(kind, tmp_path, monkeypatch):
    path = tmp_path / "replay.npz"
    buffer = used(kind)
    buffer.save(path)
    old = path.read_bytes()

    def disk_full(file, **arrays):
        file.write(b"half of the new file")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", disk_full)
    with pytest.raises(OSError, match="No space left"):
        add(buffer).save(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        (partial(PrioritizedReplayBuffer, 6, 2), ["capacity = 6", "has 5"]),
        (partial(PrioritizedReplayBuffer, 5, 3), ["row = ", "(3,)", "(2,)"]),
        (partial(PrioritizedReplayBuffer, 5, 2, action_dtype=np.int32), ["row = ", "<i4", "<i8"]),
        (partial(PrioritizedReplayBuffer, 5, 2, runs=2), ["runs = 2", "has None"]),
        (partial(PrioritizedReplayBuffer, 5, 2, alpha=0.5), ["alpha = 0.5", "has 0.6"]),
        (
            partial(PrioritizedReplayBuffer, 5, 2, priority_epsilon=1e-3),
            ["priority_epsilon = 0.001", "has 1e-06"],
        ),
        (
            partial(PrioritizedReplayBuffer, 5, 2, normalize="buffer"),
            ["normalize = 'buffer'", "has 'batch'"],
        ),
        (partial(PrioritizedReplayBuffer, 5, 2, n_step=3), ["n_step = 3", "has 1"]),
        (partial(PrioritizedReplayBuffer, 5, 2, discount=0.9), ["discount = 0.9", "has 0.99"]),
        (partial(ReplayBuffer, 5, 2), ["sampler = 'uniform'", "has 'proportional'"]),
        (partial(RankBasedReplayBuffer, 5, 2), ["sampler = 'rank'", "has 'proportional'"]),
    ],
)
def test_a_file_with_other_settings_is_refused(saved, said, tmp_path):
    path = tmp_path / "replay.npz"
    saved().save(path)
    assert_load_fails(path, ValueError, said)


def assert_load_fails(path, error, said=()):
    buffer = used(PrioritizedReplayBuffer)
    before = state(buffer)
    with pytest.raises(error) as caught:
        buffer.load(path)
    assert all(part in str(caught.value) for part in ["path:", path.name, *said]), caught.value
    assert state(buffer) == before


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


def test_a_flipped_bit_is_noticed_or_does_not_matter(tmp_path):
    """All kinds of bytes: a few (dates, flags that nobody reads) leave the content intact."""
    path = tmp_path / "replay.npz"
    original = add(PrioritizedReplayBuffer(5, 2, seed=3), 7)
    original.save(path)
    data = path.read_bytes()
    buffer = PrioritizedReplayBuffer(5, 2, seed=4)
    refused = 0
    for position in range(0, len(data), 3):
        before = state(buffer)
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        try:
            buffer.load(path)
        except ValueError as error:
            refused += 1
            assert "path:" in str(error)
            assert state(buffer) == before
        else:
            assert state(buffer) == state(original)
            buffer = PrioritizedReplayBuffer(5, 2, seed=4)
    assert refused > 0.7 * len(data) / 3


def test_files_that_are_no_replay_buffers_are_refused(tmp_path):
    path = tmp_path / "file.npz"
    for content in (b"", b"hello", b"PK\x03\x04"):
        path.write_bytes(content)
        assert_load_fails(path, ValueError, ["damaged or incomplete"])
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    assert_load_fails(path, ValueError, ["damaged or incomplete"])
    np.savez(path, weights=np.zeros(3))
    assert_load_fails(path, ValueError, ["is not a saved replay buffer"])
    np.savez(path, settings=np.array([{}], dtype=object))  # a pickle could run any code
    assert_load_fails(path, ValueError, ["damaged or incomplete"])


def test_a_file_that_lacks_an_array_is_refused(tmp_path):
    path = tmp_path / "replay.npz"
    add(PrioritizedReplayBuffer(5, 2), 7).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    for name in arrays:
        np.savez(path, **{other: arrays[other] for other in arrays if other != name})
        assert_load_fails(path, ValueError)


# ---------------------------------------------------------------- bad input

NAN, INF = float("nan"), float("inf")


def update(indices, td_errors):
    return lambda buffer: buffer.update_priorities(indices, td_errors)


def sample(*arguments, **options):
    return lambda buffer: buffer.sample(*arguments, **options)


def adding_with(**wrong):
    row = {"observation": [0.0, 0.0], "action": 0, "reward": 0.0}
    row |= {"next_observation": [0.0, 0.0], "terminated": False}
    return lambda buffer: buffer.add(**row | wrong)


def extending_with(**wrong):
    columns = {"observations": np.zeros((9, 2)), "actions": [0] * 9, "rewards": [0.0] * 9}
    columns |= {"next_observations": np.zeros((9, 2)), "terminated": [False] * 9}
    return lambda buffer: buffer.extend(**columns | wrong)


BAD_CALLS = {
    "more than stored": (sample(6), ValueError, ["batch_size", "at most", "5", "got 6"]),
    "no batch": (sample(0), ValueError, ["batch_size", "at least 1", "got 0"]),
    "negative batch": (sample(-1), ValueError, ["batch_size", "at least 1", "got -1"]),
    "float batch": (sample(2.0), TypeError, ["batch_size", "integer", "got 2.0"]),
    "boolean batch": (sample(True), TypeError, ["batch_size", "integer", "got True"]),
    "beta > 1": (sample(2, beta=1.1), ValueError, ["beta", "[0, 1]", "got 1.1"]),
    "beta < 0": (sample(2, beta=-0.1), ValueError, ["beta", "[0, 1]", "got -0.1"]),
    "beta NaN": (sample(2, beta=NAN), ValueError, ["beta", "[0, 1]", "got nan"]),
    "beta text": (sample(2, beta="1"), TypeError, ["beta", "number", "got '1'"]),
    "beta None": (sample(2, beta=None), TypeError, ["beta", "number", "got None"]),
    "TD error NaN": (update([5, 6], [1.0, NAN]), ValueError, ["td_errors", "finite", "got nan"]),
    "TD error inf": (update([5, 6], [1.0, -INF]), ValueError, ["td_errors", "finite", "got -inf"]),
    "TD error huge": (update([5], [1e101]), ValueError, ["td_errors", "≤ 1e100", "got 1e+101"]),
    "TD errors short": (update([5, 6], [1.0]), ValueError, ["td_errors", "(2,)", "got (1,)"]),
    "TD errors (B, 1)": (update([5], [[1.0]]), ValueError, ["td_errors", "(1,)", "got (1, 1)"]),
    "TD error scalar": (update([5], 1.0), ValueError, ["td_errors", "(1,)", "got ()"]),
    "TD error text": (update([5], ["1"]), TypeError, ["td_errors", "numbers", "got <U1"]),
    "TD error None": (update([5], [None]), TypeError, ["td_errors", "numbers", "got object"]),
    "index too large": (update([5, 7], [1.0] * 2), IndexError, ["indices", "[0, 7)", "got 7"]),
    "index negative": (update([5, -1], [1.0] * 2), IndexError, ["indices", "[0, 7)", "got -1"]),
    "index float": (update([5.0], [1.0]), TypeError, ["indices", "integers", "got float64"]),
    "index boolean": (update([True], [1.0]), TypeError, ["indices", "integers", "got bool"]),
    "observation short": (
        adding_with(observation=[1.0]),
        ValueError,
        ["observation", "(2,)", "(1, 1)"],
    ),
    "observation long": (
        adding_with(next_observation=[1.0] * 3),
        ValueError,
        ["next_observation", "(2,)", "(1, 3)"],
    ),
    "observation text": (
        adding_with(observation=["a", "b"]),
        TypeError,
        ["observation", "float32", "got <U1"],
    ),
    "action float": (adding_with(action=0.5), TypeError, ["action", "int64", "got float64"]),
    "action array": (adding_with(action=[1]), ValueError, ["action", "()", "(1, 1)"]),
    "reward NaN": (adding_with(reward=NAN), ValueError, ["reward", "finite", "nan"]),
    "reward inf": (adding_with(reward=-INF), ValueError, ["reward", "finite", "-inf"]),
    "reward beyond float32": (adding_with(reward=1e39), ValueError, ["reward", "float32", "e+39"]),
    "reward text": (adding_with(reward="1"), TypeError, ["reward", "float32", "got <U1"]),
    "terminated 2": (adding_with(terminated=2), ValueError, ["terminated", "True or False", "2"]),
    "terminated None": (
        adding_with(terminated=None),
        ValueError,
        ["terminated", "True or False", "None"],
    ),
    "truncated 2": (adding_with(truncated=2), ValueError, ["truncated", "True or False", "2"]),
    "one observation": (
        extending_with(observations=[0.0, 0.0]),
        ValueError,
        ["observation", "(2,) per transition", "got (1, 2)", "runs = 1, transitions = 2"],
    ),
    "no observations": (extending_with(observations=0), ValueError, ["observation", "got (1,)"]),
    "an action too few": (
        extending_with(actions=[0] * 8),
        ValueError,
        ["action", "()", "got (1, 8)", "transitions = 9"],
    ),
    "one reward NaN": (
        extending_with(rewards=[0.0] * 8 + [NAN]),
        ValueError,
        ["reward", "finite", "nan"],
    ),
    "one terminated 2": (
        extending_with(terminated=[0] * 8 + [2]),
        ValueError,
        ["terminated", "True or False", "2"],
    ),
    "one for all": (extending_with(truncated=False), ValueError, ["truncated", "()", "got (1,)"]),
    "actions text": (
        extending_with(actions=["a"] * 9),
        TypeError,
        ["action", "int64", "got <U1"],
    ),
    "valid": (adding_with(valid=[True, True]), ValueError, ["valid", "each run", "True  True"]),
}


@every_kind
@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_input_is_named_and_changes_nothing(kind, case):
    call, error, said = BAD_CALLS[case]
    buffer = used(kind)
    before = state(buffer)
    with pytest.raises(error) as caught:
        call(buffer)
    assert all(part in str(caught.value) for part in said), caught.value
    assert state(buffer) == before


@every_kind
def test_nothing_can_be_sampled_before_anything_is_stored(kind):
    with pytest.raises(ValueError, match="batch_size: .* stored transitions, 0, got 1"):
        kind(5, 2).sample(1)


@every_kind
def test_a_stack_wants_a_row_for_each_run(kind):
    stack = kind(4, 1, runs=2, seed=0)
    row = {"observation": np.zeros((2, 1)), "action": [0, 0], "reward": [0, 0]}
    row |= {"next_observation": np.zeros((2, 1)), "terminated": [False, False]}
    stack.add(**row)
    before = state(stack)
    wrong_rows = {
        "observation": (np.zeros((3, 1)), r"\(1,\) per run, got \(3, 1\) with runs = 2"),
        "action": (0, r"\(\) per run, got \(\) with runs = 2"),
        "truncated": ([True], r"\(\) per run, got \(1,\) with runs = 2"),
        "valid": ([True], r"True or False for each run, got \[ True\]"),
    }
    for name, (value, said) in wrong_rows.items():
        with pytest.raises(ValueError, match=f"{name}: .*{said}"):
            stack.add(**row | {name: value})
    with pytest.raises(ValueError, match=r"valid: .*for each run, got \[1 0\]"):
        stack.add(**row, valid=[1, 0])
    for indices in ([0, 0], [[0]], [[0], [0], [0]]):
        with pytest.raises(ValueError, match=r"indices: must have the shape \(2, batch\)"):
            stack.update_priorities(indices, np.ones(np.shape(indices)))
    with pytest.raises(IndexError, match=r"indices: must be in \[0, 1\), got 1"):
        stack.update_priorities([[0], [1]], [[1.0], [1.0]])
    assert state(stack) == before


@every_kind
@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"capacity": 0}, ValueError, ["capacity", "at least 1", "got 0"]),
        ({"capacity": 2.0}, TypeError, ["capacity", "integer", "got 2.0"]),
        ({"capacity": True}, TypeError, ["capacity", "integer", "got True"]),
        ({"observation_shape": 0}, ValueError, ["observation_shape", "at least 1", "got 0"]),
        ({"observation_shape": (2, -1)}, ValueError, ["observation_shape", "at least 1", "got -1"]),
        ({"observation_shape": "ab"}, TypeError, ["observation_shape", "integer", "got 'ab'"]),
        ({"runs": 0}, ValueError, ["runs", "at least 1", "got 0"]),
        ({"runs": 1.5}, TypeError, ["runs", "integer", "got 1.5"]),
        ({"n_step": 0}, ValueError, ["n_step", "at least 1", "got 0"]),
        ({"n_step": 6}, ValueError, ["n_step", "at most capacity (5)", "got 6"]),
        ({"n_step": 2.0}, TypeError, ["n_step", "integer", "got 2.0"]),
        ({"discount": 1.1}, ValueError, ["discount", "[0, 1]", "got 1.1"]),
        ({"discount": NAN}, ValueError, ["discount", "[0, 1]", "got nan"]),
        ({"discount": None}, TypeError, ["discount", "number", "got None"]),
        ({"seed": -1}, ValueError, ["seed", "at least 0", "got -1"]),
        ({"seed": 0.5}, TypeError, ["seed", "integer", "got 0.5"]),
        ({"runs": 3, "seed": [1, 2]}, ValueError, ["seed", "3 runs", "got 2"]),
    ],
)
def test_a_buffer_that_makes_no_sense_is_refused(kind, arguments, error, said):
    with pytest.raises(error) as caught:
        kind(**{"capacity": 5, "observation_shape": 2} | arguments)
    assert all(part in str(caught.value) for part in said), caught.value


@pytest.mark.parametrize("alpha", [-0.1, 1.1, NAN, INF])
@pytest.mark.parametrize("kind", [PrioritizedReplayBuffer, RankBasedReplayBuffer])
def test_alpha_is_between_0_and_1(kind, alpha):
    with pytest.raises(ValueError, match=rf"alpha: must be in \[0, 1\], got {alpha}"):
        kind(5, 2, alpha=alpha)
