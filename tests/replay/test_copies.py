"""Copies of whole buffers: by `copy`, by `pickle`, and in other processes. Nothing is shared or
lost.
"""

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from copied_buffers import BUFFERS, a_step, go_on, go_on_and_save
from replay_helpers import bits

COPIES = {
    "copy": copy.deepcopy,
    "pickle": lambda buffer: pickle.loads(pickle.dumps(buffer)),
    "oldest pickle": lambda buffer: pickle.loads(pickle.dumps(buffer, protocol=0)),
}


def arrays_in(part, seen=None):
    """All arrays that hang on an object, however deep."""
    seen = {} if seen is None else seen
    if id(part) in seen:
        return []
    seen[id(part)] = part
    if isinstance(part, np.ndarray):
        return [part]
    inside = part.values() if isinstance(part, dict) else getattr(part, "__dict__", {}).values()
    return [array for each in inside for array in arrays_in(each, seen)]


@pytest.mark.parametrize("steps", [0, 3, 30])
@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", BUFFERS)
def test_a_copy_goes_on_as_the_original_would_and_shares_nothing(name, way, steps):
    buffer = go_on(BUFFERS[name](), steps)
    copied = COPIES[way](buffer)
    theirs = arrays_in(copied)
    assert len(theirs) == len(arrays_in(buffer)) > 2
    assert not any(np.shares_memory(one, other) for one in arrays_in(buffer) for other in theirs)
    before = bits(buffer)
    assert bits(copied) == before
    go_on(copied, 20)
    assert bits(buffer) == before
    assert bits(go_on(buffer, 20)) == bits(copied)


def test_a_call_that_was_interrupted_is_finished_before_a_copy_is_made(monkeypatch):
    buffer, twin = (go_on(BUFFERS["proportional"](), 10) for _ in range(2))
    monkeypatch.setattr(buffer.sampler, "add", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        go_on(buffer, 1)
    monkeypatch.undo()
    twin.add(*a_step(twin))
    assert bits(copy.deepcopy(buffer)) == bits(twin)
    assert bits(pickle.loads(pickle.dumps(buffer))) == bits(buffer) == bits(twin)


@pytest.mark.parametrize("steps", [40, 600])
def test_a_pickle_is_little_larger_than_what_is_stored(steps):
    for name in ("uniform", "frames"):
        buffer = go_on(BUFFERS[name](capacity=500, pixels=900), steps)
        stored = sum(array.nbytes for array in buffer.state.values())
        assert len(pickle.dumps(buffer)) < 1.2 * stored + 4000, name


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
