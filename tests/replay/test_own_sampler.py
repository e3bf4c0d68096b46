"""A newcomer's sampler: one file, passed as an object."""

import numpy as np
import pytest
from toy_samplers import LowSlots

from per_tutorial import Replay
from per_tutorial.replay import SAMPLERS, TransitionStorage


def a_replay(seed=0):
    replay = Replay(TransitionStorage(10, (1,)), LowSlots(10, [seed]))
    for k in range(14):
        replay.add([k], k, 0.5, [k + 1], False)
    return replay


def test_it_draws_saves_and_loads(tmp_path):
    replay, other = a_replay(), a_replay(1)
    batch = replay.sample(8, beta=1.0)
    assert np.allclose(batch.probabilities, replay.probabilities(batch.indices))
    assert np.allclose(batch.weights, batch.probabilities.min() / batch.probabilities)
    replay.update_priorities(batch.indices, np.ones(8))
    replay.save(tmp_path / "mine.npz")
    other.load(tmp_path / "mine.npz")
    assert other.sample(8).indices.tolist() == replay.sample(8).indices.tolist()


def test_a_sampler_knows_its_name():
    assert SAMPLERS.keys() >= {"uniform", "proportional", "rank", "lap"}
    assert all(make(5, [0]).settings["sampler"] == name for name, make in SAMPLERS.items())


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("count", [5, 21])  # fewer and more than fit
def test_a_new_sampler_may_draw_from_a_storage_that_holds_transitions(name, count):
    storage = TransitionStorage(8, (1,))
    first, second = (Replay(storage, SAMPLERS[each](8, [0])) for each in ("uniform", name))
    for k in range(count):
        first.add([k], 0, 0.0, [0], False)
    stored = range(max(0, count - 8), count)
    assert set(second.sample(min(count, 8)).indices) <= set(stored)
    chances = second.probabilities()
    assert np.count_nonzero(chances) == len(stored) and np.isclose(chances.sum(), 1)
    step = [0], 0, 0.0, [0], False
    first.add(*step)  # of which the new sampler hears before it hears of the next one
    second.add(*step)
    first.add(*step)
    second.extend(*([field] for field in step))
    assert np.count_nonzero(second.probabilities()) == 8
