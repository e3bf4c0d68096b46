"""Ctrl-C at every line: what the library stored is told to the sampler, if later."""

import itertools
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from interrupts import interrupted

from per_tutorial.integrations.slot_sampler import SlotSampler


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


def slot_sampler(slots):
    draws = SlotSampler(9, seed=0)
    for slot in slots:
        draws.write([slot])
    draws.update(draws.sample(4)[0], np.arange(4.0))
    return draws


@pytest.mark.parametrize("next_call", ["write", "sample", "update", "probabilities", "sync"])
def test_the_next_call_completes_an_interrupted_write(next_call):
    """The library has stored the transitions, and the next ones are as many."""
    draws = slot_sampler([7, 2, 0])
    calls = {
        "write": lambda draws: draws.write([1, 8]),
        "sample": lambda draws: draws.sample(5),
        "update": lambda draws: draws.update([3, 4], [5.0, 6.0]),
        "probabilities": lambda draws: draws.probabilities(),
        "sync": lambda draws: draws.sync(5, lambda: np.array([0, 2, 3, 4, 7])),
    }
    twin = deepcopy(draws)
    twin.write([3, 4])
    calls[next_call](twin)
    recorded = 0
    for victim in interruptions(draws, lambda draws: draws.write([3, 4])):
        if next_call != "sync":
            if victim._unfinished is None:  # the write has not begun, or is over
                continue
            recorded += 1
        calls[next_call](victim)
        assert bits(victim.state) == bits(twin.state)
    assert recorded > 3 or next_call == "sync"


def test_an_interrupted_restore_has_happened_or_has_not():
    draws, other = slot_sampler([7, 2, 0]), slot_sampler([1, 8, 3, 6])
    outcomes = [bits(draws.state), bits(other.state)]
    for victim in interruptions(draws, lambda draws: draws.restore(deepcopy(other.state))):
        assert bits(victim.state) in outcomes


def test_the_next_step_completes_an_interrupted_one():
    pytest.importorskip("stable_baselines3")
    from sb3_episodes import ACTIONS, VECTORS

    from per_tutorial.integrations.sb3 import PrioritizedReplayBuffer

    def step(buffer):
        states = np.zeros((2, 3), np.float32)
        buffer.add(states, states, np.zeros(2, int), np.ones(2), np.zeros(2), [{}, {}])

    def heard(buffer):
        return buffer._told, bits(buffer._sampler.state)

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
