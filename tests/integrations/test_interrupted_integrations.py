"""Ctrl-C at every line: what the library stored is told to the sampler, if later."""

import itertools
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from interrupts import interrupted

from per_tutorial.integrations.slot_sampler import SlotSampler, make_sampler


def interruptions(original, call):
    """A copy for each line of ``call(copy)``, which was interrupted there."""
    call(deepcopy(original))  # compiles: an interrupt meanwhile would harm numba itself
    for after in itertools.count(1):
        victim = deepcopy(original)
        if not interrupted(partial(call, victim), after):
            assert after > 5
            return
        yield victim


def bits(state):
    return {name: array.tobytes() for name, array in state.items()}


def test_an_interrupted_write_leaves_a_whole_sampler():
    """The library has stored the transitions, and `sync` tells of those that are new."""
    draws = SlotSampler(partial(make_sampler, "proportional", 9, seed=0))
    for slot in (7, 2, 0):
        draws.write([slot])
    for victim in interruptions(draws, lambda draws: draws.write([3, 4, 7])):
        stored = np.array([0, 2, 3, 4, 7])
        victim.sync(5, lambda stored=stored: stored)
        slots, _ = victim.sample(50, 0.5)
        assert set(slots) == set(stored.tolist())
        victim.update(slots, slots)
        shares = victim.probabilities()
        assert shares.sum() == pytest.approx(1) and np.flatnonzero(shares).tolist() == [*stored]
        assert shares.argmax() == 7


def test_the_next_step_completes_an_interrupted_one():
    pytest.importorskip("stable_baselines3")
    from sb3_episodes import ACTIONS, VECTORS

    from per_tutorial.integrations.sb3 import PrioritizedReplayBuffer

    def step(buffer):
        states = np.zeros((2, 3), np.float32)
        buffer.add(states, states, np.zeros(2, int), np.ones(2), np.zeros(2), [{}, {}])

    def heard(buffer):
        return bits(buffer._ledger.sampler.state)

    buffer = PrioritizedReplayBuffer(8, VECTORS, ACTIONS, "cpu", 2, seed=0)
    for _ in range(3):
        step(buffer)
    twin, stored = deepcopy(buffer), 0
    for _ in range(2):
        step(twin)
    for victim in interruptions(buffer, step):
        if victim._steps == 3:  # not stored: the environments' step is lost
            step(victim)
        else:
            stored += 1
        step(victim)
        assert heard(victim) == heard(twin)
    assert stored > 2
