"""What every storage must hold, whatever it keeps: the contract of `Storage`, as checks.

A check is a function `holds_…(make)`; ``make(capacity, observation_shape, runs, n_step=…)`` makes a
storage. `CHECKS` lists them.
"""

import copy
import io
import pickle

import numpy as np
import pytest
import torch
from naive import naive_window
from replay_helpers import bits, copy_of

from per_tutorial.dqn.states import checked_state
from per_tutorial.replay import Replay, Transition, UniformSampler

RUNS, STACK, DISCOUNT = 2, 2, 0.5  # with which sums are exact
FIELDS = ("observation", "action", "reward", "next_observation", "terminated")


class World:
    """A storage, the environments that feed it, and the log of all that happened in them.

    Observations are stacks of frames, as `FrameStorage` wants them; to others they are numbers like
    any others. No two frames are alike, and none is black.
    """

    def __init__(self, make, capacity=9, runs=RUNS, n_step=1, seed=0, pixels=3):
        self.pixels = pixels
        self.storage = make(capacity, (STACK, pixels), runs, n_step=n_step, discount=DISCOUNT)
        self.chances = np.random.default_rng(seed)
        self.frame = seed * 10_000
        self.axes = self.storage.leading_axes
        self.logs = [[[] for _ in range(self.storage.environments)] for _ in range(runs)]
        self.stacks = self.new_stacks()

    def new_stacks(self):
        stacks = np.zeros((*self.axes, STACK, self.pixels), dtype=np.uint8)
        stacks[..., -1, :] = self.new_frames()
        return stacks

    def new_frames(self):
        numbers = self.frame + np.arange(np.prod(self.axes)).reshape(self.axes)
        self.frame += numbers.size
        digits = np.stack([numbers // 250**k % 250 + 1 for k in range(3)], axis=-1)
        return np.tile(digits, self.pixels // 3)

    def step(self):
        """What happens next: a `Transition` of arrays that nobody else holds."""
        before = self.stacks
        after = np.concatenate([before[..., 1:, :], self.new_frames()[..., None, :]], axis=-2)
        after = after.astype(np.uint8)
        ends = self.chances.random(self.axes)
        transition = Transition(
            before.copy(),
            self.chances.integers(100, size=self.axes),
            self.chances.integers(-8, 8, size=self.axes).astype(np.float32),
            after.copy(),
            ends < 0.15,
            ends > 0.85,
        )
        over = (ends < 0.15) | (ends > 0.85)
        self.stacks = np.where(over[..., None, None], self.new_stacks(), after)
        return transition

    def note(self, transition):
        """Write a step down in the logs."""
        for index in np.ndindex(self.axes):
            run, environment = index if len(index) == 2 else (*index, 0)
            self.logs[run][environment].append(tuple(np.copy(each[index]) for each in transition))

    def add(self, steps=1):
        for _ in range(steps):
            transition = self.step()
            self.storage.commit(self.storage.prepare(transition))
            self.note(transition)
        return self

    def stored(self):
        """All windows that are stored, as the storage has them: an array for each field."""
        slots = np.tile(np.arange(self.storage.ring.sizes[0]), (len(self.logs), 1))
        rows, steps = self.storage.n_step_transitions(slots)
        return [*(np.asarray(rows[name]) for name in FIELDS), steps, self.storage.ring.ids(slots)]

    def assert_log(self):
        """What is stored is what has happened, each transition in the slot of its number."""
        *fields, numbers = self.stored()
        added = sum(len(log) for log in self.logs[0])
        storage, every = self.storage, np.tile(np.arange(added), (len(self.logs), 1))
        assert storage.added.tolist() == [added] * len(self.logs)
        assert storage.ring.sizes.tolist() == [min(added, storage.capacity)] * len(self.logs)
        where = np.where(every >= added - storage.capacity, every % storage.capacity, -1)
        np.testing.assert_array_equal(storage.ring.slots(every), where)
        for run, slot in np.ndindex(numbers.shape):
            number = int(numbers[run, slot])
            assert where[run, number] == slot
            step, environment = divmod(number, storage.environments)
            log = self.logs[run][environment]
            window = naive_window(log, step, storage.n_step, storage.discount)
            for field, expected in zip(fields, window, strict=True):
                np.testing.assert_allclose(field[run, slot], expected, rtol=1e-6)


def worlds(make):
    """Part full, just full and wrapped, single steps and windows."""
    for capacity, n_step in [(9, 1), (4, 3)]:
        for steps in (0, 1, 3, capacity, 3 * capacity + 1):
            yield World(make, capacity, n_step=n_step).add(steps)


def holds_what_was_added_is_there(make):
    for n_step in (1, 3):
        for runs in (1, RUNS):
            world = World(make, capacity=8, runs=runs, n_step=n_step)
            for _ in range(25):
                environments, before = world.storage.environments, world.storage.added.copy()
                transition = world.step()
                write = world.storage.prepare(transition)
                assert (write.added == before + environments).all()
                numbers = before[:, None] + np.arange(environments)
                np.testing.assert_array_equal(write.slots, numbers % 8)
                world.storage.commit(write)
                world.note(transition)
                world.assert_log()


def holds_steps_together_are_steps_one_by_one(make):
    """Where a storage takes many at once."""
    for count in (0, 1, 5, 30):
        world = World(make).add(3)
        if not hasattr(world.storage, "prepare_many"):
            return
        twin = copy.deepcopy(world)
        steps = [twin.step() for _ in range(count)]
        # One more and cut off again, so that no step at all has shapes, too.
        columns = zip(*steps, twin.step(), strict=True)
        many = [np.stack(column, axis=1)[:, :count] for column in columns]
        world.storage.commit(world.storage.prepare_many(Transition(*many)))
        for step in steps:
            twin.storage.commit(twin.storage.prepare(step))
        assert bits(world.storage) == bits(twin.storage)


def holds_a_run_may_have_nothing_to_add(make):
    """Where a storage allows it."""
    world = World(make).add(3)
    try:
        write = world.storage.prepare(world.step(), np.array([True, False]))
    except ValueError as error:
        assert "valid: " in str(error)
        return
    before = world.stored()
    world.storage.commit(write)
    assert write.slots.tolist() == [[3], [-1]] and world.storage.added.tolist() == [4, 3]
    for field, old in zip(world.stored(), before, strict=True):  # as far as both runs are filled
        np.testing.assert_array_equal(field[1, :3], old[1])


def holds_preparing_changes_nothing_and_keeps_no_argument(make):
    for world in worlds(make):
        before, transition = bits(world.storage), world.step()
        write = world.storage.prepare(transition)
        assert bits(world.storage) == before
        world.note(transition)
        for field in transition:
            field[...] = 0  # an agent that uses its arrays again
        world.storage.commit(write)
        world.assert_log()


def holds_a_second_commit_writes_the_same(make):
    for world in worlds(make):
        write = world.storage.prepare(world.step())
        world.storage.commit(write)
        before = bits(world.storage)
        world.storage.commit(write)
        assert bits(world.storage) == before


def holds_slots_outside_are_refused(make):
    for world in worlds(make):
        for slot in (-1, world.storage.capacity, 2**40, -(2**40)):
            with pytest.raises(IndexError, match="slots: must be in"):
                world.storage.n_step_transitions(np.array([[0, slot], [0, 0]]))


def holds_a_cut_is_a_time_limit(make):
    for world in worlds(make):
        slots = world.storage.truncate_episodes()
        environments = world.storage.environments
        newest = world.storage.added[:, None] - environments + np.arange(environments)
        expected = np.where(newest >= 0, newest % world.storage.capacity, -1)
        np.testing.assert_array_equal(slots, expected)
        for log in (log for logs in world.logs for log in logs if log):
            log[-1] = (*log[-1][:5], ~log[-1][4])
        before = bits(world.storage)
        np.testing.assert_array_equal(world.storage.truncate_episodes(), slots)
        assert bits(world.storage) == before
        world.assert_log()
        world.stacks = world.new_stacks()
        world.add(3).assert_log()


def wrong_steps(transition):
    """Steps of which one field does not fit, and the error."""
    for name, values in transition._asdict().items():
        longer = np.concatenate([values, values])
        yield name, longer, ValueError
        yield name, values[..., None], ValueError
        yield name, np.full(values.shape, "a"), (ValueError, TypeError)
        yield name, np.full(values.shape, None), (ValueError, TypeError)
        yield name, np.ma.masked_array(values, np.ones(values.shape, bool)), ValueError
    yield "reward", np.full(transition.reward.shape, np.nan), ValueError
    yield "reward", np.full(transition.reward.shape, -np.inf), ValueError
    yield "reward", np.full(transition.reward.shape, 1e39), ValueError
    yield "action", np.full(transition.action.shape, 2**63, dtype=np.uint64), ValueError
    yield "action", np.full(transition.action.shape, 0.5), TypeError
    for name in ("terminated", "truncated"):
        yield name, np.full(transition.action.shape, 2), ValueError
        yield name, np.full(transition.action.shape, np.nan), ValueError


def holds_what_does_not_fit_is_refused_and_nothing_changes(make):
    for world in worlds(make):
        transition, before = world.step(), bits(world.storage)
        for name, values, error in wrong_steps(transition):
            with pytest.raises(error, match=f"^{name}: "):
                world.storage.prepare(transition._replace(**{name: values}))
        assert bits(world.storage) == before


def holds_tensors_and_other_types_that_lose_nothing_are_taken(make):
    for convert in (
        torch.as_tensor,
        lambda values: np.ma.masked_array(values, np.zeros(values.shape, bool)),
        lambda values: values.tolist() if values.dtype != np.uint8 else values,
        np.asfortranarray,
    ):
        world = World(make).add(2)
        for _ in range(12):
            transition = world.step()
            fields = [convert(field) for field in transition]
            if convert is torch.as_tensor:
                fields[2] = fields[2].requires_grad_()
            world.storage.commit(world.storage.prepare(Transition(*fields)))
            world.note(transition)
        world.assert_log()


def holds_without_a_shape_truncated_is_nowhere(make):
    world = World(make)
    transition = world.step()
    transition = transition._replace(truncated=np.zeros_like(transition.truncated))
    world.storage.commit(world.storage.prepare(transition._replace(truncated=False)))
    world.note(transition)
    world.assert_log()


def holds_what_is_handed_out_is_a_copy(make):
    for world in worlds(make):
        before = bits(world.storage)
        if world.storage.added[0]:
            for field in world.stored():
                field[...] = 0
        world.storage.ring.sizes[:] = 0
        assert bits(world.storage) == before


def through_a_file(state):
    file = io.BytesIO()
    np.savez(file, **state)
    with np.load(io.BytesIO(file.getvalue())) as members:
        return dict(members)


def holds_a_state_is_what_the_schema_says(make):
    for world in worlds(make):
        state, storage = world.storage.state, world.storage
        assert state.keys() == storage.schema.keys()
        sizes = storage.check(checked_state(state, storage.schema))
        np.testing.assert_array_equal(sizes, storage.ring.sizes)
        assert bits(storage) == bits(copy.deepcopy(storage))


def holds_a_restored_storage_continues(make):
    for world in worlds(make):
        storage = world.storage
        other = World(make, storage.capacity, n_step=storage.n_step, seed=3).add(40)
        state = checked_state(through_a_file(storage.state), other.storage.schema)
        other.storage.check(state)
        kept = copy_of(state)
        for _ in range(2):
            other.storage.restore(state)
            assert bits(other.storage) == bits(storage)
        world.storage = other.storage
        world.add(7).assert_log()
        for name, array in kept.items():
            np.testing.assert_array_equal(state[name], array, err_msg="a part of the state given")


def holds_copies_continue_alike_and_share_nothing(make):
    for world in worlds(make):
        for copied in (copy.deepcopy(world), pickle.loads(pickle.dumps(world))):
            mine, theirs = arrays_of(world.storage), arrays_of(copied.storage)
            assert not any(np.shares_memory(one, other) for one in mine for other in theirs)
            before = bits(world.storage)
            copied.add(12).assert_log()
            assert bits(world.storage) == before
            twin = copy.deepcopy(world).add(12)
            assert bits(copied.storage) == bits(twin.storage)


def arrays_of(part):
    return [value for value in vars(part).values() if isinstance(value, np.ndarray)]


def holds_a_pickle_is_as_large_as_what_is_stored(make):
    for steps in (3, 60, 600):
        world = World(make, capacity=1000, runs=1, pixels=600).add(steps // 3)
        stored = sum(array.nbytes for array in world.storage.state.values())
        assert len(pickle.dumps(world.storage)) <= 1.2 * stored + 3000


def holds_it_is_one_half_of_a_buffer(make):
    world = World(make).add(5)
    buffer = Replay(world.storage, UniformSampler(9, range(RUNS)), RUNS)
    for _ in range(30):
        transition = world.step()
        buffer.add(*transition)
        world.note(transition)
        batch = buffer.sample(4)
        for run, k in np.ndindex(batch.indices.shape):
            step, environment = divmod(int(batch.indices[run, k]), world.storage.environments)
            window = naive_window(world.logs[run][environment], step, 1, DISCOUNT)
            np.testing.assert_array_equal(batch.observations[run, k], window[0])
            np.testing.assert_array_equal(batch.next_observations[run, k], window[3])


CHECKS = [check for name, check in globals().items() if name.startswith("holds_")]
