"""Frames kept once make the same transitions as stacks kept whole, whatever the episodes do.

`NaiveFrames` is the twin: it keeps whole stacks in lists. As in the other tests of the replay side,
a function named `holds_…` states a property; the storage has it, those with a bug put in must fail
it.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from per_tutorial.replay import (
    FrameStorage,
    Replay,
    Transition,
    UniformSampler,
)
from per_tutorial.replay.random_streams import seeds_for

STACK, DISCOUNT = 3, 0.5
GOES_ON, TERMINATED, TRUNCATED = range(3)


class Films:
    """Environments that show a new frame in every step, no two of them alike.

    A frame has 2 pixels, the number of all frames so far in base 255, none of them black (zero).
    """

    def __init__(self, runs, environments):
        self.shown = 0
        self.stacks = np.zeros((runs, environments, STACK, 2), dtype=np.uint8)
        for index in np.ndindex(runs, environments):
            self._show(index)

    def _show(self, index):
        self.stacks[index][:-1] = self.stacks[index][1:]
        self.stacks[index][-1] = self.shown // 255 + 1, self.shown % 255 + 1
        self.shown += 1

    def step(self, ends):
        """A `Transition`; ``ends`` (runs, environments) says which episodes end."""
        ends = np.asarray(ends)
        observation = self.stacks.copy()
        for index in np.ndindex(ends.shape):
            self._show(index)
        next_observation = self.stacks.copy()
        for index in map(tuple, np.argwhere(ends != GOES_ON)):
            self.stacks[index] = 0
            self._show(index)
        action = np.arange(ends.size).reshape(ends.shape) + self.shown
        reward = np.sin(action).astype(np.float32)
        terminated, truncated = ends == TERMINATED, ends == TRUNCATED
        return Transition(observation, action, reward, next_observation, terminated, truncated)


class NaiveFrames:
    """All that was ever added, as whole transitions: one list for each run and environment."""

    def __init__(self, runs, environments):
        self.transitions = [[[] for _ in range(environments)] for _ in range(runs)]

    def add(self, transition):
        for run, environment in np.ndindex(transition.action.shape):
            fields = tuple(field[run, environment].copy() for field in transition)
            self.transitions[run][environment].append(fields)

    def window(self, run, number, n_step):
        """The n-step transition that begins with transition ``number``, and its discount."""
        number, environment = divmod(number, len(self.transitions[run]))
        window = self.transitions[run][environment][number : number + n_step]
        for length, (*_, terminated, truncated) in enumerate(window, start=1):
            if terminated or truncated:
                window = window[:length]
                break
        observation, action = window[0][:2]
        reward = sum(DISCOUNT**j * transition[2] for j, transition in enumerate(window))
        discount = DISCOUNT ** len(window) * (not window[-1][4])
        return (observation, action, reward, *window[-1][3:]), discount


def assert_equals_twin(storage, twin):
    """Every transition that the storage should hold, in every slot, is as the twin has it."""
    size = min(int(storage.added[0]), storage.capacity)
    assert storage.ring.sizes.tolist() == [size] * storage.runs
    slots = np.broadcast_to(np.arange(size), (storage.runs, size))
    rows, discounts = storage.n_step_transitions(slots)
    numbers = storage.ring.ids(slots)
    newest = int(storage.added[0])
    assert sorted(numbers[0]) == list(range(newest - size, newest))
    for run, k in np.ndindex(slots.shape):
        fields, discount = twin.window(run, int(numbers[run, k]), storage.n_step)
        assert discounts[run, k] == discount
        for name, expected in zip(Transition._fields, fields, strict=True):
            np.testing.assert_allclose(rows[name][run, k], expected, rtol=1e-6, err_msg=name)


def fill(storage, twin, films, steps):
    """Make steps, each the array of ends (runs, environments), and check after every one."""
    for ends in steps:
        transition = films.step(ends)
        storage._write = lambda *_: None  # as if an interrupt came before the step is counted
        storage.add(transition)
        del storage._write
        assert_equals_twin(storage, twin)
        slots = storage.add(transition)
        twin.add(transition)
        for field in transition:  # an environment may use its arrays again
            field[...] = 0
        np.testing.assert_array_equal(storage.ring.ids(slots)[:, -1], storage.added - 1)
        assert_equals_twin(storage, twin)


def new(make=FrameStorage, capacity=12, runs=1, environments=1, n_step=1):
    options = {"environments": environments, "n_step": n_step, "discount": DISCOUNT}
    storage = make(capacity, (STACK, 2), runs, **options)
    return storage, NaiveFrames(runs, environments), Films(runs, environments)


def restored(storage):
    other, *_ = new(environments=storage.environments)
    other.restore({name: array.copy() for name, array in storage.state.items()})
    return other


# ---------------------------------------------------------------- the naive twin

ends = st.sampled_from([GOES_ON, GOES_ON, GOES_ON, TERMINATED, TRUNCATED])


@st.composite
def lives(draw):
    """Capacity, runs, environments, n_step, and what ends when."""
    runs, environments = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    capacity = draw(st.integers(environments, 14))
    n_step = draw(st.integers(1, min(4, capacity)))
    step = st.lists(ends, min_size=runs * environments, max_size=runs * environments)
    steps = draw(st.lists(step, min_size=1, max_size=40))
    return capacity, runs, environments, n_step, np.reshape(steps, (-1, runs, environments))


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=150)
@given(lives())
def test_the_storage_equals_its_naive_twin_after_every_step(life):
    *shape, steps = life
    fill(*new(FrameStorage, *shape), steps)


def test_episodes_of_one_step_keep_their_last_frames_and_no_more():
    storage, twin, films = new(capacity=6, environments=2)
    fill(storage, twin, films, np.full((20, 1, 2), TERMINATED))
    assert len(storage.store.kept[1]) <= 8  # 6 are needed; the oldest go with the next step
    fill(storage, twin, films, np.full((4, 1, 2), GOES_ON))
    assert len(storage.store.kept[1]) == 0


def test_episodes_are_cut_after_a_step_that_was_interrupted():
    storage, twin, films = new()
    fill(storage, twin, films, np.full((3, 1, 1), GOES_ON))
    lost = np.full((1, 1, 2), 99, np.uint8)  # of a step that ended its episode, but does not count
    storage.store.keep(3, np.array([True]), lost, ahead=1)
    storage.truncate_episodes()
    *fields, _ = twin.transitions[0][0][-1]
    twin.transitions[0][0][-1] = (*fields, np.True_)
    films.stacks[:] = 0
    films._show((0, 0))
    fill(storage, twin, films, np.full((3, 1, 1), TERMINATED))


def test_an_episode_may_have_more_steps_than_a_byte_counts():
    fill(*new(capacity=3), np.full((260, 1, 1), GOES_ON))


@pytest.mark.parametrize("copied", [lambda storage: pickle.loads(pickle.dumps(storage)), restored])
def test_a_copy_goes_on_in_the_middle_of_an_episode(copied):
    storage, twin, films = new(environments=2)
    fill(storage, twin, films, np.full((4, 1, 2), GOES_ON))  # not full: the frame ahead counts
    storage = copied(storage)
    assert_equals_twin(storage, twin)
    fill(storage, twin, films, np.full((9, 1, 2), GOES_ON))


# ---------------------------------------------------------------- as one half of a replay buffer


def make_sampler(kind, capacity, runs):
    return kind(capacity, seeds_for(0, runs))


def make_replay(kind, runs=None, **options):
    storage, twin, films = new(capacity=12, runs=runs or 1, environments=3, **options)
    replay = Replay(storage, make_sampler(kind, 12, runs or 1), runs)
    return replay, twin, films


def test_a_buffer_for_other_environments_is_not_loaded(tmp_path):
    replay, *_ = make_replay(UniformSampler)
    replay.save(tmp_path / "replay.npz")
    storage = FrameStorage(12, (STACK, 2), environments=2, discount=DISCOUNT)
    other = Replay(storage, make_sampler(UniformSampler, 12, 1))
    with pytest.raises(ValueError, match=r"environments = 3, not 2"):
        other.load(tmp_path / "replay.npz")


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    "field, value, error, message",
    [
        ("observation", np.zeros((1, 2, STACK, 3), np.uint8), ValueError, r"got \(1, 2, 3, 3\)"),
        ("next_observation", np.zeros((1, 2, STACK, 2)), TypeError, "must be uint8, got float64"),
        ("observation", np.full((1, 2, STACK, 2), 256, np.uint16), ValueError, r"in \[0, 255\] "),
        ("observation", np.full((1, 2, STACK, 2), -1), ValueError, "got -1 to -1"),
        # No word of action_shape and action_dtype, which such a storage has not.
        ("action", np.zeros((1, 3), int), ValueError, r"environments = 2, got \(1, 3\)$"),
        ("action", np.zeros((1, 2)), TypeError, "must be int64, got float64$"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_changes(field, value, error, message):
    storage, twin, films = new(environments=2)
    fill(storage, twin, films, np.full((3, 1, 2), TERMINATED))
    transition = films.step(np.full((1, 2), TRUNCATED))
    with pytest.raises(error, match=message):
        storage.add(transition._replace(**{field: value}))
    assert_equals_twin(storage, twin)


def repeated(stacks):
    """Stacks as Gymnasium pads them by default: the first frame takes the place of the
    black ones.
    """
    return np.where(stacks == 0, stacks[..., -1:, :], stacks)


@pytest.mark.parametrize(
    ("ends", "change"),
    [
        # Padded with the first frame.
        (TRUNCATED, lambda t: t._replace(observation=repeated(t.observation))),
        # A life is lost, and the game goes on.
        (TERMINATED, lambda t: t._replace(observation=t.observation[:, :, ::-1])),
        # The environment was reset, and nobody said so.
        (GOES_ON, lambda t: t._replace(observation=t.observation * [[0], [0], [1]])),
        # A frame between two steps is missing.
        (GOES_ON, lambda t: t._replace(observation=t.next_observation)),
        (GOES_ON, lambda t: t._replace(next_observation=t.observation)),
        (TERMINATED, lambda t: t._replace(next_observation=t.observation)),
    ],
)
@pytest.mark.parametrize("which", [(0, 0), (0, 1), (1, 0)])
@pytest.mark.slow
def test_stacks_that_could_not_be_rebuilt_are_refused(which, ends, change):
    storage, twin, films = new(capacity=8, runs=2, environments=2)
    fill(storage, twin, films, np.full((7, 2, 2), GOES_ON))  # once around, and three frames deep
    fill(storage, twin, films, np.full((1, 2, 2), ends))
    right = films.step(np.full((2, 2), GOES_ON))
    changed = change(right)
    for name in ("observation", "next_observation"):
        field = getattr(right, name).copy()
        field[which] = getattr(changed, name)[which]
        changed = changed._replace(**{name: field})
    named = f"environment {which[1]} of run {which[0]}"
    with pytest.raises(ValueError, match=f"observation: must be .*call truncate_episodes.*{named}"):
        storage.add(changed)
    assert_equals_twin(storage, twin)
    storage.add(right)
    twin.add(right)
    assert_equals_twin(storage, twin)


def test_a_single_frame_must_go_on_as_well():
    storage = FrameStorage(8, (1, 2))
    first, second, other = (np.full((1, 1, 1, 2), k, np.uint8) for k in (1, 2, 3))
    rest = np.zeros((1, 1), int), np.zeros((1, 1))
    flags = np.zeros((1, 1), bool), np.zeros((1, 1), bool)
    storage.add(Transition(first, *rest, second, *flags))
    with pytest.raises(ValueError, match="must be the last next_observation"):
        storage.add(Transition(other, *rest, first, *flags))
    storage.add(Transition(second, *rest, other, *flags))


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"environments": 0}, ValueError, "environments: must be at least 1"),
        ({"environments": 9}, ValueError, r"environments: must be at most 8, got 9"),
        ({"observation_shape": (4, 0)}, ValueError, "observation_shape: must be at least 1"),
        ({"observation_shape": ()}, ValueError, "1 to 255 frames in a stack"),
        (
            {"observation_shape": (256, 2)},
            ValueError,
            r"1 to 255 frames .* got \(256, 2\)",
        ),
    ],
)
def test_a_storage_that_cannot_be_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        FrameStorage(**{"capacity": 8, "observation_shape": (STACK, 2)} | options)
