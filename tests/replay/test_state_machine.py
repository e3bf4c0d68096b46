"""Every replay buffer lives beside its plain twin."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from lives import DISCOUNT, SETTINGS, LifeOfSteps, lines, live, numbers

from per_tutorial.replay import (
    FrameStorage,
    LapSampler,
    PrioritizedReplayBuffer,
    ProportionalSampler,
    RankBasedReplayBuffer,
    Replay,
    ReplayBuffer,
    TransitionStorage,
)

BUFFERS = {
    "uniform": ReplayBuffer,
    "proportional": PrioritizedReplayBuffer,
    "rank": RankBasedReplayBuffer,
}
OTHERS = {"frames": (FrameStorage, ProportionalSampler), "lap": (TransitionStorage, LapSampler)}


class LifeOfReplay(LifeOfSteps):
    shape = (3, 1)

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    def teardown(self):
        self.folder.cleanup()

    def set_up(self, several):
        self.runs = None if several == 1 else 2
        self.frames = "frames" in self.name
        self.have_twins(self.runs or 1)

    def make(self, seed):
        last, returns = self.name.split(", ")[-1], {"n_step": self.n_step, "discount": DISCOUNT}
        settings = SETTINGS[self.name.removesuffix(", frames")]
        if last not in OTHERS:
            kind = BUFFERS[self.name.split(",")[0]]
            settings = {"runs": self.runs, "seed": seed, **returns, **settings}
            return kind(self.capacity, self.shape, **settings)
        storage, sampler = OTHERS[last]
        seeds = [seed, seed + 1][: self.runs or 1]
        storage = storage(self.capacity, self.shape, len(seeds), **returns)
        return Replay(storage, sampler(self.capacity, seeds, **settings), self.runs)

    def sampled(self, replay, batch_size, beta):
        return replay.sample(batch_size, beta)

    def adding(self, steps):
        columns = self.columns(steps)
        if not self.frames:  # which have an axis of environments, here of one
            columns = [column.take(0, 1 if self.runs else 0) for column in columns]
        return partial(self.replay.add, *columns)

    @precondition(lambda self: not self.frames)
    @rule(number=numbers, count=st.integers(1, 10), line=lines)
    def extend(self, number, count, line):
        self.rng = np.random.default_rng(number)
        self.store(line, self.extending, count)

    def extending(self, steps):
        return partial(self.replay.extend, *self.columns(steps))

    def restores(self):
        path = Path(self.folder.name, "replay.npz")
        self.replay.save(path)
        return [lambda new: new.restore(self.replay.state), lambda new: new.load(path)]

    def contents(self, run, slots):
        storage, every = self.replay.storage, np.tile(slots, (len(self.twins), 1))
        stored, discounts = storage.n_step_transitions(every)
        names = ("observation", "action", "reward", "next_observation", "terminated")
        fields = [stored[name] for name in names]
        fields += [np.ones(len(every)), storage.ring.ids(every), discounts]
        return [field[run] for field in fields]

    @invariant()
    def episodes_are_cut_off_as_in_the_twins(self):
        for run, twin in enumerate(self.twins):
            truncated = self.replay.storage.rows["truncated"][run]
            np.testing.assert_array_equal(truncated, twin.rows["truncated"])


KINDS = {
    "uniform": ["uniform"],
    "proportional": ["proportional", "proportional, buffer"],
    "frames": ["proportional, none, frames"],
    "rank": ["rank", "rank, buffer"],
    "lap": ["lap"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_lives(kind):
    live(LifeOfReplay, KINDS[kind], 12, derandomize=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_lives(kind):
    live(LifeOfReplay, KINDS[kind], 600)
