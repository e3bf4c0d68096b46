"""Worlds with knobs: many walks against one, and what a random policy meets."""

import numpy as np
import pytest

from per_tutorial.worlds.knobs import Knobs, experience

WORLDS = [
    Knobs(n=2),
    Knobs(n=5, noise=0.5),
    Knobs(n=6, slip=0.2),
    Knobs(n=4, slip=0.4, outliers=0.1),
]


def one_step(knobs, state, action, slip, noise, outlier):
    """The rules of the world in plain words, for one walk."""
    right = action == (1 if state % 2 else 0)
    if slip < knobs.slip:
        right = not right
    reward = knobs.noise * noise
    if outlier < knobs.outliers:
        reward += 10.0 if outlier < knobs.outliers / 2 else -10.0
    if not right:
        return reward, state, True
    if state == knobs.n - 1:
        return reward + 1, state, True
    return reward, state + 1, False


@pytest.mark.parametrize("knobs", WORLDS, ids=str)
def test_many_walks_are_one_walk_many_times(knobs):
    met, state = experience(knobs, [3, 8], 500), 0
    rng = np.random.default_rng((8, 10))
    actions = rng.integers(2, size=500)
    draws = zip(rng.random(500), rng.standard_normal(500), rng.random(500), strict=True)
    for t, (slip, noise, outlier) in enumerate(draws):
        reward, following, over = one_step(knobs, state, actions[t], slip, noise, outlier)
        found = tuple(column[1, t] for column in met)
        assert found == pytest.approx((state, actions[t], reward, following, over))
        state = 0 if over else following


@pytest.mark.parametrize("knobs", WORLDS[::2], ids=str)
def test_a_random_policy_is_paid_as_rarely_as_it_says(knobs):
    met = experience(knobs, range(20), 4000)
    assert met.rewards.mean() * knobs.rarity == pytest.approx(1, abs=0.1)


def test_a_run_depends_on_its_own_seed_alone():
    knobs = WORLDS[3]
    together, alone = experience(knobs, [3, 8], 100), experience(knobs, [8], 100)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one[1], other[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 1}, "n: must be at least 2|n: must be in"),
        ({"noise": -1}, "noise: must be"),
        ({"slip": 0.5}, "slip: must be in"),
        ({"outliers": 2}, "outliers: must be in"),
    ],
)
def test_bad_knobs_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Knobs(**settings)
