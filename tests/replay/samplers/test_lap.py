"""LAP against its formula."""

import numpy as np
import pytest

from per_tutorial.replay import LapSampler, Replay, TransitionStorage

TD_ERRORS = np.array([0.0, -0.009, 0.01, 0.05, -2.0, 7.0, 1e-30])


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("kappa", [0.01, 1.0, 30.0])
def test_priorities_are_the_formula(alpha, kappa):
    replay = Replay(TransitionStorage(9, ()), LapSampler(9, [4], alpha=alpha, kappa=kappa))
    assert replay.settings["kappa"] == kappa
    for number in range(9):
        replay.add(number, 0, 0.0, number, False)
    replay.update_priorities(np.arange(7), TD_ERRORS)
    new = [max(1.0, kappa)] * 2
    expected = np.append(np.maximum(np.abs(TD_ERRORS), kappa), new) ** alpha
    np.testing.assert_allclose(replay.probabilities(), expected / expected.sum(), rtol=1e-12)


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
