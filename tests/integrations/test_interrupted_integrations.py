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


def slot_sampler(sampler, slots):
    draws = SlotSampler(9, sampler=sampler, seed=0)
    for slot in slots:
        draws.write([slot])
    draws.update(draws.sample(4)[0], np.arange(4.0))
    return draws


@pytest.mark.parametrize("sampler", ["proportional", "rank"])
@pytest.mark.parametrize("slots", [[3, 4], [2, 4]])
def test_an_interrupted_write_has_happened_or_has_not(sampler, slots):
    draws = slot_sampler(sampler, [7, 2, 0])
    done = deepcopy(draws)
    done.write(slots)
    outcomes = [bits(draws.state), bits(done.state)]
    found = [bits(victim.state) for victim in interruptions(draws, lambda d: d.write(slots))]
    assert all(state in outcomes for state in found) and outcomes[1] in found


@pytest.mark.parametrize("sampler", ["proportional", "rank"])
@pytest.mark.parametrize("next_call", ["write", "sample", "update", "probabilities", "sync"])
def test_the_next_call_completes_an_interrupted_write(sampler, next_call):
    """The library has stored the transitions, and the next ones are as many."""
    draws = slot_sampler(sampler, [7, 2, 0])
    stored = np.array([0, 2, 3, 4, 7])
    calls = {
        "write": lambda draws: draws.write([1, 8]),
        "sample": lambda draws: draws.sample(5),
        "update": lambda draws: draws.update([3, 4], [5.0, 6.0]),
        "probabilities": lambda draws: draws.probabilities(),
        "sync": lambda draws: draws.sync(5, lambda: stored),
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


@pytest.mark.parametrize("sampler", ["proportional", "rank"])
def test_an_interrupted_restore_has_happened_or_has_not(sampler):
    draws = slot_sampler(sampler, [7, 2, 0])
    other = deepcopy(slot_sampler(sampler, [1, 8, 3, 6]).state)
    outcomes = [bits(draws.state), bits(other)]
    for victim in interruptions(draws, lambda draws: draws.restore(other)):
        assert bits(victim.state) in outcomes


def sb3_buffer():
    pytest.importorskip("stable_baselines3")
    from sb3_episodes import ACTIONS, VECTORS

    from per_tutorial.integrations.sb3 import PrioritizedReplayBuffer

    buffer = PrioritizedReplayBuffer(8, VECTORS, ACTIONS, "cpu", 2, sampler="reaper", seed=0)
    for _ in range(3):
        sb3_step(buffer)
    return buffer


def sb3_step(buffer, done=(0, 0)):
    states = np.zeros((2, 3), np.float32)
    buffer.add(states, states, np.zeros(2, int), np.ones(2), np.array(done), [{}, {}])


def heard(buffer):
    """What the sampler was told, and until when."""
    return buffer._sampler.added, bits(buffer._sampler.sampler.state)


def test_the_next_step_completes_an_interrupted_one_and_its_ends():
    buffer = sb3_buffer()
    twin = deepcopy(buffer)
    for done in [(1, 0), (0, 1)]:
        sb3_step(twin, done)
    stored = 0
    for victim in interruptions(buffer, lambda buffer: sb3_step(buffer, (1, 0))):
        if victim._steps == 3:  # not stored: the environments' step is lost
            sb3_step(victim, (1, 0))
        else:
            stored += 1
        sb3_step(victim, (0, 1))
        assert heard(victim) == heard(twin)
    assert stored > 5


def test_an_interrupted_cut_is_completed_by_a_second_one():
    buffer = sb3_buffer()
    sb3_step(buffer, (1, 0))
    twin = deepcopy(buffer)
    twin.truncate_episodes()
    assert heard(twin) != heard(buffer)
    for victim in interruptions(buffer, lambda buffer: buffer.truncate_episodes()):
        victim.truncate_episodes()
        assert heard(victim) == heard(twin)
