"""n-step windows of a `TransitionStorage` against the whole log of what happened, and bugs put in.

As in the other tests of the replay room, a function named `holds_…` states a property; the storage
has it, those with a bug put in must fail it.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NStepQueue, naive_window
from replay_helpers import every_kind, used

from per_tutorial.replay import ReplayBuffer, Transition, TransitionStorage

RUNS = 3
sizes = st.integers(1, 12).flatmap(lambda most: st.tuples(st.just(most), st.integers(1, most)))
happenings = st.sampled_from(["on", "on", "on", "terminated", "truncated", "both", "nothing"])
lives = st.lists(st.tuples(*[happenings] * RUNS), min_size=8, max_size=40)
varied = settings(deadline=None, derandomize=True, max_examples=150)


def live(storage, life):
    """Add what happens to each run step by step; yields the runs' logs, as in `naive_window`.

    "nothing" is a step that only resets the environment. All numbers tell which step it is.
    """
    logs = [[] for _ in range(RUNS)]
    for happening in life:
        counts = np.array([len(log) for log in logs])
        values = 100.0 * np.arange(RUNS) + counts
        fields = (
            values[:, None],
            counts,
            values + 1,
            values[:, None] + 0.5,
            np.array([each in ("terminated", "both") for each in happening]),
            np.array([each in ("truncated", "both") for each in happening]),
        )
        valid = np.array([each != "nothing" for each in happening])
        storage.add(Transition(*fields), valid)
        for run in np.flatnonzero(valid):
            logs[run].append(tuple(field[run].item() for field in fields))
        yield logs


def stored_windows(storage, run):
    """All that is stored of a run: {number: what `naive_window` says of it}."""
    added = int(storage.added[run])
    numbers = np.arange(max(0, added - storage.capacity), added)
    slots = np.tile(numbers % storage.capacity, (RUNS, 1))
    rows, steps = storage.n_step_transitions(slots)
    names = ("observation", "action", "reward", "next_observation", "terminated")
    columns = [rows[name][run].reshape(-1).tolist() for name in names]
    windows = zip(*columns, steps[run].tolist(), strict=True)
    return dict(zip(numbers.tolist(), windows, strict=True))


def holds_windows_are_those_of_the_log(make, size, life, discount):
    capacity, n_step = size
    storage = make(capacity, 1, RUNS, n_step=n_step, discount=discount)
    for logs in live(storage, life):
        for run, log in enumerate(logs):
            windows = stored_windows(storage, run)
            assert len(windows) == min(len(log), capacity)
            for number, window in windows.items():
                assert window == naive_window(log, number, n_step, discount)


@pytest.mark.slow
@varied
@given(sizes, lives, st.sampled_from([0.0, 0.5, 1.0]))  # with these, sums are exact
def test_windows_are_those_of_the_whole_log(size, life, discount):
    holds_windows_are_those_of_the_log(TransitionStorage, size, life, discount)


@pytest.mark.slow
@varied
@given(sizes, lives)
def test_windows_are_those_of_the_textbooks_queue_and_young_ones_are_shorter(size, life):
    """The queue gives a transition out when its window is complete; ours are there at once."""
    capacity, n_step = size
    storage = TransitionStorage(capacity, 1, RUNS, n_step=n_step, discount=0.5)
    queues, complete = [NStepQueue(n_step, 0.5) for _ in range(RUNS)], [[] for _ in range(RUNS)]
    for logs in live(storage, life):
        for run, log in enumerate(logs):
            if len(log) > len(complete[run]) + len(queues[run].waiting):  # a step was valid
                complete[run] += queues[run].add(*log[-1])
            for number, window in stored_windows(storage, run).items():
                if number < len(complete[run]):
                    assert window == complete[run][number]
                else:
                    assert window[-1] == len(log) - number < n_step


def test_a_window_by_hand():
    """γ = ½, n = 3, five slots; transitions 3 to 7 are stored, and 5 is cut off by a time limit."""
    buffer = ReplayBuffer(5, 1, n_step=3, discount=0.5, seed=0)
    for k in range(8):
        buffer.add([k], k, 2.0**k, [k + 0.5], False, k == 5)
    seen = {}
    for _ in range(40):
        batch = buffer.sample(5)
        for k, *others in zip(
            batch.indices.tolist(),
            batch.rewards.tolist(),
            batch.next_observations[:, 0].tolist(),
            batch.steps.tolist(),
            strict=True,
        ):
            seen[k] = others
    assert seen == {
        3: [8 + 0.5 * 16 + 0.25 * 32, 5.5, 3],
        4: [16 + 0.5 * 32, 5.5, 2],  # the episode is over
        5: [32, 5.5, 1],
        6: [64 + 0.5 * 128, 7.5, 2],  # the next step has not happened yet
        7: [128, 7.5, 1],
    }
    assert not batch.terminated.any()
    buffer.add([8], 8, 256.0, [8.5], True)  # now it has, and is the last one of its episode
    batch = buffer.sample(5)
    while 6 not in batch.indices:
        batch = buffer.sample(5)
    sixth = batch.indices.tolist().index(6)
    assert batch.rewards[sixth] == 64 + 0.5 * 128 + 0.25 * 256
    assert batch.next_observations[sixth] == 8.5 and batch.terminated[sixth]


@every_kind
def test_single_steps_are_windows_of_one(kind):
    batch = used(kind, discount=0.5).sample(5)
    np.testing.assert_array_equal(batch.rewards, batch.indices / 2)
    assert (batch.steps == 1).all()
