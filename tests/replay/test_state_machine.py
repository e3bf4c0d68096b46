"""Every replay buffer beside its plain twin: anything may happen, in any order, and at any line
Ctrl-C.
"""

import pickle
import tempfile
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from interrupts import interrupted
from naive import NaiveStream
from replay_helpers import bits

from per_tutorial.conformance.plain import Plain
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

STACK = (2, 1)  # every observation is the last two frames of one number each; black is 0
OPTIONS = {"discount": 0.5}  # with rewards in quarters, sums of three are exact in float32
ALPHA, KAPPA = 0.6, 2.0
TD_ERRORS = [0.0, 1e-9, 0.25, -0.25, 1.0, -1.0, 3.0, 40.0, -1e6]
ENDS = [(False, False)] * 5 + [(True, False), (False, True), (True, True)]


def rows(make, **settings):
    def made(capacity, n_step, runs, seed):
        return make(capacity, STACK, n_step=n_step, runs=runs, seed=seed, **OPTIONS, **settings)

    return made


def joined(storage, sampler, **settings):
    def made(capacity, n_step, runs, seed):
        kept = storage(capacity, STACK, runs or 1, n_step=n_step, **OPTIONS)
        return Replay(kept, sampler(capacity, [seed, seed + 1][: runs or 1], **settings), runs)

    return made


BUFFERS = {
    "uniform": rows(ReplayBuffer),
    "proportional": rows(PrioritizedReplayBuffer),
    "proportional, buffer": rows(PrioritizedReplayBuffer, normalize="buffer"),
    "proportional, frames": joined(FrameStorage, ProportionalSampler, normalize="none"),
    "rank": rows(RankBasedReplayBuffer, alpha=ALPHA, sort_every=1),
    "rank, buffer": rows(RankBasedReplayBuffer, alpha=ALPHA, normalize="buffer", sort_every=4),
    "lap": joined(TransitionStorage, LapSampler, kappa=KAPPA),
}


class Twin(Plain):
    """`Plain` for one run, with what it lacks: the other priorities, and episodes cut off."""

    def __init__(self, name, capacity, n_step):
        kind = name.split(",")[0]
        of_plain = "proportional" if kind == "lap" else kind
        super().__init__(capacity, STACK, kind=of_plain, alpha=ALPHA, n_step=n_step, **OPTIONS)
        self.floor = KAPPA if kind == "lap" else 0.0
        self.epsilon = 1e-6 if kind == "proportional" else 0.0
        self.largest = max(self.largest, self.floor)

    def priority(self, td_errors):
        return np.maximum(np.abs(td_errors) + self.epsilon, self.floor)

    def truncate(self):
        newest = (self.added - 1) % self.capacity
        self.rows["truncated"][newest] |= self.added > 0 and not self.rows["terminated"][newest]

    def expected_weights(self, name, shares, slots, beta):
        """Those of slots, where P(i) of each slot is in ``shares``."""
        if self.floor:
            return np.ones(len(slots))
        every = (len(self) * shares[: len(self)]) ** -beta
        largest = {"proportional, frames": 1.0}.get(
            name, every.max() if name.endswith("buffer") else every[slots].max()
        )
        return every[slots] / largest


def agrees(twin, shares):
    """Raise AssertionError unless these are the probabilities of the twin's slots."""
    size = len(twin)
    assert (shares[size:] == 0).all()
    if twin.kind != "rank" or size == 0:
        np.testing.assert_allclose(shares[:size], twin.probabilities[:size], rtol=1e-11)
        return
    by_rank = np.argsort(-shares[:size])
    formula = np.arange(1, size + 1) ** -ALPHA
    np.testing.assert_allclose(shares[by_rank], formula / formula.sum(), rtol=1e-11)
    priorities = twin.priorities[by_rank]  # a heap: none is larger than its parent's
    assert (priorities[np.arange(2, size + 1) // 2 - 1] >= priorities[1:]).all()


lines = st.just(0) | st.integers(1, 80)  # before which Ctrl-C comes; 0: it does not
numbers = st.integers(0, 2**32)


class Life(RuleBasedStateMachine):
    """A buffer and one twin for each of its runs; subclasses say the ``names`` in BUFFERS."""

    names: list[str]

    @initialize(
        variant=st.integers(0, 5),
        capacity=st.integers(3, 7),
        n_step=st.integers(1, 3),
        runs=st.sampled_from([None, 2, 2]),
    )
    def begin(self, variant, capacity, n_step, runs):
        name = self.names[variant % len(self.names)]
        self.make = lambda seed: BUFFERS[name](capacity, n_step, runs, seed)
        self.name, self.runs, self.frames = name, runs, "frames" in name
        self.replay = self.make(seed=5)
        self.twins = [Twin(name, capacity, n_step) for _ in range(runs or 1)]
        self.stacks = np.zeros((len(self.twins), *STACK))
        self.shown = 0
        for run in range(len(self.twins)):
            self.show(run)
        self.drawn = []  # the ids of minibatches whose TD errors may still come

    # What happens --------------------------------------------------------------------------------

    def show(self, run):
        """The next frame of a run, unlike the last 200."""
        self.shown += 1
        self.stacks[run] = [self.stacks[run, 1], [self.shown % 200 + 1]]

    def step(self, run, rng):
        """A transition of a run; after the end of an episode, the next one begins."""
        seen = self.stacks[run].copy()
        self.show(run)
        ends = ENDS[rng.integers(len(ENDS))]
        step = (seen, rng.integers(9), rng.integers(-8, 9) / 4, self.stacks[run].copy(), *ends)
        if any(ends):
            self.begin_episode(run)
        return step

    def begin_episode(self, run):
        self.stacks[run] = 0
        self.show(run)

    def fields(self, steps):
        """The fields of steps, a list for each run, with the axes that the buffer expects."""
        dtype = np.uint8 if self.frames else np.float32
        columns = [np.array([[step[k] for step in run] for run in steps]) for k in range(6)]
        columns[0], columns[3] = columns[0].astype(dtype), columns[3].astype(dtype)
        return columns if self.runs else [column[0] for column in columns]

    def store(self, call, steps, line):
        """Store the same in the buffer and in its twins; what was cut short is done again."""
        before = self.replay.storage.added.copy()
        if not line:
            call()
        elif interrupted(call, line) and (self.replay.storage.added == before).all():
            call()
        for twin, of_run in zip(self.twins, steps, strict=True):
            for step in of_run:
                twin.add(*step)

    @rule(number=numbers, line=lines)
    def add(self, number, line):
        rng = np.random.default_rng(number)
        steps = [[self.step(run, rng)] for run in range(len(self.twins))]
        columns = self.fields(steps)
        if not self.frames:  # which have an axis of environments, here of one
            axis = 1 if self.runs else 0
            columns = [column.take(0, axis) for column in columns]
        self.store(lambda: self.replay.add(*columns), steps, line)

    @precondition(lambda self: not self.frames)
    @rule(number=numbers, count=st.integers(0, 10), line=lines)
    def extend(self, number, count, line):
        rng = np.random.default_rng(number)
        steps = [[self.step(run, rng) for _ in range(count)] for run in range(len(self.twins))]
        assume(count)
        columns = self.fields(steps)
        self.store(lambda: self.replay.extend(*columns), steps, line)

    @rule(line=lines)
    def truncate_episodes(self, line):
        if line:
            interrupted(self.replay.truncate_episodes, line)
        self.replay.truncate_episodes()
        for run, twin in enumerate(self.twins):
            twin.truncate()
            self.begin_episode(run)

    @precondition(lambda self: len(self.replay) > 0)
    @rule(
        batch_size=st.integers(1, 7),
        beta=st.sampled_from([0.0, 0.4, 1.0]),
        line=lines,
        learn=st.none() | numbers,
    )
    def sample(self, batch_size, beta, line, learn):
        batch_size = min(batch_size, len(self.replay))
        if line:
            interrupted(lambda: self.replay.sample(batch_size, beta), line)
        states = self.replay.sampler.streams.states.copy()
        batch = self.replay.sample(batch_size, beta)
        shares = self.shares()
        for run, twin in enumerate(self.twins):
            *own, probabilities = [self.by_run(field)[run] for field in batch]
            slots = own[6] % twin.capacity
            expected = twin.expected_weights(self.name, shares[run], slots, beta)
            np.testing.assert_allclose(own[5], expected, rtol=1e-6)
            np.testing.assert_allclose(probabilities, shares[run][slots], rtol=1e-6)
            self.assert_same(own, twin.batch(slots, own[5])[:8])
            self.assert_drawn(twin, shares[run], slots, NaiveStream(states[run]))
        self.drawn.append(batch.indices.copy())
        if learn is not None:
            self.update_priorities(learn, 0)

    def assert_drawn(self, twin, shares, slots, stream):
        """Each slot holds its random number's place in [0, 1), one of equal parts for each."""
        order = np.argsort(-shares[: len(twin)]) if twin.kind == "rank" else np.arange(len(twin))
        ends = np.cumsum(shares[order])
        positions = np.argsort(order)[slots]
        for k, position in enumerate(positions):
            strata = 1 if twin.kind == "uniform" else len(slots)
            place = ((0 if strata == 1 else k) + stream.uniform()) / strata
            start = ends[position - 1] if position else 0.0
            assert start - 1e-9 <= place <= ends[position] + 1e-9

    @precondition(lambda self: self.drawn)
    @rule(number=numbers, line=lines)
    def update_priorities(self, number, line):
        """Of any minibatch so far: some of its transitions may have been overwritten."""
        rng = np.random.default_rng(number)
        ids = self.drawn.pop(rng.integers(len(self.drawn)))
        errors = rng.choice(TD_ERRORS, size=ids.shape)
        before = deepcopy(self.twins)
        for twin, *pair in zip(self.twins, self.by_run(ids), self.by_run(errors), strict=True):
            twin.update_priorities(*pair)
        if line and interrupted(lambda: self.replay.update_priorities(ids, errors), line):
            shares = self.shares()
            try:  # in full …
                [agrees(*pair) for pair in zip(self.twins, shares, strict=True)]
            except AssertionError:  # … or not at all
                [agrees(*pair) for pair in zip(before, shares, strict=True)]
        self.replay.update_priorities(ids, errors)

    @rule(way=st.sampled_from(["copy", "pickle", "restore", "file"]), line=lines)
    def go_on_with_a_copy(self, way, line):
        old = self.replay
        if way == "copy":
            self.replay = deepcopy(old)
        elif way == "pickle":
            self.replay = pickle.loads(pickle.dumps(old))
        else:
            self.replay = self.make(seed=77)
            before, after = bits(self.replay), bits(old)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "replay.npz")
                old.save(path)
                call = {
                    "restore": lambda: self.replay.restore(old.state),
                    "file": lambda: self.replay.load(path),
                }[way]
                if line and interrupted(call, line):
                    assert bits(self.replay) in (before, after)
                call()
        assert bits(self.replay) == bits(old)
        assert not any(
            np.shares_memory(array, old.state[name]) for name, array in self.replay.state.items()
        )
        if len(old):
            for mine, theirs in zip(self.replay.sample(1), old.sample(1), strict=True):
                np.testing.assert_array_equal(mine, theirs)

    # What always holds ---------------------------------------------------------------------------

    def by_run(self, array):
        return array if self.runs else array[None]

    def shares(self):
        """P(i) by slot, for each run; the buffer tells them by id, the oldest first."""
        of_ids, found = self.by_run(self.replay.probabilities()), []
        for twin, own in zip(self.twins, of_ids, strict=True):
            ids = np.arange(twin.added - len(twin), twin.added)
            found.append(np.zeros(twin.capacity))
            found[-1][ids % twin.capacity] = own
        return found

    def assert_same(self, own, expected):
        for mine, theirs in zip(own, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)

    @invariant()
    def it_is_as_long_as_its_twins(self):
        assert {len(self.replay)} == set(map(len, self.twins))

    @invariant()
    def probabilities_are_the_twins(self):
        shares = self.shares()
        for run, twin in enumerate(self.twins):
            if len(twin):
                agrees(twin, shares[run])
            else:
                assert not shares[run].any()
            if twin.kind != "uniform":
                assert self.replay.sampler.largest_priority[run] == twin.largest

    @invariant()
    def what_is_stored_is_the_twins(self):
        for run, twin in enumerate(self.twins):
            slots = np.arange(len(twin))
            storage, every = self.replay.storage, np.tile(slots, (len(self.twins), 1))
            stored, discounts = storage.n_step_transitions(every)
            names = ("observation", "action", "reward", "next_observation", "terminated")
            own = [*(stored[name][run] for name in names), 1.0, storage.ring.ids(every)[run]]
            self.assert_same([*own, discounts[run]], twin.batch(slots, 1.0)[:8])
            self.assert_same([storage.rows["truncated"][run]], [twin.rows["truncated"]])


KINDS = {
    "uniform": ["uniform"],
    "proportional": ["proportional", "proportional, buffer"],
    "frames": ["proportional, frames"],
    "rank": ["rank", "rank, buffer"],
    "lap": ["lap"],
}


def live(kind, max_examples, **options):
    options = {"max_examples": max_examples, "stateful_step_count": 40, "deadline": None} | options
    machine = type(f"LifeOf{kind.title()}", (Life,), {"names": KINDS[kind]})
    run_state_machine_as_test(machine, settings=settings(**options))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_lives(kind):
    live(kind, 12, derandomize=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_lives(kind):
    live(kind, 600)
