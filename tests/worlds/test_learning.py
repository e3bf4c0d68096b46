"""Many tables at once against one table in plain Python."""

import numpy as np
import pytest

from per_tutorial.worlds.knobs import Knobs, experience
from per_tutorial.worlds.learning import METHODS, Replaying, learn, steps_of


def plain(knobs, replaying, seed, rate):
    """One run, transition by transition: (areas, final errors, Q)."""
    steps = steps_of(knobs)
    met = experience(knobs, [seed], steps)
    kind, keywords, beta, beta_end = METHODS[replaying.method]
    capacity = int(replaying.memory * steps)
    sampler = kind(capacity, [seed], **keywords)
    q = np.random.default_rng((seed, 11)).normal(0, 0.1, (2 * knobs.n, 2))
    held, errors = {}, []
    start = int(steps / 64)
    for t in range(steps):
        held[t % capacity] = t
        sampler.add(np.array([[t % capacity]]))
        if t < start:
            continue
        share = (t - start) / (steps - start)
        if t % (replaying.batch // replaying.replays) == 0:
            now = beta + share * (beta_end - beta)
            slots, weights = sampler.sample(replaying.batch, np.array([len(held)]), now)
            td_errors = []
            for slot, weight in zip(slots[0], weights[0], strict=True):
                s, a, r, following, ended = (column[0, held[slot]] for column in met)
                delta = r + knobs.gamma * (not ended) * q[following].max() - q[s, a]
                td_errors.append(delta)
                q[s, a] += rate * weight * delta
            sampler.update(slots, np.array([td_errors]))
        errors.append(np.sqrt(np.mean((q[: knobs.n] - knobs.true_values) ** 2)))
    return np.mean(errors), np.mean(errors[-(len(errors) // 10) :]), q


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("settings", [{}, {"memory": 0.1, "batch": 16}], ids=["map", "cut"])
def test_many_tables_are_one_table_many_times(method, settings):
    knobs = Knobs(n=3, noise=0.3, slip=0.1, irrelevant=0.3)
    replaying = Replaying(method, **settings)
    rates, seeds = [0.1, 0.5], [4, 9]
    many = learn(knobs, replaying, seeds, rates)
    for row, (rate, seed) in enumerate((r, s) for r in rates for s in seeds):
        area, final, q = plain(knobs, replaying, seed, rate)
        np.testing.assert_allclose(many.q[row], q, atol=1e-12)
        assert many.area[row] == pytest.approx(area)
        assert many.final[row] == pytest.approx(final)
    np.testing.assert_allclose(many.curve.mean(axis=1), many.area, rtol=0.02)


@pytest.mark.slow
def test_without_noise_a_table_gets_right():
    learned = learn(Knobs(n=4), Replaying("per"), range(3), [1.0])
    assert learned.final.max() < 1e-6
