"""Ctrl-C at every line: a call has happened or has not, and the buffer goes on as if undisturbed.

A trace function raises KeyboardInterrupt before the k-th line that runs inside the package, for
k = 1, 2, … until the call comes to its end. The slow form does so before every bytecode
instruction, and interrupts what finishes the call as well.
"""

import itertools
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from interrupts import interrupted
from replay_helpers import bits, copy_of
from storage_contract import World
from toy_samplers import NearTheEnd

from per_tutorial.replay import (
    FrameStorage,
    ProportionalSampler,
    RankBasedSampler,
    Replay,
    TransitionStorage,
    registry,
)

CAPACITY = 6
STORAGES = {
    **registry.STORAGES,
    "bytes": partial(
        TransitionStorage, observation_dtype=np.uint8
    ),  # as they come: nothing is converted
    "frames": partial(FrameStorage, environments=2),
}
SAMPLERS = {
    **registry.SAMPLERS,
    "proportional": partial(ProportionalSampler, normalize="buffer"),
    "rank": partial(RankBasedSampler, sort_every=3),
    "episodes": NearTheEnd,
}


def sample(buffer):
    """A minibatch; a sampler that asks for TD errors gets some."""
    return buffer.sample(2, td_errors=lambda batch: np.sin(batch.indices + 1.0))


class Scene:
    """A buffer in the middle of its life, and all that may be done to it."""

    def __init__(self, storage, sampler, runs, steps, folder):
        self.world = World(STORAGES[storage], CAPACITY, runs or 1, n_step=2)
        seeds = list(range(runs or 1))
        self.buffer = Replay(self.world.storage, SAMPLERS[sampler](CAPACITY, seeds), runs)
        for fields in self.film(self.world, steps):
            self.buffer.add(*fields)
        batch = sample(self.buffer)
        self.buffer.update_priorities(batch.indices, np.sin(batch.indices + 1.0))
        # What goes on in the environments after a call; after most calls, it is what went on
        # before.
        step_later, reset, elsewhere = (deepcopy(self.world) for _ in range(3))
        reset.stacks = reset.new_stacks()
        self.worlds = {
            "add": step_later,
            "truncate_episodes": reset,
            "restore": elsewhere,
            "load": elsewhere,
        }
        (next_step,) = self.film(step_later, 1)
        other = deepcopy(self.buffer)
        for fields in self.film(elsewhere, CAPACITY + 1):
            other.add(*fields)
        self.path, self.other = folder / "other.npz", copy_of(other.state)
        other.save(self.path)
        self.calls = {
            "add": lambda buffer: buffer.add(*next_step),
            "extend": self.extend,
            "sample": sample,
            "update": lambda buffer: buffer.update_priorities(batch.indices, batch.indices - 2.5),
            "truncate_episodes": lambda buffer: buffer.truncate_episodes(),
            "restore": lambda buffer: buffer.restore(self.other),
            "load": lambda buffer: buffer.load(self.path),
        }
        if not hasattr(self.world.storage, "prepare_many"):
            del self.calls["extend"]
        # Compile all: an interrupt meanwhile would harm numba itself.
        for call in self.calls.values():
            call(deepcopy(self.buffer))

    def film(self, world, steps):
        """What happens next in a world, as a buffer takes it."""
        film = [world.step() for _ in range(steps)]
        return film if self.buffer.runs else [[field[0] for field in step] for step in film]

    def extend(self, buffer):
        """Add more transitions than there are slots."""
        axis = 0 if buffer.runs is None else 1
        columns = zip(*self.film(deepcopy(self.world), CAPACITY + 2), strict=True)
        buffer.extend(*(np.stack(column, axis) for column in columns))

    def continued(self, buffer, film):
        """What becomes of a buffer: all that it draws, and its last state."""
        drawn = []
        for fields in film:
            buffer.add(*fields)
            batch = sample(buffer)
            buffer.update_priorities(batch.indices, np.cos(batch.indices))
            drawn += [each.tobytes() for each in batch]
        return drawn, bits(buffer)


def assert_before_or_after(scene, name, unit="line", again=None):
    """Interrupt a call everywhere; ``again`` (a generator of chances) interrupts what follows, too.

    Returns how often the call had not happened, and how often it had.
    """
    call, outcomes = scene.calls[name], [0, 0]
    done = deepcopy(scene.buffer)
    call(done)
    ends = [bits(scene.buffer), bits(done)]
    worlds = scene.world, scene.worlds.get(name, scene.world)
    films = [scene.film(deepcopy(world), 3) for world in worlds]
    starts = zip((scene.buffer, done), films, strict=True)
    futures = [scene.continued(deepcopy(buffer), film) for buffer, film in starts]
    for after in itertools.count(1):
        victim, other = deepcopy(scene.buffer), deepcopy(scene.buffer)
        if not interrupted(partial(call, victim), after, unit):
            assert bits(victim) == ends[1]
            return outcomes
        assert interrupted(partial(call, other), after, unit)
        if again is not None:
            interrupted(lambda other=other: other.state, int(again.integers(1, 60)), unit)
            interrupted(lambda victim=victim: len(victim), int(again.integers(1, 60)), unit)
        # One is looked at, the other one just goes on.
        assert bits(victim) in ends, f"neither before nor after, at {unit} {after}"
        outcome = ends.index(bits(victim))
        outcomes[outcome] += 1
        assert scene.continued(victim, films[outcome]) == futures[outcome]
        assert scene.continued(other, films[outcome]) == futures[outcome]


class CountsAgain(TransitionStorage):
    """A write that is finished later adds once more."""

    def commit(self, write):
        added = self.added + (write.slots >= 0).sum(axis=1)
        super().commit(write._replace(added=added))


class WritesInTwoSteps(ProportionalSampler):
    """An update of one transition after the other."""

    def update(self, slots, td_errors):
        for k in range(slots.shape[1]):
            super().update(slots[:, k : k + 1], td_errors[:, k : k + 1])


@pytest.mark.parametrize(
    ("name", "parts"),
    [("add", {"transitions": CountsAgain}), ("update", {"proportional": WritesInTwoSteps})],
)
def test_a_part_that_can_be_left_half_done_is_noticed(name, parts, tmp_path, monkeypatch):
    scene = Scene("transitions", "proportional", None, 3, tmp_path)
    assert_before_or_after(scene, name)
    for kinds in (STORAGES, SAMPLERS):
        for key in parts.keys() & kinds.keys():
            monkeypatch.setitem(kinds, key, parts[key])
    scene = Scene("transitions", "proportional", None, 3, tmp_path)
    with pytest.raises(AssertionError, match="neither before nor after"):
        assert_before_or_after(scene, name)


QUICK = [
    ("transitions", "uniform", None, 3),
    ("transitions", "proportional", 2, 9),
    ("transitions", "rank", None, 8),
    ("frames", "proportional", None, 2),
    ("frames", "rank", 2, 7),
    ("frames", "episodes", None, 7),
    ("transitions", "lap", 2, 9),
    ("frames", "reaper", None, 7),
    ("transitions", "laber", None, 8),
    ("transitions", "relo", 2, 9),
    ("bytes", "proportional", 2, 9),
    ("bytes", "rank", None, 8),
]
# What else is registered
QUICK += [("transitions", name, 2, 9) for name in SAMPLERS if name not in {row[1] for row in QUICK}]
QUICK += [(name, "rank", 2, 9) for name in STORAGES if name not in {row[0] for row in QUICK}]


@pytest.mark.slow
@pytest.mark.parametrize(("storage", "sampler", "runs", "steps"), QUICK)
def test_an_interrupted_call_has_happened_or_has_not(storage, sampler, runs, steps, tmp_path):
    scene = Scene(storage, sampler, runs, steps, tmp_path)
    if sampler != "uniform":
        del scene.calls["load"]  # reading is the same for all, and then it is `restore`
    for name in scene.calls:
        before, after = assert_before_or_after(scene, name)
        assert before > 0, name
        # These two are over with their one compiled call, or nearly so.
        assert after > 0 or name in ("sample", "update"), name


def test_an_interrupted_save_leaves_the_old_file_or_the_new_one(tmp_path):
    scene = Scene("transitions", "proportional", 2, 9, tmp_path)
    path, before = scene.path, bits(scene.buffer)
    old = path.read_bytes()
    scene.buffer.save(path)
    new = path.read_bytes()
    for after in itertools.count(1):
        path.write_bytes(old)
        if not interrupted(partial(scene.buffer.save, path), after):
            break
        assert list(tmp_path.iterdir()) == [path]
        assert bits(scene.buffer) == before
        assert path.read_bytes() in (old, new)
    assert after > 10 and path.read_bytes() == new != old


@pytest.mark.exhaustive
@pytest.mark.parametrize(("storage", "sampler", "runs", "steps"), QUICK)
def test_at_every_instruction_and_twice(storage, sampler, runs, steps, tmp_path):
    scene = Scene(storage, sampler, runs, steps, tmp_path)
    del scene.calls["load"]
    for name in scene.calls:
        assert_before_or_after(scene, name, "line", np.random.default_rng(0))
        assert_before_or_after(scene, name, "opcode", np.random.default_rng(1))
