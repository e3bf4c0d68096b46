"""What replay buffers refuse: the error names the argument, and nothing has changed."""

import inspect
import os
import pickle
import threading
import warnings

import numpy as np
import pytest
from replay_helpers import bits, every_kind, used

from per_tutorial.replay import (
    SAMPLERS,
    FrameStorage,
    Replay,
    ReplayBuffer,
    Transition,
    TransitionStorage,
    UniformSampler,
)

NAN, INF = float("nan"), float("inf")


def update(indices, td_errors):
    return lambda buffer: buffer.update_priorities(indices, td_errors)


def sample(*arguments, **options):
    return lambda buffer: buffer.sample(*arguments, **options)


def adding_with(**wrong):
    row = {"observation": [0.0, 0.0], "action": 0, "reward": 0.0}
    row |= {"next_observation": [0.0, 0.0], "terminated": False}
    return lambda buffer: buffer.add(**row | wrong)


def extending_with(**wrong):
    columns = {"observations": np.zeros((9, 2)), "actions": [0] * 9, "rewards": [0.0] * 9}
    columns |= {"next_observations": np.zeros((9, 2)), "terminated": [False] * 9}
    return lambda buffer: buffer.extend(**columns | wrong)


BAD_CALLS = {
    "more than stored": (sample(6), ValueError, ["batch_size", "at most", "5", "got 6"]),
    "no batch": (sample(0), ValueError, ["batch_size", "at least 1", "got 0"]),
    "float batch": (sample(2.0), TypeError, ["batch_size", "integer", "got 2.0"]),
    "beta > 1": (sample(2, beta=1.1), ValueError, ["beta", "[0, 1]", "got 1.1"]),
    "beta a little > 1": (sample(2, beta=1 + 1e-5), ValueError, ["beta", "[0, 1]"]),
    "beta NaN": (sample(2, beta=NAN), ValueError, ["beta", "[0, 1]", "got nan"]),
    "TD error NaN": (update([5, 6], [1.0, NAN]), ValueError, ["td_errors", "finite", "got nan"]),
    "TD error inf": (update([5, 6], [1.0, -INF]), ValueError, ["td_errors", "finite", "got -inf"]),
    "TD error huge": (update([5], [1e101]), ValueError, ["td_errors", "≤ 1e100", "got 1e+101"]),
    "TD errors short": (update([5, 6], [1.0]), ValueError, ["td_errors", "(2,)", "got (1,)"]),
    "TD errors (B, 1)": (update([5], [[1.0]]), ValueError, ["td_errors", "(1,)", "got (1, 1)"]),
    "TD error None": (update([5], [None]), TypeError, ["td_errors", "numbers", "got object"]),
    "index too large": (update([5, 7], [1.0] * 2), IndexError, ["indices", "[0, 7)", "got 7"]),
    "index negative": (update([5, -1], [1.0] * 2), IndexError, ["indices", "[0, 7)", "got -1"]),
    "index float": (update([5.0], [1.0]), TypeError, ["indices", "integers", "got float64"]),
    "observation": (  # all have the stored types, so a step is written without a conversion
        adding_with(observation=np.ones(1, "f4"), next_observation=np.ones(2, "f4")),
        ValueError,
        ["observation", "(2,)", "(1,)"],
    ),
    "observation NaN": (
        adding_with(observation=np.array([0.0, NAN], np.float32)),
        ValueError,
        ["observation", "finite", "nan"],
    ),
    "next observation inf": (
        adding_with(next_observation=[0.0, -INF]),
        ValueError,
        ["next_observation", "finite", "-inf"],
    ),
    "action float": (adding_with(action=0.5), TypeError, ["action", "int64", "got float64"]),
    "action array": (adding_with(action=[1]), ValueError, ["action", "()", "got (1,)"]),
    "reward NaN": (adding_with(reward=NAN), ValueError, ["reward", "finite", "nan"]),
    "reward beyond float32": (adding_with(reward=1e39), ValueError, ["reward", "float32", "e+39"]),
    "terminated 2": (adding_with(terminated=2), ValueError, ["terminated", "True or False", "2"]),
    "truncated 2": (adding_with(truncated=2), ValueError, ["truncated", "True or False", "2"]),
    "one observation": (
        extending_with(observations=[0.0, 0.0]),
        ValueError,
        ["observation", "(2, 2) with transitions = 2", "got (2,)"],
    ),
    "an action too few": (
        extending_with(actions=[0] * 8),
        ValueError,
        ["action", "(9,) with transitions = 9", "got (8,)"],
    ),
    "one observation NaN": (
        extending_with(next_observations=np.array([[0.0, 0.0]] * 8 + [[0.0, NAN]])),
        ValueError,
        ["next_observation", "finite", "nan"],
    ),
}


@every_kind
@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_input_is_named_and_changes_nothing(kind, case):
    call, error, said = BAD_CALLS[case]
    buffer = used(kind)
    before = bits(buffer)
    with pytest.raises(error) as caught:
        call(buffer)
    assert all(part in str(caught.value) for part in said), caught.value
    assert bits(buffer) == before


@every_kind
def test_nothing_can_be_sampled_before_anything_is_stored(kind):
    with pytest.raises(ValueError, match="batch_size: .* stored transitions, 0, got 1"):
        kind(5, 2).sample(1)


@every_kind
def test_a_stack_wants_a_row_for_each_run(kind):
    stack = kind(4, 1, runs=2, seed=0)
    row = {"observation": np.zeros((2, 1)), "action": [0, 0], "reward": [0, 0]}
    row |= {"next_observation": np.zeros((2, 1)), "terminated": [False, False]}
    stack.add(**row)
    before = bits(stack)
    wrong_rows = {
        "observation": (np.zeros((3, 1)), r"\(2, 1\) with runs = 2, got \(3, 1\)"),
        "action": (0, r"\(2,\) with runs = 2, got \(\)"),
        "truncated": ([True], r"\(2,\) with runs = 2, got \(1,\)"),
    }
    for name, (value, said) in wrong_rows.items():
        with pytest.raises(ValueError, match=f"{name}: .*{said}"):
            stack.add(**row | {name: value})
    for indices in ([0, 0], [[0]], [[0], [0], [0]]):
        with pytest.raises(ValueError, match=r"indices: must have the shape \(2, batch\)"):
            stack.update_priorities(indices, np.ones(np.shape(indices)))
    with pytest.raises(IndexError, match=r"indices: must be in \[0, 1\), got 1"):
        stack.update_priorities([[0], [1]], [[1.0], [1.0]])
    assert bits(stack) == before


@every_kind
@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"capacity": 0}, ValueError, ["capacity", "at least 1", "got 0"]),
        ({"observation_shape": 0}, ValueError, ["observation_shape", "at least 1", "got 0"]),
        ({"observation_shape": (2, -1)}, ValueError, ["observation_shape", "at least 1", "got -1"]),
        ({"observation_shape": "ab"}, TypeError, ["observation_shape", "integer", "got 'ab'"]),
        ({"runs": 0}, ValueError, ["runs", "at least 1", "got 0"]),
        ({"n_step": 6}, ValueError, ["n_step", "at most 5", "got 6"]),
        ({"discount": 1.1}, ValueError, ["discount", "[0, 1]", "got 1.1"]),
        ({"seed": -1}, ValueError, ["seed", "at least 0", "got -1"]),
        ({"runs": 3, "seed": [1, 2]}, ValueError, ["seed", "3 runs", "got 2"]),
    ],
)
def test_a_buffer_that_makes_no_sense_is_refused(kind, arguments, error, said):
    with pytest.raises(error) as caught:
        kind(**{"capacity": 5, "observation_shape": 2} | arguments)
    assert all(part in str(caught.value) for part in said), caught.value


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["observation", "reward", "next_observation"])
def test_a_nan_of_any_float_is_refused(name, dtype):
    """All fields have the stored types, so steps are written without a conversion."""
    stack = ReplayBuffer(4, 1, runs=2, observation_dtype=dtype)
    seen, flags = np.zeros((2, 1), dtype), np.zeros(2, bool)
    step = Transition(seen, np.zeros(2, int), np.zeros(2, np.float32), seen.copy(), flags, flags)
    stack.add(*step)
    getattr(step, name)[-1] = NAN
    with pytest.raises(ValueError, match=f"^{name}: must be finite"):
        stack.add(*step)
    assert stack.storage.added.tolist() == [1, 1]


@every_kind
def test_help_tells_all_settings_and_others_are_refused(kind):
    of_storage = inspect.signature(TransitionStorage).parameters
    of_sampler = inspect.signature(type(kind(5, 2).sampler)).parameters
    of_buffer = inspect.signature(kind).parameters
    for name, parameter in (of_storage | of_sampler).items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            assert of_buffer[name].default == parameter.default
    given = {"n_step": 2, "discount": 0.5, "environments": 3, "observation_dtype": "f8"}
    given |= {"action_shape": (2,), "action_dtype": "i2"}
    assert kind(5, 2, **given).storage.settings == TransitionStorage(5, 2, **given).settings
    with pytest.raises(TypeError, match="unexpected keyword argument 'alhpa'"):
        kind(5, 2, alhpa=0.5)
    with pytest.raises(TypeError, match="^action: must be int64, got float64$"):
        kind(5, 2).add(np.zeros(2, "f4"), np.array(0.7), 0.0, np.zeros(2, "f4"), False)


def test_a_buffer_to_which_no_td_error_comes_back_says_so_once(monkeypatch):
    monkeypatch.setattr("per_tutorial.replay.ledger.DRAWS_WITHOUT_UPDATE", 3)

    def draw(buffer, count):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(count):
                buffer.sample(1)
        return [str(each.message) for each in caught if each.category is UserWarning]

    for name, needs_updates in {
        "lap": True,
        "rank": True,
        "uniform": False,
    }.items():
        buffer = Replay(TransitionStorage(8, ()), SAMPLERS[name](8, [0]))
        buffer.add(0, 0, 0.0, 0, False)
        assert draw(buffer, 2) == []
        said = draw(buffer, 9)
        assert len(said) == needs_updates and all(
            "drawn without any TD error" in each for each in said
        )
        other = Replay(TransitionStorage(8, ()), SAMPLERS[name](8, [0]))
        other.add(0, 0, 0.0, 0, False)
        other.update_priorities([0], [1.0])
        assert draw(other, 9) == []


def test_transitions_of_environments_that_take_turns_come_in_whole_rounds():
    buffer = ReplayBuffer(12, 1, environments=4)
    before = bits(buffer)
    rows = np.zeros((5, 1))
    with pytest.raises(ValueError, match="must be whole rounds of all 4 .*, got 5 after 0"):
        buffer.extend(rows, [0] * 5, [0.0] * 5, rows, [False] * 5)
    assert bits(buffer) == before
    whole = rows[:4], [0] * 4, [0.0] * 4, rows[:4], [False] * 4
    buffer.extend(*whole)
    buffer.add(rows[0], 0, 0.0, rows[0], False)
    with pytest.raises(ValueError, match="got 4 after 1 of a round"):  # whose turn is it?
        buffer.extend(*whole)
    buffer.truncate_episodes()  # the environments begin anew
    buffer.extend(*whole)
    restored = ReplayBuffer(12, 1, environments=4)
    restored.restore(buffer.state)
    restored.extend(*whole)  # they go on where a round has ended, at 9 steps
    assert len(buffer) == 9


def test_frames_are_added_step_by_step():
    replay = Replay(FrameStorage(4, (2, 1)), UniformSampler(4, [0]))
    with pytest.raises(TypeError, match="extend: a FrameStorage takes only single steps"):
        replay.extend([], [], [], [], [])


def test_integers_that_would_be_rounded_are_refused_and_floats_are_said():
    buffer = ReplayBuffer(4, 1, seed=0)
    buffer.add([2**24], 0, 0.0, [0], False)
    with pytest.raises(ValueError, match="^observation: float32 rounds .*got 16777217"):
        buffer.add([2**24 + 1], 0, 0.0, [0], False)
    wide = ReplayBuffer(4, 1, seed=0, observation_dtype=np.float64)
    with pytest.raises(ValueError, match="^observation: float64 rounds .*got 9007199254740993"):
        wide.add([2**53 + 1], 0, 0.0, [0], False)
    with pytest.warns(UserWarning, match="next_observation: float32 rounds") as caught:
        for number in (1.7e9, 1.7e9 + 256):
            buffer.add([0.0], 0, 2**24 + 1, [number], False)  # rewards are float32
    one, other = (str(each.message) for each in caught if each.category is UserWarning)
    assert one == other  # so Python shows it once
    assert len(buffer) == 3


def test_two_threads_at_once_are_told_of_a_lock():
    buffer, inside, go_on = ReplayBuffer(4, 1, seed=0), threading.Event(), threading.Event()
    buffer.add([0.0], 0, 0.0, [0.0], False)
    draw = buffer.sampler.sample

    def slowly(*arguments):
        inside.set()
        assert go_on.wait(60)
        return draw(*arguments)

    buffer.sampler.sample = slowly
    other = threading.Thread(target=buffer.sample, args=[1])
    other.start()
    assert inside.wait(60)
    with pytest.raises(RuntimeError, match="one thread at a time.*lock"):
        buffer.add([0.0], 0, 0.0, [0.0], False)
    go_on.set()
    other.join()
    buffer.add([0.0], 0, 0.0, [0.0], False)
    assert len(buffer) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_is_told_that_it_draws_the_same():
    buffer = ReplayBuffer(4, 1, seed=0)
    buffer.add([0.0], 0, 0.0, [0.0], False)
    pickled = pickle.dumps(buffer)
    child = os.fork()
    if child == 0:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pickle.loads(pickled).sample(1)  # not forked: it was made here
            buffer.sample(1)
            buffer.sample(1)
        os._exit(sum("forked" in str(each.message) for each in caught) == 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        buffer.sample(1)
