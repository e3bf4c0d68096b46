"""Replay buffers by their public names: what the state machine does not tell."""

import numpy as np
import pytest
import torch
from replay_helpers import add, assert_same_batches, bits, every_kind, used

from per_tutorial.replay import PrioritizedReplayBuffer


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
        "weights": ((4,), np.float32),
        "indices": ((4,), np.int64),
        "discounts": ((4,), np.float32),
        "probabilities": ((4,), np.float32),
    }
    assert batch.observations.flags.c_contiguous and batch.next_observations.flags.c_contiguous
    np.testing.assert_array_equal(batch.next_observations[0], picture + 1)


@every_kind
def test_a_batch_is_a_copy(kind):
    buffer = add(kind(2, 2, seed=0), 2)
    before = bits(buffer)["storage.rows"]
    for field in buffer.sample(2):
        field[...] = 0
    assert bits(buffer)["storage.rows"] == before


def test_td_errors_may_come_from_torch():
    buffer, other = used(PrioritizedReplayBuffer), used(PrioritizedReplayBuffer)
    buffer.update_priorities([3, 4], torch.tensor([0.5, -2.0], requires_grad=True))
    other.update_priorities([3, 4], [0.5, -2.0])
    assert bits(buffer) == bits(other)


def test_probabilities_go_by_id_also_where_the_ring_has_wrapped():
    buffer = used(PrioritizedReplayBuffer)  # of 7 transitions, the last 5 are stored
    shares = buffer.probabilities()
    assert shares.shape == (5,) and np.isclose(shares.sum(), 1) and len(set(shares)) > 1
    batch = buffer.sample(3)
    np.testing.assert_allclose(batch.probabilities, shares[batch.indices - 2], rtol=1e-6)
    assert buffer.probabilities([1, 6, 2]).tolist() == [0, shares[4], shares[0]]
    with pytest.raises(IndexError, match=r"indices: must be in \[0, 7\), got 7"):
        buffer.probabilities([7])


# ---------------------------------------------------------------- many at once


@every_kind
def test_extending_needs_no_word_on_truncation_and_takes_lists(kind):
    together, single = kind(3, 2, seed=0), kind(3, 2, seed=0)
    together.extend([[0, 0], [1, -1]], [0, 1], [0, 0.5], [[1, 0], [2, -1]], [True, False])
    assert_same_batches([together.sample(2)], [add(single, 2).sample(2)])
    together.extend([[3, 1]], [0], [0], [[4, 1]], [False], np.False_)
    together.extend(np.zeros((0, 2)), np.zeros(0, int), [], np.zeros((0, 2)), [])
    assert together.storage.added == 3 and not together.storage.rows["truncated"].any()


# ---------------------------------------------------------------- runs side by side


@every_kind
def test_a_run_is_the_buffer_of_its_seed_bit_for_bit(kind):
    """Three runs with rewards and TD errors of their own, together and alone."""
    runs, rng = 3, np.random.default_rng(0)
    stack = kind(5, 1, runs=runs, seed=[11, 5, 8], n_step=3)
    alone = [kind(5, 1, seed=seed, n_step=3) for seed in (11, 5, 8)]
    for step in range(40):
        seen, reward = rng.normal(size=(runs, 1)), rng.normal(size=runs)
        fields = seen, rng.integers(2, size=runs), reward, seen + 1, rng.random(runs) < 0.1
        stack.add(*fields)
        for run, buffer in enumerate(alone):
            buffer.add(*(field[run] for field in fields))
        if step >= 3:
            together, batches = stack.sample(3), [buffer.sample(3) for buffer in alone]
            assert_same_batches(zip(*together, strict=True), batches)
            td_errors = rng.normal(size=(runs, 3)) * [[1.0], [10.0], [100.0]]
            stack.update_priorities(together.indices, td_errors)
            for buffer, batch, errors in zip(alone, batches, td_errors, strict=True):
                buffer.update_priorities(batch.indices, errors)


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
