"""LAP against its formula: priorities, weights, and what a wrong floor would do."""

import numpy as np
import pytest

from per_tutorial.replay import LapSampler, Replay, TransitionStorage

TD_ERRORS = np.array([0.0, -0.009, 0.01, 0.05, -2.0, 7.0, 1e-30])


def replay_of(sampler=LapSampler, td_errors=TD_ERRORS, **settings):
    """A buffer whose transitions were all replayed once."""
    replay = Replay(TransitionStorage(9, ()), sampler(9, [4], **settings))
    for number in range(len(td_errors)):
        replay.add(number, 0, 0.0, number, False)
    replay.update_priorities(np.arange(len(td_errors)), td_errors)
    return replay


def plain_probabilities(td_errors, alpha, kappa):
    priorities = [max(abs(td_error), kappa) ** alpha for td_error in td_errors]
    return np.array(priorities) / sum(priorities)


def holds_priorities_are_the_formula(sampler):
    for alpha in (0.0, 0.4, 1.0):
        for kappa in (0.01, 1.0, 30.0):
            replay = replay_of(sampler, alpha=alpha, kappa=kappa)
            expected = plain_probabilities(TD_ERRORS, alpha, kappa)
            np.testing.assert_allclose(replay.probabilities[:7], expected, rtol=1e-12)


class AddsKappa(LapSampler):
    """κ as if it were PER's ε."""

    def update(self, slots, td_errors):
        self._write(slots, np.abs(td_errors) + self.kappa)


class FloorsThePower(LapSampler):
    """max(|δ|^α, κ)."""

    def update(self, slots, td_errors):
        floored = np.maximum(np.abs(td_errors) ** self.alpha, self.kappa)
        self._write(slots, floored ** (1 / self.alpha) if self.alpha else floored)


def test_priorities_are_the_formula():
    holds_priorities_are_the_formula(LapSampler)


@pytest.mark.parametrize("bugged", [AddsKappa, FloorsThePower])
def test_another_floor_is_noticed(bugged):
    with pytest.raises(AssertionError):
        holds_priorities_are_the_formula(bugged)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_nothing_is_corrected_by_weights(beta):
    assert replay_of(kappa=0.01).sample(5, beta).weights.tolist() == [1.0] * 5


@pytest.mark.parametrize(("kappa", "first"), [(0.01, 1.0), (1.0, 1.0), (5.0, 5.0)])
def test_newcomers_get_the_largest_priority_and_none_is_below_kappa(kappa, first):
    sampler = LapSampler(9, [4], kappa=kappa, alpha=1.0)
    replay = Replay(TransitionStorage(9, ()), sampler)
    replay.add(0, 0, 0.0, 0, False)
    assert sampler.sums.total.tolist() == [first]
    replay.update_priorities([0], [-50.0])
    replay.update_priorities([0], [0.0])
    replay.add(1, 0, 0.0, 1, False)
    assert sampler.sums.get([[0, 1]]).tolist() == [[kappa, 50.0]]


@pytest.mark.parametrize(
    ("settings", "exception", "message"),
    [
        ({"kappa": 0}, ValueError, "kappa: must be greater than 0, got 0"),
        ({"kappa": 1e21}, ValueError, r"kappa: must be in \[1e-20, 1e\+20\], got 1e\+21"),
        ({"kappa": "1"}, TypeError, "kappa: must be a number, got '1'"),
        ({"alpha": 1.5}, ValueError, r"alpha: must be in \[0, 1\], got 1.5"),
    ],
)
def test_bad_settings_are_refused(settings, exception, message):
    with pytest.raises(exception, match=message):
        LapSampler(9, [0], **settings)
