"""Ctrl-C at any line of the package: the call has happened, or it has not."""

from copy import deepcopy

import numpy as np
import pytest
from copied_buffers import BUFFERS, a_step, go_on
from interrupts import interrupted

LINES = 2000  # more than any of these calls has
ORDER_OF_EQUALS = ("sampler.keys", "sampler.slots", "sampler.ranks", "sampler.written")


def extended(buffer, other):
    k, lead = int(buffer.storage.added[0]), (2, 5) if buffer.runs else (5,)
    numbers = np.broadcast_to(np.arange(k, k + 5), lead)
    seen = np.repeat(numbers[..., None], 2, axis=-1).astype(np.float32)
    over = numbers % 4 == 3, numbers % 7 == 6
    return lambda: buffer.extend(seen, numbers, numbers / 2, seen + 1, *over)


CALLS = {
    "add": lambda buffer, other: lambda: buffer.add(*a_step(buffer)),
    "extend": extended,
    "sample": lambda buffer, other: lambda: buffer.sample(1),
    "update": lambda buffer, other: lambda: buffer.update_priorities(*an_update(buffer)),
    "truncate": lambda buffer, other: buffer.truncate_episodes,
    "restore": lambda buffer, other: lambda: buffer.restore(other[0]),
    "load": lambda buffer, other: lambda: buffer.load(other[1]),
}


def an_update(buffer):
    ids = np.arange(3, 6) + int(buffer.storage.added[0]) - 6
    ids = ids if buffer.runs is None else np.tile(ids, (2, 1))
    return ids, np.sin(ids * 1.0)


def like(some, other):
    """Whether two states tell the same: fields of rows, and no frames that nothing refers to."""
    return all(
        array.shape == other[name].shape
        and all(
            np.array_equal(array[field], other[name][field]) for field in array.dtype.names or [...]
        )
        for name, array in some.items()
        if name not in (*ORDER_OF_EQUALS, "storage.frames", "storage.depths", "sampler.streams")
        and not name.startswith("storage.final")
    )


def copied(buffer):
    return {name: array.copy() for name, array in buffer.state.items()}


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", BUFFERS)
def test_an_interrupted_call_happens_in_full_or_not_at_all(kind, call, tmp_path):
    if call == "extend" and kind == "frames":
        pytest.skip("frames are added a step at a time")
    other = go_on(BUFFERS[kind](seed=3), 9)
    saved = copied(other), tmp_path / "other.npz"
    other.save(saved[1])
    made = go_on(BUFFERS[kind](), 13)
    whole, before = deepcopy(made), copied(made)
    CALLS[call](whole, saved)()
    after = copied(whole)
    for line in range(1, LINES):
        buffer = deepcopy(made)
        if not interrupted(CALLS[call](buffer, saved), line):
            break
        stored = len(buffer)  # first: it, too, completes what was interrupted
        now = copied(buffer)
        assert like(now, before) or like(now, after), line
        shares = buffer.probabilities()
        assert np.allclose(shares.sum(axis=-1), 1)
        assert (shares > 0).all() and shares.shape[-1] == stored
        if call not in ("restore", "load", "truncate"):
            go_on(buffer, 2)
    else:
        pytest.fail("the call has more lines")


def test_td_errors_of_a_transition_count_also_if_its_add_was_interrupted():
    whole, cut = (go_on(BUFFERS["proportional"](), 5) for _ in range(2))
    whole.add(*a_step(whole))
    cut.storage.add(a_step(cut), axis_of_runs=False)  # the sampler has not heard of it
    for buffer in (whole, cut):
        buffer.update_priorities([5], [0.5])
    assert like(copied(cut), copied(whole))
