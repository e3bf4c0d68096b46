"""Worlds with knobs: true values against value iteration, many walks against one."""

import numpy as np
import pytest

from per_tutorial.worlds.knobs import Draws, Knobs, draw, experience, walk_on

WORLDS = [
    Knobs(n=2),
    Knobs(n=5, noise=0.5),
    Knobs(n=6, slip=0.2, discount=0.9),
    Knobs(n=4, slip=0.4, irrelevant=0.5, outliers=0.1, discount=1.0),
]


def by_value_iteration(knobs, sweeps=200):
    chances, rewards = knobs.model()
    q = np.zeros(rewards.shape)
    for _ in range(sweeps):
        q = rewards + knobs.gamma * chances @ q.max(axis=1)
    return q


@pytest.mark.parametrize("knobs", WORLDS, ids=str)
def test_true_values_are_those_of_value_iteration(knobs):
    q = by_value_iteration(knobs)
    np.testing.assert_allclose(knobs.true_values, q[: knobs.n], atol=1e-12)
    assert np.all(q[knobs.n :] == 0)


def one_step(knobs, state, action, slip, noise, outlier):
    """The rules of the world in plain words, for one walk."""
    right = knobs.right[state] == action
    if slip < knobs.slip:
        right = not right
    reward = knobs.noise * noise
    if outlier < knobs.outliers:
        reward += 10.0 if outlier < knobs.outliers / 2 else -10.0
    if not right:
        return reward, state, True
    if state == knobs.n - 1:
        return reward + 1, state, True
    if state == 2 * knobs.n - 1:
        return reward, state, True
    return reward, state + 1, False


@pytest.mark.parametrize("knobs", WORLDS, ids=str)
def test_many_walks_are_one_walk_many_times(knobs):
    rng = np.random.default_rng(0)
    states, actions = rng.integers(2 * knobs.n, size=500), rng.integers(2, size=500)
    draws = draw(rng, 500)
    draws = Draws(draws.slip, draws.noise, draws.outlier * 0.2, draws.start)
    found = walk_on(knobs, states, actions, draws)
    for k in range(500):
        plain = one_step(
            knobs, states[k], actions[k], draws.slip[k], draws.noise[k], draws.outlier[k]
        )
        assert tuple(column[k] for column in found) == pytest.approx(plain)


@pytest.mark.parametrize("knobs", WORLDS, ids=str)
@pytest.mark.slow
def test_experience_has_the_chances_of_the_model(knobs):
    met = experience(knobs, range(20), 4000)
    chances, rewards = knobs.model()
    states, actions = met.states.ravel(), met.actions.ravel()
    followed = np.where(met.ended.ravel(), -1, met.next_states.ravel())
    for state in range(knobs.n):
        for action in (0, 1):
            here = (states == state) & (actions == action)
            if here.sum() < 200:
                continue
            expected = 1 - chances[state, action].sum()
            error = 4 * np.sqrt(0.25 / here.sum())
            assert abs((followed[here] == -1).mean() - expected) < error
            deviation = met.rewards.ravel()[here].std() / np.sqrt(here.sum())
            assert (
                abs(met.rewards.ravel()[here].mean() - rewards[state, action])
                < 4 * deviation + 1e-9
            )
    assert (states >= knobs.n).mean() == pytest.approx(knobs.irrelevant, abs=0.03)
    if not knobs.slip and not knobs.irrelevant and not knobs.noise:
        assert (met.rewards > 0.5).mean() * knobs.rarity == pytest.approx(1, abs=0.15)


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
        ({"irrelevant": 1.0}, "irrelevant: must be in"),
        ({"discount": 1.5}, "discount: must be in"),
    ],
)
def test_bad_knobs_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Knobs(**settings)
