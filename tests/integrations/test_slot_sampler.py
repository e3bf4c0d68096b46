"""Draws of slots that are filled in any order."""

import copy
import pickle

import numpy as np
import pytest
from slot_checks import assert_paper

from per_tutorial.integrations.slot_sampler import MAX_PENDING, SlotSampler

ORDER = [7, 2, 9, 0, 5]


def filled(capacity=10, order=ORDER, **settings):
    draws = SlotSampler(capacity, **({"seed": 0} | settings))
    for slot in order:
        draws.write([slot])
    return draws


@pytest.mark.parametrize("sampler", ["proportional", "rank", "uniform"])
def test_only_written_slots_are_drawn_in_whatever_order_they_were_written(sampler):
    draws = filled(sampler=sampler)
    slots, weights = draws.sample(200)
    assert set(slots.tolist()) == set(ORDER)
    assert (weights == 1).all() or sampler == "rank"
    assert set(np.flatnonzero(draws.probabilities())) == set(ORDER)
    assert draws.probabilities().sum() == pytest.approx(1)


@pytest.mark.parametrize("rewritten", [[], [9], [5, 9, 9, 7]])
def test_frequencies_and_weights_are_the_papers(rewritten):
    draws = filled(alpha=0.7, beta=0.6)
    errors = np.array([0.0, -3.0, 0.5, 1.5, -0.2])
    draws.update(ORDER, errors)
    draws.write(rewritten)
    largest = np.isin(ORDER, rewritten)
    slots, weights = draws.sample(3000)
    assert_paper(slots, weights, ORDER, np.where(largest, 3.0, errors), 0.7, 0.6)


@pytest.mark.parametrize("slots", [[4, 4], [4, 1, 4]])
def test_a_slot_that_is_written_twice_in_one_call_counts_once(slots):
    draws, twin = filled(), filled()
    draws.write(slots)
    twin.write(sorted(set(slots)))
    assert draws.filled == twin.filled == len(set(ORDER) | set(slots))
    np.testing.assert_array_equal(draws.probabilities(), twin.probabilities())


def test_errors_reach_only_the_transitions_that_were_drawn():
    draws = filled(alpha=1.0)
    slots, _ = draws.sample(30)
    gone = int(slots[0])
    draws.write([gone])
    before = draws.probabilities()[gone]
    draws.update(slots, np.zeros(30))
    shares = draws.probabilities()
    assert before == pytest.approx(0.2) and shares[gone] > 0.99
    draws.update(slots, np.zeros(30))  # a second time, it is the new one that is meant
    assert draws.probabilities()[gone] == pytest.approx(0.2)


def test_several_minibatches_may_be_on_their_way():
    draws = filled(alpha=1.0)
    batches = [draws.sample(10)[0] for _ in range(4)]
    draws.write([9])
    for slots in reversed(batches):
        assert 9 in slots
        draws.update(slots, np.zeros(10))
    assert draws.probabilities()[9] > 0.99
    for _ in range(3 * MAX_PENDING):
        draws.sample(10)
    assert len(draws._awaited) == MAX_PENDING  # who never answers costs no more than this


def test_newcomers_get_the_largest_priority_so_far():
    draws = filled(alpha=0.5)
    draws.update([7], [-8.0])
    draws.write([3, 4])
    shares = draws.probabilities()
    assert shares[3] == shares[4] == shares[7] > shares[2]
    draws.update([7], [0.0])
    draws.write([1])
    assert draws.probabilities()[1] == draws.probabilities()[3]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
@pytest.mark.parametrize("sampler", ["proportional", "rank"])
def test_copies_and_states_go_on_alike(copied, sampler):
    draws = filled(sampler=sampler, beta=0.9)
    draws.update(ORDER, np.arange(5.0))
    restored = SlotSampler(10, sampler=sampler, seed=77)
    restored.restore(copy.deepcopy(draws.state))
    twins = [draws, copied(draws), restored]
    for _ in range(3):
        minibatches = [twin.sample(20) for twin in twins]
        for slots, weights in minibatches[1:]:
            np.testing.assert_array_equal(slots, minibatches[0][0])
            np.testing.assert_array_equal(weights, minibatches[0][1])
        for twin in twins:
            twin.write([1, 5, 8])
            twin.update(minibatches[0][0], np.linspace(-1, 4, 20))
    draws.write([3])
    assert draws.filled == twins[1].filled + 1


@pytest.mark.parametrize("sampler", ["proportional", "rank"])
def test_a_state_may_have_rewritten_slots_before_all_are_filled(sampler):
    draws, restored = filled(sampler=sampler), SlotSampler(10, sampler=sampler, seed=77)
    draws.write([7, 9])
    assert (draws.filled, draws.added) == (5, 7)
    restored.restore(copy.deepcopy(draws.state))
    for one in (draws, restored):
        one.write([1, 2])
    np.testing.assert_array_equal(restored.probabilities(), draws.probabilities())
    np.testing.assert_array_equal(restored.sample(20)[0], draws.sample(20)[0])


def test_states_that_contradict_themselves_are_refused():
    draws = filled()
    before = copy.deepcopy(draws.state)
    for wrong in (
        {"slots": before["slots"][:4]},
        {"slots": before["slots"] + 5},
        {"ids": before["ids"].astype(float)},
        {"beta": np.array([1.5])},
        {"sampler.sums": np.zeros(3)},
    ):
        with pytest.raises(ValueError, match="state: |beta: "):
            draws.restore(before | wrong)
    for name, array in draws.state.items():
        np.testing.assert_array_equal(array, before[name])


def test_bad_input_is_refused_and_changes_nothing():
    draws = filled()
    shares = draws.probabilities()
    for slots, errors, kind, message in [
        ([7, 3], [1.0, 2.0], IndexError, "indices: no transition is stored at 3"),
        ([10], [1.0], IndexError, r"must be in \[0, 10\), got 10"),
        ([-1], [1.0], IndexError, "got -1"),
        ([7, 2], [1.0, np.nan], ValueError, "td_errors: must be finite"),
        ([7, 2], [1.0], ValueError, "td_errors: must have the shape of indices"),
        ([0.5], [1.0], TypeError, "indices: must be integers"),
    ]:
        with pytest.raises(kind, match=message):
            draws.update(slots, errors)
    for size in (0, -1, 2.5):
        with pytest.raises((ValueError, TypeError), match="batch_size"):
            draws.sample(size)
    with pytest.raises(ValueError, match="beta"):
        draws.beta = 1.1
    draws.beta = 1 + 1e-9
    assert draws.beta == 1
    with pytest.raises(IndexError, match="indices"):
        draws.write([0, 10])
    with pytest.raises(ValueError, match="sample: the replay buffer is empty"):
        SlotSampler(3).sample(1)
    np.testing.assert_array_equal(draws.probabilities(), shares)


@pytest.mark.parametrize("settings", [{"sampler": "none"}, {"alpha": 2.0}, {"beta": -1.0}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        SlotSampler(4, **settings)
    with pytest.raises(TypeError, match="weight_norm"):
        SlotSampler(4, weight_norm=True)
