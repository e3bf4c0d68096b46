"""Every registered sampler and storage does what the contract asks, and so do new ones.

The checks are in `tests/support`: `sampler_contract` and `storage_contract`. A part that is
registered is tested here without a further word; of those that have options, some options as well.
"""

import copy
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import sampler_contract
import storage_contract
from hypothesis import given, settings
from hypothesis import strategies as st
from per_tutorial.common.states import checked_state
from replay_helpers import bits, copy_of
from storage_contract import World
from toy_samplers import FreshErrors, LowSlots, NearTheEnd

from per_tutorial.replay import (
    SAMPLERS,
    STORAGES,
    FrameStorage,
    LaberSampler,
    ProportionalSampler,
    RankBasedSampler,
    ReaperSampler,
    Replay,
    TransitionStorage,
    UniformSampler,
    make_replay,
    register_sampler,
    register_storage,
    registry,
)

TOYS = {"low slots": LowSlots, "near the end": NearTheEnd, "fresh errors": FreshErrors}
SAMPLER_CASES = {
    **{name: make for name, make in SAMPLERS.items()},
    "proportional, by the buffer": partial(ProportionalSampler, normalize="buffer"),
    "rank, sorted often": partial(RankBasedSampler, sort_every=4, normalize="buffer"),
    "reaper, by the buffer": partial(ReaperSampler, omega=1.0, normalize="buffer"),
    "reaper, conservative": partial(ReaperSampler, omega=1.0, unfinished="conservative"),
    "laber, lazy": partial(LaberSampler, candidates=2, laber_weights="lazy"),
    **TOYS,
}
STORAGE_CASES = {**STORAGES, "frames, three at a time": partial(FrameStorage, environments=3)}

every_sampler = pytest.mark.parametrize("make", SAMPLER_CASES.values(), ids=SAMPLER_CASES)
every_storage = pytest.mark.parametrize("make", STORAGE_CASES.values(), ids=STORAGE_CASES)


def named(check):
    return check.__name__.removeprefix("holds_")


@pytest.mark.parametrize("check", sampler_contract.CHECKS, ids=named)
@every_sampler
def test_every_sampler(make, check):
    check(make)


@pytest.mark.parametrize("check", storage_contract.CHECKS, ids=named)
@every_storage
def test_every_storage(make, check):
    check(make)


# ---------------------------------------------------------------- bugs put in


class DrawsTheEmptySlots(UniformSampler):
    def sample(self, batch_size, sizes, beta):
        return super().sample(batch_size, np.full_like(sizes, self.capacity), beta)


class PrefersTheOldest(UniformSampler):
    """And says that it does not."""

    def sample(self, batch_size, sizes, beta):
        slots, weights = super().sample(batch_size, sizes, beta)
        return slots // 2, weights


class AddsAgain(RankBasedSampler):
    """A repeated `add` is taken for a new one."""

    def add(self, slots, added):
        self.num_added[:] = -1
        super().add(slots, added)


class UpdatesWhatIsGone(ProportionalSampler):
    def update(self, slots, td_errors):
        super().update(np.maximum(slots, 0), td_errors)


class ForgetsTheLargest(ProportionalSampler):
    @property
    def state(self):
        return {name: array for name, array in super().state.items() if "largest" not in name}

    @property
    def schema(self):
        return {name: spec for name, spec in super().schema.items() if "largest" not in name}


class TakesTheStateOver(UniformSampler):
    """It goes on in the arrays of the state it was given."""

    def restore(self, state):
        self.streams.states = state["streams"]


class SharesItsLargest(ProportionalSampler):
    def update(self, slots, td_errors):
        super().update(slots, td_errors)
        self.largest_priority[:] = self.largest_priority.max()


class CopiesTheViews(TransitionStorage):
    """Copies have views of rows of their own, which nobody reads."""

    def __getstate__(self):
        return vars(self)

    def __setstate__(self, kept):
        vars(self).update(kept)


class CountsAgain(TransitionStorage):
    """A repeated `commit` adds once more."""

    def commit(self, write):
        added = self.added + (write.slots >= 0).sum(axis=1)
        super().commit(write)
        self.added[:] = added


class KeepsTheArguments(FrameStorage):
    """What was prepared changes with the caller's arrays."""

    def prepare(self, transition, valid=None):
        write = super().prepare(transition, valid)
        return write._replace(frames=transition.observation[:, :, -1])


class FrameAfterTheCutIsForgotten(FrameStorage):
    def truncate_episodes(self):
        slots = super().truncate_episodes()
        self.final_frames = {key: np.zeros_like(each) for key, each in self.final_frames.items()}
        return slots


@pytest.mark.parametrize(
    ("bugged", "check"),
    [
        (DrawsTheEmptySlots, "draws_are_stored_and_weights_are_weights"),
        (PrefersTheOldest, "frequencies_follow_the_probabilities"),
        (AddsAgain, "an_interrupted_add_can_be_repeated"),
        (UpdatesWhatIsGone, "what_is_gone_is_skipped"),
        (ForgetsTheLargest, "a_restored_sampler_continues"),
        (TakesTheStateOver, "a_restored_sampler_continues"),
        (SharesItsLargest, "runs_are_independent"),
        (CopiesTheViews, "copies_continue_alike_and_share_nothing"),
        (CountsAgain, "a_second_commit_writes_the_same"),
        (KeepsTheArguments, "preparing_changes_nothing_and_keeps_no_argument"),
        (FrameAfterTheCutIsForgotten, "a_cut_is_a_time_limit"),
    ],
)
def test_a_part_that_breaks_the_contract_is_noticed(bugged, check):
    contract = storage_contract if hasattr(bugged, "prepare") else sampler_contract
    with pytest.raises(AssertionError):
        getattr(contract, f"holds_{check}")(bugged)


# ---------------------------------------------------------------- damaged states


def damage(data, state):
    """Change one number of one array, at most by what its type can hold."""
    name = data.draw(st.sampled_from([name for name in state if state[name].size]))
    whole = state[name].reshape(-1)
    if whole.dtype.names:
        field = data.draw(st.sampled_from(whole.dtype.names))
        whole = np.ascontiguousarray(whole[field]).reshape(-1)
    place = data.draw(st.integers(0, len(whole) - 1))
    raw = whole[place : place + 1].view(np.uint8)
    values = [0, 1, -1, 2, 1e-320, 1e-30, 1e30, 1e300, np.inf, np.nan, 2**31 - 1, 2**62]
    kind = data.draw(st.sampled_from(["bit", "value", "step", "other"]))
    with np.errstate(all="ignore"):
        if kind == "bit":
            bit = data.draw(st.integers(0, 8 * len(raw) - 1))
            raw[bit // 8] ^= 1 << bit % 8
        elif kind == "value":
            whole[place] = np.array(data.draw(st.sampled_from(values))).astype(whole.dtype)
        elif kind == "step" and whole.dtype != bool:
            whole[place] += np.array(data.draw(st.sampled_from([1, -1]))).astype(whole.dtype)
        else:
            whole[place] = whole[data.draw(st.integers(0, len(whole) - 1))]
    if state[name].dtype.names:
        state[name][field] = whole.reshape(state[name][field].shape)


unlucky = settings(deadline=None, derandomize=True, max_examples=120)


@pytest.mark.slow
@every_sampler
@unlucky
@given(st.data(), st.sampled_from([1, 3, 6]), st.integers(1, 9))
def test_a_damaged_state_of_a_sampler_is_refused_or_does_no_harm(make, data, capacity, count):
    life = sampler_contract.Life(make, capacity)
    life.add([True, False, True])
    life.add(count=count)
    life.learn()
    state, target = copy_of(life.sampler.state), copy.deepcopy(life)
    damage(data, state)
    before = bits(target.sampler)
    try:
        state = checked_state(state, target.sampler.schema)
        target.sampler.check(state, life.sizes)
    except ValueError as error:
        assert str(error).startswith("state: ") and bits(target.sampler) == before
        return
    target.sampler.restore(state)
    for _ in range(2 * capacity + 1):
        slots, weights = target.sampler.sample(4, target.sizes, 0.5)
        assert ((slots >= 0) & (slots < target.sizes[:, None])).all()
        assert (np.isfinite(weights) & (weights > 0)).all()
        np.testing.assert_allclose(target.probabilities().sum(axis=1), 1, rtol=1e-9)
        target.go_on(1)


@pytest.mark.slow
@every_storage
@unlucky
@given(st.data(), st.sampled_from([(3, 1), (8, 3)]), st.integers(1, 9))
def test_a_damaged_state_of_a_storage_is_refused_or_does_no_harm(make, data, shape, steps):
    world = World(make, shape[0], n_step=shape[1]).add(steps)
    state, target = copy_of(world.storage.state), copy.deepcopy(world)
    damage(data, state)
    before = bits(target.storage)
    try:
        state = checked_state(state, target.storage.schema)
        sizes = target.storage.check(state)
    except ValueError as error:
        assert str(error).startswith("state: ") and bits(target.storage) == before
        return
    storage = target.storage
    storage.restore(state)
    np.testing.assert_array_equal(storage.ring.sizes, sizes)
    for _ in range(4):
        stored = np.arange(storage.ring.sizes.max()) % np.maximum(storage.ring.sizes, 1)[:, None]
        rows, lengths = storage.n_step_transitions(stored)
        assert np.isfinite(rows["reward"]).all()
        assert ((lengths >= 1) & (lengths <= storage.n_step)).all()
        storage.ring.slots(storage.ring.ids(stored))
        storage.truncate_episodes()
        target.stacks = target.new_stacks()  # of a new episode
        storage.commit(storage.prepare(target.step()))


# ---------------------------------------------------------------- new parts


@pytest.fixture
def registries(monkeypatch):
    """Registries that a test may write to."""
    monkeypatch.setattr(registry, "SAMPLERS", dict(SAMPLERS))
    monkeypatch.setattr(registry, "STORAGES", dict(STORAGES))


@pytest.mark.parametrize("name", TOYS)
@pytest.mark.parametrize("storage", STORAGES)
def test_a_new_sampler_is_registered_and_works_in_every_buffer(name, storage, registries):
    register_sampler(name, TOYS[name])
    config = SimpleNamespace(
        sampler=name, storage=storage, capacity=10, environments=2, n_step=2, discount=0.5
    )
    replay = make_replay(config, (2, 3), seeds=[4, 5, 6])
    world = World(lambda *_, **__: replay.storage, runs=3)
    for _ in range(25):
        replay.add(*world.step())
        if len(replay) >= 4:
            batch = replay.sample(4, td_errors=lambda batch: np.sin(batch.indices))
            replay.update_priorities(batch.indices, np.cos(batch.indices))
    np.testing.assert_allclose(replay.probabilities.sum(axis=1), 1)


def steps_to_the_end(world, run):
    """For each stored number, how far its episode's end is, 0 while it runs; the naive way."""
    storage, steps = world.storage, {}
    for environment, log in enumerate(world.logs[run]):
        distance = None
        for step in reversed(range(len(log))):
            *_, terminated, truncated = log[step]
            distance = 0 if terminated or truncated else None if distance is None else distance + 1
            steps[step * storage.environments + environment] = distance or 0
    return {number: steps[number] for number in sorted(steps)[-storage.capacity :]}


@every_storage
@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize("capacity", [4, 9, 12])
def test_a_sampler_of_episodes_learns_where_each_one_ends(make, cuts, capacity):
    world = World(make, capacity)
    sampler = NearTheEnd(capacity, [1, 2])
    replay = Replay(world.storage, sampler, storage_contract.RUNS)
    for count in range(40):
        transition = world.step()
        replay.add(*transition)
        world.note(transition)
        if cuts and count % 7 == 6:
            replay.truncate_episodes()
            for logs in world.logs:
                for log in logs:
                    log[-1] = (*log[-1][:5], ~log[-1][4])
            world.stacks = world.new_stacks()
        for run in range(storage_contract.RUNS):
            for number, steps in steps_to_the_end(world, run).items():
                slots = np.full((storage_contract.RUNS, 1), number % capacity)
                assert sampler.sums.get(slots)[run] == 1 / (1 + steps)


def test_a_sampler_of_episodes_learns_where_many_end_at_once():
    buffers = [Replay(TransitionStorage(5, 1), NearTheEnd(5, [0])) for _ in range(2)]
    ends = np.random.default_rng(1).random((2, 40)) < 0.2
    zeros = np.zeros((40, 1))
    for first, last in [(0, 3), (3, 3), (3, 7), (7, 30), (30, 40)]:
        part = slice(first, last)
        buffers[0].extend(
            zeros[part], zeros[part, 0].astype(int), zeros[part, 0], zeros[part], *ends[:, part]
        )
        for k in range(first, last):
            buffers[1].add([0.0], 0, 0.0, [0.0], *ends[:, k])
        assert bits(buffers[0]) == bits(buffers[1])


@pytest.mark.parametrize("kind", ["ints", "floats", "lists"])
def test_ends_of_episodes_may_be_any_kind_of_true_and_false(kind):
    convert = {"ints": int, "floats": float, "lists": bool}[kind]
    replay = Replay(TransitionStorage(5, 1, 2), NearTheEnd(5, [0, 1]), 2)
    for ends in [(False, False), (True, False), (False, True)]:
        replay.add([[0.0]] * 2, [0] * 2, [0.0] * 2, [[0.0]] * 2, [convert(end) for end in ends])
    assert replay.sampler.sums.get([[0, 1, 2]] * 2).tolist() == [[1 / 2, 1, 1], [1 / 3, 1 / 2, 1]]


def test_a_sampler_of_candidates_is_asked_for_more_and_chooses():
    asked = []

    def td_errors(batch):
        asked.append(batch)
        return np.where(batch.indices == 7, 5.0, 0.0)

    replay = Replay(TransitionStorage(8, 1), FreshErrors(8, [0]))
    for k in range(8):
        replay.add([k], k, k, [k], False)
    batch = replay.sample(6, td_errors=td_errors)
    assert asked[0].indices.shape == (24,) and 7 in asked[0].indices
    assert batch.indices.tolist() == [7] * 6 == batch.actions.tolist()
    with pytest.raises(ValueError, match="td_errors: FreshErrors chooses by the TD errors"):
        replay.sample(6)
    for errors, said in [
        (np.ones((24, 1)), r"must have the shape of indices \(24,\), got \(24, 1\)"),
        (np.ones(6), r"must have the shape of indices \(24,\), got \(6,\)"),
        (np.full(24, np.nan), "must be finite"),
    ]:
        with pytest.raises(ValueError, match=f"td_errors: {said}"):
            replay.sample(6, td_errors=lambda batch, errors=errors: errors)


# ---------------------------------------------------------------- parts that are none


def without(part, *names):
    """A class with less than ``part`` has."""
    kept = {name: each for name, each in vars(part).items() if name not in names}
    return type("Unfinished", (), kept)


@pytest.mark.parametrize(
    "lacking", ["add", "sample", "update", "probabilities", "restore", "check"]
)
def test_a_sampler_that_lacks_something_is_refused_by_name(lacking, registries):
    unfinished = without(LowSlots, lacking)
    with pytest.raises(TypeError, match=f"sampler: Unfinished lacks {lacking} of a Sampler"):
        register_sampler("unfinished", unfinished)
    with pytest.raises(TypeError, match=f"sampler: Unfinished lacks {lacking} of a Sampler"):
        Replay(TransitionStorage(5, 1), unfinished(5, [0]))
    assert "unfinished" not in registry.SAMPLERS


def test_all_that_is_lacking_is_named(registries):
    with pytest.raises(
        TypeError, match="storage: LowSlots lacks .*commit, .*n_step_transitions, .*prepare"
    ):
        register_storage("slots", LowSlots)
    with pytest.raises(TypeError, match="lacks metrics, update of"):
        register_sampler("unfinished", without(LowSlots, "metrics", "update"))
    with pytest.raises(TypeError, match="storage: object lacks"):
        Replay(object(), LowSlots(5, [0]))


def test_an_attribute_may_come_with_the_constructor_but_must_come():
    sampler = LowSlots(5, [0])
    del sampler.settings
    with pytest.raises(TypeError, match="sampler: LowSlots lacks settings of a Sampler"):
        Replay(TransitionStorage(5, 1), sampler)


def test_half_a_sampler_of_candidates_is_refused():
    sampler = UniformSampler(5, [0])
    sampler.choose = FreshErrors.choose
    with pytest.raises(TypeError, match="UniformSampler lacks candidates of a CandidateSampler"):
        Replay(TransitionStorage(5, 1), sampler)


@every_sampler
def test_parts_that_do_not_match_are_refused(make):
    storage = TransitionStorage(5, 1, 2)
    with pytest.raises(ValueError, match=r"sampler: must have the storage's capacity \(5\), got 6"):
        Replay(storage, make(6, [0, 1]), 2)
    with pytest.raises(ValueError, match=r"sampler: must have the storage's runs \(2\), got 3"):
        Replay(storage, make(5, [0, 1, 2]), 2)
    for runs in (None, 1, 3):
        with pytest.raises(ValueError, match=rf"runs: must be .* storage \(2\), got {runs}"):
            Replay(storage, make(5, [0, 1]), runs)
    Replay(storage, make(5, [0, 1]), 2)


class FailsAtTheThird(ProportionalSampler):
    """A sampler with a bug: it cannot take the transition that was added as the third."""

    fixed = False

    def add(self, slots, added):
        if added.max() == 3 and not self.fixed:
            raise RuntimeError("no room")
        super().add(slots, added)


@pytest.mark.parametrize("repair", ["fix the sampler", "restore"])
def test_a_transition_that_the_sampler_could_not_take_is_not_forgotten(repair):
    """Every call says so, until the sampler takes it or the buffer gets another state."""
    replay = Replay(TransitionStorage(8, ()), FailsAtTheThird(8, [0]))
    for k in range(2):
        replay.add(k, 0, 0.0, k, False)
    before = copy_of(replay.state)
    with pytest.raises(RuntimeError, match="no room"):
        replay.add(2, 0, 0.0, 2, False)
    calls = (len, lambda replay: replay.sample(1), lambda replay: replay.add(3, 0, 0.0, 3, False))
    for call in calls:
        with pytest.raises(RuntimeError, match="no room") as caught:
            call(replay)
        assert (
            "transitions may be stored that the sampler does not know" in caught.value.__notes__[0]
        )
    if repair == "restore":
        replay.restore(before)
        assert len(replay) == 2
    replay.sampler.fixed = True
    replay.add(3, 0, 0.0, 3, False)
    assert (replay.probabilities > 0).sum() == len(replay)
