"""Signals that nobody can have: what they are, and what is shipped about them."""

import numpy as np
import pytest

from per_tutorial.experiments.when import maps
from per_tutorial.experiments.when.learning import Replaying, learn
from per_tutorial.experiments.when.results import load
from per_tutorial.experiments.when.signals import (
    ENTERED,
    LEAST,
    SIGNALS,
    FreshPriorities,
    newest_errors,
)
from per_tutorial.experiments.when.worlds import Knobs, experience

KNOBS, STORED, RATE = Knobs(3, noise=0.5), 40, 0.25


@pytest.fixture(scope="module")
def memory():
    met = experience(KNOBS, [5], STORED)
    return met, np.random.default_rng(0).normal(0, 0.5, (1, 2 * KNOBS.n, 2))


def sampler_of(signal, met, q, seeds=(5,)):
    sampler = FreshPriorities(signal, KNOBS, q, met, np.zeros(1, int), np.array([RATE]), seeds)
    for t in range(STORED):
        sampler.add(np.full((1, 1), t), np.array([t + 1]))
    return sampler


def expected_priority(signal, met, q, i):
    """The priority of one transition, straight from the definitions."""
    s, a, reward, following, ended = (column[0, i] for column in met)
    goes_on = 0.0 if ended else KNOBS.gamma * q[0, following].max()
    delta = reward + goes_on - q[0, s, a]
    paid = float(s == KNOBS.n - 1 and a == KNOBS.right[s])
    mean = paid + goes_on - q[0, s, a]
    error = q[0, s, a] - KNOBS.true_values[s, a]
    possible = mean + KNOBS.noise * np.random.default_rng(1).standard_normal(400_000)
    gain = max(float((error**2 - (error + RATE * possible) ** 2).mean()), 0.0)
    alike = sum((met.states[0, j], met.actions[0, j]) == (s, a) for j in range(STORED))
    size = {"fresh": abs(delta), "expected": abs(mean), "gain": gain, "gain-alone": gain}[signal]
    return (size + LEAST) ** 0.6 / (alike if signal == "gain-alone" else 1)


@pytest.mark.parametrize("signal", SIGNALS)
def test_draws_follow_the_signal(memory, signal):
    met, q = memory
    priorities = np.array([expected_priority(signal, met, q, i) for i in range(STORED)])
    chances = priorities / priorities.sum()
    sampler = sampler_of(signal, met, q)
    counts = np.zeros(STORED)
    for _ in range(300):
        slots, weights = sampler.sample(64, np.array([STORED]), beta=0.5)
        counts += np.bincount(slots[0], minlength=STORED)
        of_drawn = (STORED * chances[slots[0]]) ** -0.5
        # Gains near zero are known here from a sample of the noise only.
        np.testing.assert_allclose(weights[0], of_drawn / of_drawn.max(), rtol=0.1, atol=0.01)
    np.testing.assert_allclose(counts / counts.sum(), chances, atol=0.01)


def test_new_transitions_may_enter_with_their_own_error():
    met = experience(KNOBS, [5, 6], STORED)
    q = np.random.default_rng(2).normal(size=(2, 2 * KNOBS.n, 2))
    found = newest_errors(KNOBS, q, met, np.array([0, 1]), 9)
    for run in range(2):
        s, a, reward, following, ended = (column[run, 9] for column in met)
        goes_on = 0.0 if ended else KNOBS.gamma * q[run, following].max()
        assert found[run, 0] == pytest.approx(reward + goes_on - q[run, s, a])
    one = learn(KNOBS, Replaying(ENTERED), [5], [RATE])
    assert one.area != learn(KNOBS, Replaying("per"), [5], [RATE]).area


def test_the_study_of_entries_is_whole_and_pairs_with_the_signals():
    found, signals = load("entries")["cells"], load("signals")["cells"]
    assert {name.replace("entries", "signals") for name in found} == set(signals)
    for name, cell in found.items():
        assert len(cell[ENTERED]["area"]) == 30
        assert cell["uniform"] == signals[name.replace("entries", "signals")]["uniform"]


def test_the_study_is_whole_and_agrees_with_the_map():
    found, the_map = load("signals")["cells"], load("map")["cells"]
    cells = list(maps.the_signals())
    assert set(found) == {cell.name for cell in cells}
    for cell in cells:
        assert set(found[cell.name]) == {"uniform", "per", *SIGNALS}
        of_map = the_map[f"map-n{cell.knobs.n}-noise{cell.knobs.noise}-"]
        for method in ("uniform", "per"):  # the same worlds, seeds and rates
            assert found[cell.name][method]["rate"] == of_map[method]["rate"]
            np.testing.assert_allclose(
                found[cell.name][method]["area"], of_map[method]["area"], rtol=1e-3
            )
        for signal in SIGNALS:
            assert len(found[cell.name][signal]["area"]) == 30
