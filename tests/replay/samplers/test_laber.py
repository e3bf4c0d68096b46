"""LaBER against its formula: which candidates are kept, how often, and with which weight."""

import numpy as np
import pytest
from scipy import stats

from per_tutorial.replay import LaberSampler, Replay, TransitionStorage

TD_ERRORS = np.array([[0.5, -2.0, 0.0, 1.0], [3.0, 0.1, -0.1, 0.0]])


def chosen_from(sampler, td_errors=TD_ERRORS, batch_size=2):
    sampler.sample(td_errors.shape[1], np.array([9] * len(td_errors)), 0.4)
    return sampler.choose(td_errors, batch_size, 0.4)


@pytest.mark.parametrize("kind", ["mean", "lazy", "max"])
def test_weights_are_the_formula(kind):
    sampler = LaberSampler(9, [0, 1], candidates=2, laber_weights=kind, priority_epsilon=0.25)
    for _ in range(20):
        chosen, weights = chosen_from(sampler)
        for run in range(2):
            sizes = [abs(error) + 0.25 for error in TD_ERRORS[run]]
            kept = [1 / sizes[k] for k in chosen[run]]
            scale = {"mean": sum(sizes) / 4, "lazy": 1.0, "max": 1 / max(kept)}[kind]
            np.testing.assert_allclose(weights[run], np.array(kept) * scale, rtol=1e-12)


class WeightsOfTheMinibatch(LaberSampler):
    """The mean priority of what was kept, in place of that of all candidates."""

    def choose(self, td_errors, batch_size, beta):
        chosen, weights = super().choose(td_errors, batch_size, beta)
        priorities = np.abs(td_errors) + self.priority_epsilon
        kept = np.take_along_axis(priorities, chosen, axis=1)
        return chosen, weights * kept.mean(axis=1) / priorities.mean(axis=1)


class SquaredErrors(LaberSampler):
    def choose(self, td_errors, batch_size, beta):
        return super().choose(td_errors**2, batch_size, beta)


def holds_candidates_are_kept_in_proportion_and_the_mean_is_unbiased(make):
    """Chi-square; and the weighted mean of any numbers is on average that of all candidates."""
    sampler = make(9, [0, 1], candidates=2, priority_epsilon=0.25)
    drawn = [chosen_from(sampler) for _ in range(6000)]
    features = np.array([[1.0, -2.0, 5.0, 0.5], [0.1, 4.0, -1.0, 2.0]])
    for run in range(2):
        chosen = np.array([each[0][run] for each in drawn])
        weights = np.array([each[1][run] for each in drawn])
        priorities = np.abs(TD_ERRORS[run]) + 0.25
        shares = priorities / priorities.sum()
        counts = np.bincount(chosen.ravel(), minlength=4)
        assert stats.chisquare(counts, 12000 * shares).pvalue > 1e-4
        means = (weights * features[run][chosen]).mean(axis=1)
        error = means.std() / np.sqrt(len(means))
        assert abs(means.mean() - features[run].mean()) < 4 * error


def test_candidates_are_kept_in_proportion_and_the_mean_is_unbiased():
    holds_candidates_are_kept_in_proportion_and_the_mean_is_unbiased(LaberSampler)


@pytest.mark.parametrize("bugged", [WeightsOfTheMinibatch, SquaredErrors])
def test_bugs_are_noticed(bugged):
    with pytest.raises(AssertionError):
        holds_candidates_are_kept_in_proportion_and_the_mean_is_unbiased(bugged)


def test_without_errors_the_draw_is_uniform_and_weights_are_one():
    sampler = LaberSampler(9, [0], candidates=2)
    for _ in range(50):
        chosen, weights = chosen_from(sampler, np.zeros((1, 4)))
        assert ((chosen >= 0) & (chosen < 4)).all() and weights.tolist() == [[1.0, 1.0]]


def test_the_largest_chance_chooses_the_last_that_has_a_share():
    sampler = LaberSampler(9, [0], candidates=2, priority_epsilon=1e-20)
    sampler.sample(4, np.array([9]), 0.4)
    sampler._chances[:] = np.nextafter(1.0, 0.0)
    chosen, _ = sampler.choose(np.array([[1.0, 3.0, 0.0, 0.0]]), 2, 0.4)
    assert chosen.tolist() == [[1, 1]]


def test_errors_that_cannot_be_computed_leave_the_streams_where_they_would_be():
    """A call whose TD errors fail has drawn: what comes after does not depend on where it
    failed.
    """

    def fails(batch):
        raise RuntimeError("no network")

    buffers = [Replay(TransitionStorage(9, ()), LaberSampler(9, [3])) for _ in range(2)]
    for buffer in buffers:
        for number in range(9):
            buffer.add(number, 0, 0.0, number, False)
    with pytest.raises(RuntimeError, match="no network"):
        buffers[0].sample(2, td_errors=fails)
    buffers[1].sample(2, td_errors=lambda batch: batch.indices)
    batches = [buffer.sample(2, td_errors=lambda batch: batch.indices) for buffer in buffers]
    assert batches[0].indices.tolist() == batches[1].indices.tolist()


@pytest.mark.parametrize(
    ("settings", "exception", "message"),
    [
        ({"candidates": 0}, ValueError, "candidates: must be at least 1, got 0"),
        ({"candidates": 2.0}, TypeError, "candidates: must be an integer, got 2.0"),
        ({"priority_epsilon": 0}, ValueError, "priority_epsilon: must be greater than 0, got 0"),
        (
            {"laber_weights": "none"},
            ValueError,
            "laber_weights: must be one of 'mean', 'lazy', 'max', got 'none'",
        ),
    ],
)
def test_bad_settings_are_refused(settings, exception, message):
    with pytest.raises(exception, match=message):
        LaberSampler(9, [0], **settings)


def test_errors_of_another_draw_are_refused():
    sampler = LaberSampler(9, [0], candidates=2)
    for batch_size, td_errors in [(2, np.ones((1, 4))), (3, np.ones((1, 5)))]:
        with pytest.raises(ValueError, match="td_errors: must be those of the last draw"):
            sampler.choose(td_errors, batch_size, 0.4)  # nothing was drawn yet
