"""Copies of whole buffers in other processes."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import pytest
from copied_buffers import BUFFERS, go_on, go_on_and_save
from replay_helpers import bits


@pytest.mark.parametrize("kind", ["uniform", "frames"])
@pytest.mark.parametrize("steps", [0, 40, 600])
def test_a_pickle_is_little_larger_than_what_is_stored(steps, kind):
    buffer = go_on(BUFFERS[kind](capacity=500, pixels=900), steps)
    stored = sum(array.nbytes for array in buffer.state.values())
    assert len(pickle.dumps(buffer)) < 1.2 * stored + 9000


@pytest.mark.slow
def test_buffers_go_on_in_other_processes(tmp_path):
    """A process that begins anew (spawn) adds 500 transitions and saves; nothing is lost."""
    context = multiprocessing.get_context("spawn")
    buffers = {name: go_on(make(), 9) for name, make in BUFFERS.items()}
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        tasks = {
            name: pool.submit(go_on_and_save, buffer, 500, tmp_path / name)
            for name, buffer in buffers.items()
        }
        for name, task in tasks.items():
            there = task.result(timeout=300)
            here = go_on(buffers[name], 500)
            loaded = BUFFERS[name](seed=99)
            loaded.load(tmp_path / name)
            assert bits(loaded) == there == bits(here)
            assert bits(go_on(loaded, 5)) == bits(go_on(here, 5))
