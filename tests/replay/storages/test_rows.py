"""Rows of transitions: types of their own, no integer that becomes another, no stray bytes."""

import numpy as np
import pytest
from naive import naive_window
from replay_helpers import bits

from per_tutorial.replay import (
    PrioritizedReplayBuffer,
    Replay,
    ReplayBuffer,
    Transition,
    TransitionStorage,
    UniformSampler,
)
from per_tutorial.replay.storages import rows

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


def test_numbers_that_fit_may_come_in_any_type():
    storage = TransitionStorage(4, 3, **OPTIONS)
    storage.add(step())
    wide = {"observation": np.full((1, 3), 200, np.uint16), "action": np.full((1, 2), -5, np.int64)}
    slots = storage.add(step(**wide, next_observation=np.full((1, 3), 201, np.int64)))
    assert slots.tolist() == [[1]]
    first, second = storage.n_step_transitions(np.array([[0, 1]]))[0][0]
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


# Environments that take turns ------------------------------------------------------------------


def turns(environments, count, seed=0):
    """What environments do that take turns: (observation, action, reward, next, terminated,
    truncated).

    Observations tell the environment and the number of the step in it.
    """
    chances, steps = np.random.default_rng(seed), np.zeros(environments)
    for k in range(count):
        e = k % environments
        steps[e] += 1
        ends = chances.random()
        yield [e, steps[e]], e, chances.integers(9), [e, steps[e] + 1], ends < 0.1, ends > 0.9


@pytest.mark.parametrize("count", [2, 7, 40, 41])
@pytest.mark.parametrize(
    ("environments", "capacity", "n_step"), [(2, 10, 3), (3, 11, 2), (4, 9, 9)]
)
def test_windows_stay_within_their_environment(environments, capacity, n_step, count):
    settings = {"environments": environments, "n_step": n_step, "discount": 0.5}
    buffer = ReplayBuffer(capacity, 2, seed=0, **settings)
    logs = [[] for _ in range(environments)]
    for k, step in enumerate(turns(environments, count)):
        buffer.add(*step)
        logs[k % environments].append(step)
    ids = np.arange(max(0, count - capacity), count)
    found, discounts = buffer.storage.n_step_transitions(ids[None] % capacity)
    for number, row, discount in zip(ids, found[0], discounts[0], strict=True):
        log, first = logs[number % environments], number // environments
        observation, action, reward, following, terminated, expected = naive_window(
            log, first, n_step, 0.5
        )
        assert row["observation"].tolist() == observation and row["action"] == action
        assert row["next_observation"].tolist() == following
        assert (row["reward"], row["terminated"], discount) == (reward, terminated, expected)


@pytest.mark.parametrize("runs", [None, 2])
@pytest.mark.parametrize("n_step", [1, 3])
def test_large_rows_give_the_same_minibatches_as_small_ones(n_step, runs, monkeypatch):
    batches = []
    for large in (rows.LARGE_ROW, 0):
        monkeypatch.setattr(rows, "LARGE_ROW", large)
        buffer = ReplayBuffer(20, 2, runs=runs, seed=0, n_step=n_step)
        for each in zip(turns(1, 30), turns(1, 30, seed=1), strict=True):
            buffer.add(*(zip(*each, strict=True) if runs else each[0]))
        batches.append(buffer.sample(20))
    for one, other in zip(*batches, strict=True):
        assert np.array_equal(one, other) and one.dtype == other.dtype


def test_a_step_of_all_environments_at_once_is_one_turn_of_each():
    one_by_one, at_once = (
        PrioritizedReplayBuffer(20, 2, seed=0, environments=3, n_step=2) for _ in range(2)
    )
    steps = list(turns(3, 24))
    for step in steps:
        one_by_one.add(*step)
    for k in range(0, 24, 3):
        at_once.extend(*zip(*steps[k : k + 3], strict=True))
    assert bits(at_once) == bits(one_by_one)


@pytest.mark.parametrize("count", [0, 2, 3, 4, 30])
def test_a_cut_ends_the_running_episode_of_each_environment(count):
    storage = TransitionStorage(8, 2, environments=3)
    replay = Replay(storage, UniformSampler(8, seeds=[0]))
    for step in turns(3, count):
        replay.add(*step[:4], step[1] == 1)  # environment 1 has terminated: no episode runs there
    replay.truncate_episodes()
    ids = np.arange(max(0, count - 8), count)
    truncated = storage.rows["truncated"][0, ids % 8]
    assert truncated.tolist() == [number >= count - 3 and number % 3 != 1 for number in ids]
    assert storage.rows["truncated"].sum() == truncated.sum()
