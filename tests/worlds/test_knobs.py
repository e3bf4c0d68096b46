"""Worlds with knobs: many walks against one, and what a random policy meets."""

import numpy as np
import pytest

from per_tutorial.worlds.knobs import Draws, Knobs, draw, experience, walk_on

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
    rng = np.random.default_rng(0)
    states, actions = rng.integers(knobs.n, size=500), rng.integers(2, size=500)
    draws = draw(rng, 500)
    draws = Draws(draws.slip, draws.noise, draws.outlier * 0.2)
    found = walk_on(knobs, states, actions, draws)
    for k in range(500):
        plain = one_step(
            knobs, states[k], actions[k], draws.slip[k], draws.noise[k], draws.outlier[k]
        )
        assert tuple(column[k] for column in found) == pytest.approx(plain)


@pytest.mark.parametrize("knobs", WORLDS, ids=str)
def test_a_random_policy_walks_from_the_start_and_is_paid_as_rarely_as_it_says(knobs):
    met = experience(knobs, range(20), 4000)
    begins = np.roll(met.ended, 1, axis=1)
    begins[:, 0] = True
    assert not met.states[begins].any()
    assert (met.next_states == met.states + ~met.ended).all()
    assert (met.states[:, 1:] == met.next_states[:, :-1])[~met.ended[:, :-1]].all()
    wrong_or_last = 1 / 2 + (met.states == knobs.n - 1).mean() / 2
    assert met.ended.mean() == pytest.approx(wrong_or_last, abs=0.01)
    if not knobs.noise and not knobs.outliers:
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
