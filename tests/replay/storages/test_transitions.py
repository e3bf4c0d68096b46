"""Rows of transitions: types of their own, no integer that becomes another, no stray bytes."""

import numpy as np
import pytest
from replay_helpers import bits

from per_tutorial.replay import ReplayBuffer, Transition, TransitionStorage

CONTENT = ("observation", "action", "reward", "next_observation")
OPTIONS = {"observation_dtype": np.uint8, "action_dtype": np.int8, "action_shape": 2}


def step(runs=1, **other):
    fields = {
        "observation": np.full((runs, 3), 200, np.uint8),
        "action": np.full((runs, 2), -5, np.int8),
        "reward": np.full(runs, 0.5),
        "next_observation": np.full((runs, 3), 201, np.uint8),
        "terminated": np.zeros(runs, dtype=bool),
        "truncated": np.ones(runs, dtype=bool),
    }
    return Transition(**fields | other)


@pytest.mark.parametrize(
    ("name", "values", "error", "said"),
    [
        ("action", np.full((1, 2), 300), ValueError, r"in \[-128, 127\] \(int8\), got 300 to 300"),
        ("action", np.full((1, 2), 2**63, np.uint64), ValueError, "action: must be in"),
        ("observation", np.full((1, 3), 256, np.uint16), ValueError, r"in \[0, 255\] \(uint8\)"),
        ("next_observation", np.full((1, 3), -1), ValueError, r"\[0, 255\] .*got -1 to -1"),
        ("observation", np.full((1, 3), 0.5), TypeError, "must be uint8, got float64"),
        ("observation", np.ma.masked_equal(np.zeros((1, 3), np.uint8), 0), ValueError, "masked"),
    ],
)
def test_no_number_becomes_another_one(name, values, error, said):
    storage = TransitionStorage(4, 3, **OPTIONS)
    storage.add(step())
    before = bits(storage)
    with pytest.raises(error, match=said):
        storage.add(step(**{name: values}))
    assert bits(storage) == before


def test_numbers_that_fit_may_come_in_any_type():
    storage = TransitionStorage(4, 3, **OPTIONS)
    storage.add(step())
    wide = {"observation": np.full((1, 3), 200, np.uint16), "action": np.full((1, 2), -5, np.int64)}
    slots = storage.add(step(**wide, next_observation=np.full((1, 3), 201, np.int64)))
    assert slots.tolist() == [[1]]
    first, second = storage.gather(np.array([[0, 1]]))[0]
    assert first == second


@pytest.mark.parametrize("name", ["action", "observation"])
def test_a_buffer_refuses_them_as_well(name):
    buffer = ReplayBuffer(4, 3, **OPTIONS)
    fields = {key: field[0] for key, field in step()._asdict().items()}
    buffer.add(**fields)
    with pytest.raises(ValueError, match=f"^{name}: must be in"):
        buffer.add(**fields | {name: fields[name].astype(np.int64) * 1000})
    many = {f"{key}s": np.stack([field] * 3) for key, field in fields.items() if key in CONTENT}
    many |= {key: np.stack([fields[key]] * 3) for key in ("terminated", "truncated")}
    with pytest.raises(ValueError, match=f"^{name}: must be in"):
        buffer.extend(**many | {f"{name}s": many[f"{name}s"].astype(np.int64) * 1000})
    assert len(buffer) == 1


def test_a_state_holds_no_stray_bytes():
    """Rows are padded. NumPy copies fields only, and would leave old memory between them."""
    for capacity in (2, 3, 7):
        storage = TransitionStorage(capacity, 3, 3, **OPTIONS)
        row = storage.rows.dtype
        between = np.ones(row.itemsize, dtype=bool)
        for name in row.names:
            between[row.fields[name][1] :][: row[name].itemsize] = False
        assert between.any()
        for valid in ([True, True, True], [True, False, True], [False, True, False]) * 2:
            storage.add(step(3), np.array(valid))
            for rows in (storage.state["rows"], storage.__getstate__()["rows"]):
                assert rows.flags.c_contiguous
                assert not rows.view(np.uint8).reshape(-1, row.itemsize)[:, between].any()
