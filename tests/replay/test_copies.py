"""Copies of whole buffers."""

import pickle

import pytest
from copied_buffers import BUFFERS, go_on


@pytest.mark.parametrize("kind", ["uniform", "frames"])
@pytest.mark.parametrize("steps", [0, 40, 600])
def test_a_pickle_is_little_larger_than_what_is_stored(steps, kind):
    buffer = go_on(BUFFERS[kind](capacity=500, pixels=900), steps)
    stored = sum(array.nbytes for array in buffer.state.values())
    assert len(pickle.dumps(buffer)) < 1.2 * stored + 9000
