"""Lives of replay buffers: each beside its plain twin; anything may happen, in any order, and at
any line Ctrl-C.

The three users of the ledger have a subclass of `Life` each: `Replay` in `tests/replay`, the others
in `tests/integrations`.
"""

import pickle
from copy import copy, deepcopy

import numpy as np
from hypothesis import settings
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

DISCOUNT = 0.5  # with rewards in quarters, sums of three are exact in float32
ALPHA, KAPPA = 0.6, 2.0
SETTINGS = {  # of samplers; the first word of a name says which
    "uniform": {},
    "proportional": {},
    "proportional, buffer": {"normalize": "buffer"},
    "proportional, none": {"normalize": "none"},
    "rank": {"alpha": ALPHA, "sort_every": 1},
    "rank, buffer": {"alpha": ALPHA, "normalize": "buffer", "sort_every": 4},
    "lap": {"kappa": KAPPA},
}
TD_ERRORS = [0.0, 1e-9, 0.25, -0.25, 1.0, -1.0, 3.0, 40.0, -1e6]
ENDS = [(False, False)] * 5 + [(True, False), (False, True), (True, True)]


class Twin(Plain):
    """`Plain` for one run, with what it lacks: the other priorities, episodes cut off, and
    environments that take turns.
    """

    def __init__(self, name, capacity, shape=(), n_step=1, environments=1):
        kind = name.split(",")[0]
        of_plain = "proportional" if kind == "lap" else kind
        super().__init__(
            capacity, shape, kind=of_plain, alpha=ALPHA, n_step=n_step, discount=DISCOUNT
        )
        self.environments = environments
        self.floor = KAPPA if kind == "lap" else 0.0
        self.epsilon = 1e-6 if kind == "proportional" else 0.0
        self.largest = max(self.largest, self.floor)

    def priority(self, td_errors):
        return np.maximum(np.abs(td_errors) + self.epsilon, self.floor)

    def truncate(self):
        newest = (self.added - 1 - np.arange(min(self.added, self.environments))) % self.capacity
        self.rows["truncated"][newest] |= ~self.rows["terminated"][newest]

    def windows(self, ids):
        """Those of `Plain`, among the rows of each environment."""
        returns, last, steps = np.zeros(len(ids)), ids.copy(), ids.copy()
        turns, first = divmod(ids, self.environments)
        for environment in set(first):
            own, here = copy(self), first == environment
            own.rows = self.rows[environment :: self.environments]
            own.capacity, own.added = len(own.rows), self.added // self.environments
            returns[here], last[here], steps[here] = Plain.windows(own, turns[here])
        return returns, last * self.environments + first, steps

    def expected_weights(self, name, shares, slots, beta):
        """Those of slots, where P(i) of each slot is in ``shares``."""
        if self.floor:
            return np.ones(len(slots))
        every = (len(self) * shares[: len(self)]) ** -beta
        largest = every.max() if "buffer" in name else every[slots].max()
        return every[slots] / (1.0 if "none" in name else largest)


def agrees(twin, shares):
    """Raise AssertionError unless these are the probabilities of the twin's slots."""
    size = len(twin)
    assert (shares[size:] == 0).all()
    if twin.kind != "rank" or size == 0:
        expected = twin.probabilities[:size] if size else []
        np.testing.assert_allclose(shares[:size], expected, rtol=1e-11)
        return
    by_rank = np.argsort(-shares[:size])
    formula = np.arange(1, size + 1) ** -ALPHA
    np.testing.assert_allclose(shares[by_rank], formula / formula.sum(), rtol=1e-11)
    priorities = twin.priorities[by_rank]  # a heap: none is larger than its parent's
    assert (priorities[np.arange(2, size + 1) // 2 - 1] >= priorities[1:]).all()


# Before which line Ctrl-C comes; 0: it does not
lines = st.just(0) | st.integers(1, 40) | st.integers(1, 170)
numbers = st.integers(0, 2**32)


class Life(RuleBasedStateMachine):
    """A buffer and one twin for each of its runs.

    Subclasses have `set_up` and `make`, which make the ``twins`` and a buffer, `store`, which adds
    to both, and `sampled`, which draws a minibatch with fields like those of `Batch`.
    """

    names: list[str]  # what the twins may be
    runs = None

    @initialize(
        variant=st.integers(0, 11),
        capacity=st.integers(3, 7),
        n_step=st.integers(1, 3),
        several=st.sampled_from([1, 2, 2, 3]),
    )
    def begin(self, variant, capacity, n_step, several):
        self.name = self.names[variant % len(self.names)]
        self.rng = np.random.default_rng(variant)
        self.capacity, self.n_step = capacity, n_step
        self.drawn = []  # what was drawn, and whose TD errors may still come
        self.set_up(several)
        self.replay, self.other = self.make(seed=5), self.make(seed=77)

    # What subclasses may answer otherwise --------------------------------------------------------

    def update(self, drawn, td_errors):
        self.replay.update_priorities(drawn, td_errors)

    def ids(self, drawn):
        """The ids of what was drawn, (runs, batch), for the twins."""
        return self.by_run(drawn)

    def restores(self):
        """Functions that give a new buffer the state of this one."""
        return []

    def stateful(self, replay):
        """Its part that has a ``state``."""
        return replay

    # What happens --------------------------------------------------------------------------------

    @rule(number=numbers, line=lines, then=st.sampled_from(["look", "add", "sample", "update"]))
    def add(self, number, line, then):
        """``then`` something, before a look at P(i) would complete what Ctrl-C cut short."""
        self.rng = np.random.default_rng(number)
        self.store(line)
        if then == "add":
            self.add(number + 1, 0, "look")
        elif then == "sample" and len(self.twins[0]) > 0:
            self.sample(3, 0.4, 0, None)
        elif then == "update" and self.drawn:
            self.update_priorities(number, 0)

    @precondition(lambda self: len(self.twins[0]) > 0)
    @rule(
        batch_size=st.sampled_from([1, 1, 2, 5]),
        beta=st.sampled_from([0.0, 0.4, 1.0]),
        line=lines,
        learn=st.none() | numbers,
    )
    def sample(self, batch_size, beta, line, learn):
        batch_size = min(batch_size, len(self.twins[0]))
        if line:
            self.draw_in_vain(lambda: self.sampled(self.replay, batch_size, beta), line)
        states = self.replay._ledger.sampler.streams.states.copy()
        batch = self.sampled(self.replay, batch_size, beta)
        for run in range(len(self.twins)):
            self.assert_right(run, batch, beta, NaiveStream(states[run]))
        self.remember(batch)
        if learn is not None:
            self.update_priorities(learn, 0)

    def is_cut_short(self, call, line):
        """Call; whether Ctrl-C came, before that line."""
        if line:
            return interrupted(call, line)
        call()
        return False

    def draw_in_vain(self, draw, line):
        interrupted(draw, line)

    def remember(self, batch):
        self.drawn.append(batch.indices.copy())

    def assert_right(self, run, batch, beta, stream):
        """Each slot holds its random number's place in [0, 1), one of equal parts for each."""
        twin, shares = self.twins[run], self.shares()[run]
        slots = self.by_run(batch.indices)[run] % twin.capacity
        expected = twin.expected_weights(self.name, shares, slots, beta)
        np.testing.assert_allclose(self.by_run(batch.weights)[run], expected, rtol=1e-6)
        chances = self.by_run(batch.probabilities)[run]
        np.testing.assert_allclose(chances, shares[slots], rtol=1e-6)
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
        """Of the oldest minibatch or of the newest: some transitions may have been overwritten."""
        rng = np.random.default_rng(number)
        drawn = self.drawn.pop(rng.integers(-1, 1))
        errors = rng.choice(TD_ERRORS, size=drawn.shape)
        ids, before = self.ids(drawn), deepcopy(self.twins)
        for twin, *update in zip(self.twins, ids, self.by_run(errors), strict=True):
            twin.update_priorities(*update)
        if self.is_cut_short(lambda: self.update(drawn, errors), line):
            self.in_full_or_not_at_all(before)
            self.update(drawn, errors)

    def in_full_or_not_at_all(self, before):
        """The probabilities are those of the twins as they are, or as they were ``before``."""
        shares = self.shares()
        try:
            [agrees(*pair) for pair in zip(self.twins, shares, strict=True)]
        except AssertionError:
            [agrees(*pair) for pair in zip(before, shares, strict=True)]

    @precondition(lambda self: self.drawn)
    @rule(way=st.integers(0, 11), line=lines)
    def go_on_with_a_copy(self, way, line):
        old, restores = self.replay, self.restores()
        way %= 2 + len(restores)
        if way < 2:
            self.replay = pickle.loads(pickle.dumps(old)) if way else deepcopy(old)
        else:
            new, call = self.other, restores[way - 2]
            before, after = bits(self.stateful(new)), bits(self.stateful(old))
            if self.is_cut_short(lambda: call(new), line):
                assert bits(self.stateful(new)) in (before, after)
                call(new)
            self.replay = new
        self.other = old
        mine, theirs = self.stateful(self.replay).state, self.stateful(old).state
        assert bits(self.stateful(self.replay)) == bits(self.stateful(old))
        assert not any(np.shares_memory(mine[name], theirs[name]) for name in mine)

    # What always holds ---------------------------------------------------------------------------

    def by_run(self, array):
        return array[None] if self.runs is None else array

    def shares(self):
        """P(i) by slot, for each run; the buffer tells them by id, the oldest first."""
        of_ids, found = self.by_run(self.replay.probabilities()), []
        for twin, own in zip(self.twins, of_ids, strict=True):
            ids = np.arange(twin.added - len(twin), twin.added)
            found.append(np.zeros(twin.capacity))
            found[-1][ids % twin.capacity] = own
        return found

    def size(self):
        return len(self.replay)

    @invariant()
    def it_is_as_long_as_its_twins(self):
        assert {self.size()} == set(map(len, self.twins))

    @invariant()
    def probabilities_are_the_twins(self):
        for run, (twin, shares) in enumerate(zip(self.twins, self.shares(), strict=True)):
            agrees(twin, shares)
            if twin.kind != "uniform":
                assert self.replay._ledger.sampler.largest_priority[run] == twin.largest


class LifeOfSteps(Life):
    """Of a buffer that stores the steps of environments: observations are stacks of frames."""

    shape: tuple[int, ...]  # of a stack, the frames first; every number of a frame is the same
    environments = 1
    go_on = False  # whether environments have gone on when `add` is called after Ctrl-C
    lost = 0  # the oldest transitions that an interrupted `add` may have begun to overwrite

    def have_twins(self, runs):
        capacity = self.capacity * self.environments
        settings = capacity, self.shape, self.n_step, self.environments
        self.twins = [Twin(self.name, *settings) for _ in range(runs)]
        self.stacks = np.zeros((runs, self.environments, *self.shape))
        self.places = [[(run, each) for each in range(self.environments)] for run in range(runs)]
        self.shown = 0
        self.begin_episodes()

    def show(self, place):
        """The next frame of an environment, unlike the last 200."""
        self.shown += 1
        self.stacks[place][:-1] = self.stacks[place][1:]
        self.stacks[place][-1] = self.shown % 200 + 1

    def step(self, place):
        """A transition of an environment; after the end of an episode, the next one begins."""
        seen = self.stacks[place].copy()
        self.show(place)
        ends = ENDS[self.rng.integers(len(ENDS))]
        reward = self.rng.integers(-8, 9) / 4
        step = (seen, self.rng.integers(9), reward, self.stacks[place].copy(), *ends)
        if any(ends):
            self.begin_episode(place)
        return step

    def steps(self, count=1):
        """A list for each run: one step of each environment, ``count`` times."""
        return [[self.step(place) for place in of_run * count] for of_run in self.places]

    def begin_episode(self, place):
        self.stacks[place] = 0
        self.show(place)

    def begin_episodes(self):
        for place in sum(self.places, []):
            self.begin_episode(place)

    def columns(self, steps):
        """The fields of steps, with the axes that the buffer expects."""
        columns = [np.array([[step[k] for step in run] for run in steps]) for k in range(6)]
        for k in (0, 3):
            columns[k] = columns[k].astype(np.uint8 if "frames" in self.name else np.float32)
        return columns if self.runs else [column[0] for column in columns]

    def store(self, line, add=None, count=1):
        """Store the same in the buffer and in its twins; what was cut short is done again."""
        add, steps, added = add or self.adding, self.steps(count), self.replay._ledger.ring.count
        if self.is_cut_short(add(steps), line) and self.replay._ledger.ring.count == added:
            self.assert_stored(self.lost if added >= self.twins[0].capacity else 0)
            self.probabilities_are_the_twins()
            steps = self.steps() if self.go_on else steps
            add(steps)()
        for twin, of_run in zip(self.twins, steps, strict=True):
            for step in of_run:
                twin.add(*step)

    @rule(line=lines)
    def truncate_episodes(self, line):
        if self.is_cut_short(self.replay.truncate_episodes, line):
            self.replay.truncate_episodes()
        for twin in self.twins:
            twin.truncate()
        self.begin_episodes()

    def assert_right(self, run, batch, beta, stream):
        super().assert_right(run, batch, beta, stream)
        twin = self.twins[run]
        *own, _ = [self.by_run(field)[run] for field in batch]
        self.assert_same(own, twin.batch(own[6] % twin.capacity, own[5])[:8])

    def assert_same(self, own, expected):
        for mine, theirs in zip(own, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)

    @invariant()
    def what_is_stored_is_the_twins(self):
        self.assert_stored()

    def assert_stored(self, but=0):
        """All transitions, ``but`` so many of the oldest ones, are the twins'."""
        for run, twin in enumerate(self.twins):
            slots = np.arange(twin.added - len(twin) + but, twin.added) % twin.capacity
            self.assert_same(self.contents(run, slots), twin.batch(slots, 1.0)[:8])


def live(life, names, max_examples, **options):
    """Run a subclass of `Life`."""
    options = {"max_examples": max_examples, "stateful_step_count": 40, "deadline": None} | options
    machine = type(f"{life.__name__}Of{names[0].title()}", (life,), {"names": names})
    run_state_machine_as_test(machine, settings=settings(**options))
