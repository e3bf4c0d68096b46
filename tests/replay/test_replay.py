"""Replay buffers over their whole life: what they keep, hand out and take back.

What is drawn how often is in `samplers/`. As there, a function named `holds_…` states a property of
the buffers that `make(...)` makes: real ones have it, those with the bug put in must fail it.
"""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NaivePrioritizedReplay, NaiveStream
from replay_helpers import add, assert_same_batches, bits, every_kind, learn, used, with_sampler

from per_tutorial.replay import (
    PrioritizedReplayBuffer,
    ProportionalSampler,
    ReplayBuffer,
    UniformSampler,
)

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
    before = bits(buffer)["storage.rows"]
    for field in buffer.sample(2):
        field[...] = 0
    assert bits(buffer)["storage.rows"] == before


def holds_newcomers_keep_their_priority(make):
    buffer = add(make(4, 2, alpha=1.0), 4)
    numbers = [0, 1, 2, 3]  # were sampled; then 4 and 5 take the slots of 0 and 1
    add(buffer, 2)
    buffer.update_priorities(numbers, [7.0, 7.0, 3.0, 3.0])
    assert buffer.probabilities == pytest.approx(np.array([1, 1, 3, 3]) / 8)
    assert buffer.sampler.largest_priority == pytest.approx(3.0)


def test_a_transition_overwritten_since_it_was_sampled_is_skipped():
    holds_newcomers_keep_their_priority(PrioritizedReplayBuffer)


def test_td_errors_may_come_from_torch():
    buffer, other = used(PrioritizedReplayBuffer), used(PrioritizedReplayBuffer)
    buffer.update_priorities([3, 4], torch.tensor([0.5, -2.0], requires_grad=True))
    other.update_priorities([3, 4], [0.5, -2.0])
    assert bits(buffer) == bits(other)


# ---------------------------------------------------------------- many at once


def holds_extending_is_adding_one_by_one(make, lengths, capacity=5, runs=None, **options):
    """Chunks of random transitions, training in between; the buffers stay the same to the bit."""
    together, single = (make(capacity, 2, runs=runs, seed=4, **options) for _ in range(2))
    rng = np.random.default_rng(0)
    for length in lengths:
        shape = (runs or 1, length)
        columns = [
            rng.normal(size=(*shape, 2)),
            rng.integers(9, size=shape),
            rng.normal(size=shape),
        ]
        columns += [columns[0] + 1, rng.random(shape) < 0.1, rng.random(shape) < 0.1]
        together.extend(*(columns if runs else [column[0] for column in columns]))
        for k in range(length):
            fields = [column[:, k] for column in columns]
            single.add(*(fields if runs else [field[0] for field in fields]))
        if len(single):
            assert_same_batches(learn(together, 2, len(single)), learn(single, 2, len(single)))
        assert bits(together) == bits(single)


@pytest.mark.slow
@every_kind
@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.integers(0, 30), max_size=8), st.data(), st.sampled_from([None, 3]))
def test_extending_is_adding_one_by_one(kind, lengths, data, runs):
    capacity = data.draw(st.integers(1, 12))
    n_step = data.draw(st.integers(1, capacity))
    holds_extending_is_adding_one_by_one(kind, lengths, capacity, runs, n_step=n_step)


@every_kind
def test_extending_needs_no_word_on_truncation_and_takes_lists(kind):
    together, single = kind(3, 2, seed=0), kind(3, 2, seed=0)
    together.extend([[0, 0], [1, -1]], [0, 1], [0, 0.5], [[1, 0], [2, -1]], [True, False])
    assert_same_batches([together.sample(2)], [add(single, 2).sample(2)])
    assert not together.storage.rows["truncated"].any()


@every_kind
def test_extending_takes_the_columns_of_a_table(kind):
    one, other = add(kind(8, 2, seed=0), 5), kind(8, 2, seed=0)
    table = one.storage.rows[0, :5]  # its columns lie apart in memory
    other.extend(*(table[name] for name in table.dtype.names))
    assert_same_batches([one.sample(4)], [other.sample(4)])


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


def test_a_stack_is_as_long_as_its_shortest_run():
    stack = ReplayBuffer(4, 1, runs=2)
    rows = np.zeros((2, 1)), [0, 0], [0, 0], np.zeros((2, 1)), [False, False]
    stack.add(*rows, valid=[True, False])
    assert len(stack) == 0 and stack.storage.ring.sizes.tolist() == [1, 0]
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
        return bits(used(kind, capacity=20, seed=seed))

    assert life(1) == life(1)
    assert life(1) != life(2)
    assert life(None) != life(None)


@pytest.mark.parametrize(("number", "steps"), [(float, 1_000), (np.float32, 50)])
def test_a_beta_that_was_raised_step_by_step_may_end_a_rounding_error_above_one(number, steps):
    beta = number(0.4)
    for _ in range(steps):
        beta += number(0.6 / steps)
    assert beta > 1
    buffers = [used(PrioritizedReplayBuffer) for _ in range(2)]
    batches = [buffer.sample(3, each) for buffer, each in zip(buffers, (beta, 1.0), strict=True)]
    np.testing.assert_array_equal(batches[0].weights, batches[1].weights)
