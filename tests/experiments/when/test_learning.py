"""The stack of tables against one table in plain Python."""

import numpy as np
import pytest

from per_tutorial.experiments.when import worlds
from per_tutorial.experiments.when.learning import METHODS, Replaying, learn, steps_of
from per_tutorial.experiments.when.worlds import Knobs, experience
from per_tutorial.replay.samplers import SAMPLERS


def plain(knobs, replaying, seed, rate):
    """One run, transition by transition: (areas, final errors, Q)."""
    steps = steps_of(knobs)
    met = experience(knobs, [seed], steps)
    name, keywords, beta, beta_end = METHODS[replaying.method]
    capacity = int(replaying.memory * steps)
    sampler = SAMPLERS[name](capacity, [seed], **keywords)
    q = np.random.default_rng((seed, 11)).normal(0, 0.1, (2 * knobs.n, 2))
    copy, held, errors = q.copy(), {}, []
    start = int(steps / 64)
    for t in range(steps):
        held[t % capacity] = t
        sampler.add(np.array([[t % capacity]]), np.array([t + 1]))
        if t < start:
            continue
        share = (t - start) / (steps - start)
        if t % (replaying.batch // replaying.replays) == 0:
            now = beta + share * (beta_end - beta)
            slots, weights = sampler.sample(replaying.batch, np.array([len(held)]), now)
            signals = []
            for slot, weight in zip(slots[0], weights[0], strict=True):
                s, a, r, following, ended = (column[0, held[slot]] for column in met)
                delta = r + knobs.gamma * (not ended) * q[following].max() - q[s, a]
                old = r + knobs.gamma * (not ended) * copy[following].max() - copy[s, a]
                signals.append(delta**2 - old**2 if replaying.method == "relo" else delta)
                q[s, a] += rate * weight * delta
            sampler.update(slots, np.array([signals]))
        if (t - start) % replaying.target_every == 0:
            copy = q.copy()
        errors.append(np.sqrt(np.mean((q[: knobs.n] - knobs.true_values) ** 2)))
    return np.mean(errors), np.mean(errors[-(len(errors) // 10) :]), q


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("settings", [{}, {"memory": 0.1, "batch": 16}], ids=["map", "cut"])
def test_a_stack_is_many_tables(method, settings):
    knobs = Knobs(n=3, noise=0.3, slip=0.1, irrelevant=0.3)
    replaying = Replaying(method, **settings)
    rates, seeds = [0.1, 0.5], [4, 9]
    stack = learn(knobs, replaying, seeds, rates)
    for row, (rate, seed) in enumerate((r, s) for r in rates for s in seeds):
        area, final, q = plain(knobs, replaying, seed, rate)
        np.testing.assert_allclose(stack.q[row], q, atol=1e-12)
        assert stack.area[row] == pytest.approx(area)
        assert stack.final[row] == pytest.approx(final)
    np.testing.assert_allclose(stack.curve.mean(axis=1), stack.area, rtol=0.02)


def test_without_noise_a_table_gets_right():
    learned = learn(Knobs(n=4), Replaying("per"), range(3), [1.0])
    assert learned.final.max() < 1e-6


def test_methods_meet_the_same_experience(monkeypatch):
    seen = []
    real = worlds.experience
    monkeypatch.setattr(worlds, "experience", lambda *args: seen.append(real(*args)) or seen[-1])
    for method in ("uniform", "rank"):
        learn(Knobs(n=2), Replaying(method), [5], [0.5])
    for one, other in zip(*seen, strict=True):
        np.testing.assert_array_equal(one, other)
