"""The proportional sampler's settings and limits; the state machine tells what is drawn."""

import numpy as np
import pytest

from per_tutorial.replay import ProportionalSampler, Replay, TransitionStorage
from per_tutorial.replay.random_streams import seeds_for
from per_tutorial.replay.samplers import proportional as samplers
from per_tutorial.replay.samplers.proportional import sample_stratified
from per_tutorial.replay.trees import find_leaves


def make_buffer(capacity, *, sampler=ProportionalSampler, seed=0, **options):
    """A buffer for one run; its transitions are plain numbers."""
    return Replay(TransitionStorage(capacity, ()), sampler(capacity, seeds_for(seed, 1), **options))


def add(buffer, count):
    for _ in range(count):
        number = int(buffer.storage.added[0])
        buffer.add(number, number, number, number + 0.5, number % 2 == 1)


def with_td_errors(make, capacity, td_errors, **options):
    """A buffer that stores as many transitions as there are TD errors, all of them
    replayed once.
    """
    buffer = make(capacity, **options)
    add(buffer, len(td_errors))
    stored = np.arange(len(td_errors))[-capacity:]
    buffer.update_priorities(stored, np.asarray(td_errors)[stored])
    return buffer


def expected_probabilities(td_errors, alpha=0.6, priority_epsilon=1e-6):
    scaled = (np.abs(td_errors) + priority_epsilon) ** alpha
    return scaled / scaled.sum()


TD_ERRORS = np.array([0.5, -2.0, 0.0, 0.05, 7.0, -0.3, 1.0])


# ---------------------------------------------------------------- priorities


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("priority_epsilon", [1e-6, 0.1])
def test_alpha_and_epsilon(alpha, priority_epsilon):
    options = {"alpha": alpha, "priority_epsilon": priority_epsilon}
    buffer = with_td_errors(make_buffer, 7, TD_ERRORS, **options)
    expected = expected_probabilities(TD_ERRORS, **options)
    np.testing.assert_allclose(buffer.probabilities(), expected, rtol=1e-12)


def test_float32_td_errors_give_float64_priorities():
    """Under NEP 50 a float32 TD error makes everything it touches float32."""
    td_errors = np.array([0.1, 1e-7, 3.3], dtype=np.float32)
    buffer = with_td_errors(make_buffer, 3, td_errors)
    exact = (np.abs(td_errors.astype(np.float64)) + 1e-6) ** 0.6
    np.testing.assert_allclose(buffer.sampler.sums.get([[0, 1, 2]])[0], exact, rtol=1e-15)


def test_weights_may_be_divided_by_the_largest_of_a_buffer_that_is_not_full():
    buffer = with_td_errors(make_buffer, 12, TD_ERRORS, normalize="buffer")
    batch, smallest = buffer.sample(7, beta=0.7), buffer.probabilities().min()
    np.testing.assert_allclose(batch.weights, (batch.probabilities / smallest) ** -0.7, rtol=1e-5)


# ---------------------------------------------------------------- what can be drawn


def test_no_unfilled_slot_is_drawn_with_the_largest_random_number(monkeypatch):
    """Then (k + u) / batch · total rounds to the total itself, which is in no leaf's range."""
    monkeypatch.setattr(samplers, "sample_stratified", sample_stratified.py_func)
    monkeypatch.setattr(samplers, "next_uniform", lambda states, run: np.nextafter(1.0, 0.0))

    buffer = with_td_errors(make_buffer, 8, [0.1, 0.2, 0.3, 0.4, 0.5])
    assert buffer.sample(3).indices[-1] == 4


def test_the_smallest_random_number_draws_the_first_slot_with_a_priority(monkeypatch):
    monkeypatch.setattr(samplers, "sample_stratified", sample_stratified.py_func)
    monkeypatch.setattr(samplers, "next_uniform", lambda states, run: 0.0)
    monkeypatch.setattr(samplers, "find_leaves", find_leaves.py_func)
    buffer = make_buffer(4)
    add(buffer, 4)
    assert buffer.sample(4).indices.tolist() == [0, 1, 2, 3]  # each range starts at a boundary
    buffer.sampler.sums.set([[0]], 0.0)
    assert buffer.sample(1).indices.tolist() == [1]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"alpha": 1.1}, ValueError, ["alpha", "[0, 1]", "got 1.1"]),
        ({"alpha": "0.6"}, TypeError, ["alpha", "number", "got '0.6'"]),
        ({"priority_epsilon": 0.0}, ValueError, ["priority_epsilon", "than 0", "got 0.0"]),
        ({"priority_epsilon": 9e-21}, ValueError, ["priority_epsilon", "[1e-20", "got 9e-21"]),
        ({"priority_epsilon": 2e20}, ValueError, ["priority_epsilon", "1e+20]", "got 2e+20"]),
        ({"normalize": "max"}, ValueError, ["normalize", "'batch', 'buffer', 'none'", "'max'"]),
    ],
)
def test_bad_settings_are_named(options, error, said):
    with pytest.raises(error) as caught:
        ProportionalSampler(4, [0], **options)
    assert all(part in str(caught.value) for part in said), caught.value


@pytest.mark.parametrize("normalize", ["batch", "buffer", "none"])
@pytest.mark.parametrize("epsilon", [1e-20, 1e20])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_weights_stay_numbers_at_both_ends_of_what_is_allowed(normalize, epsilon, alpha):
    options = {"alpha": alpha, "priority_epsilon": epsilon, "normalize": normalize}
    for td_errors in ([0.0] * 5, [1e100] * 5, [0.0, 1e100, 0.0, 1e-100, 1.0]):
        buffer = with_td_errors(make_buffer, 8, td_errors, **options)
        restored = make_buffer(8, **options)
        restored.restore(buffer.state)
        assert (restored.sample(5).weights == buffer.sample(5).weights).all()
        for beta in (0.0, 0.4, 1.0):
            for _ in range(20):
                weights = buffer.sample(5, beta).weights
                assert np.isfinite(weights).all()
                # Beside the largest of the "buffer", the float32 of a weight may be 0.
                assert (weights > 0).all() or (normalize == "buffer" and (weights >= 0).all())
