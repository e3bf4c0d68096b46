"""ReaPER against a plain twin that keeps every episode as a list, in rings of one and of many
lanes.
"""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy import stats
from storage_contract import World

from per_tutorial.replay import (
    FrameStorage,
    ReaperSampler,
    Replay,
    TransitionStorage,
    reliability,
)
from per_tutorial.replay.samplers import reaper

EPSILON = 0.01


class Twin:
    """Everything by number of transition, and every priority from the formula."""

    def __init__(self, capacity, alpha, omega, unfinished="reliable"):
        self.capacity, self.alpha, self.omega = capacity, alpha, omega
        self.unfinished = unfinished
        self.sizes, self.episodes, self.largest = [], [], 1.0  # p by number; lists of numbers
        self.running = {}  # by environment, numbers

    def add(self, environment, over):
        self.running.setdefault(environment, []).append(len(self.sizes))
        self.sizes.append(self.largest)
        if over:
            self.cut(environment)

    def cut(self, environment):
        if environment in self.running:
            self.episodes.append(self.running.pop(environment))

    def update(self, number, td_error):
        self.sizes[number] = abs(td_error) + EPSILON
        self.largest = max(self.largest, self.sizes[number])

    def priorities(self):
        """By number, of those that are stored."""
        first = max(0, len(self.sizes) - self.capacity)
        stored = range(first, len(self.sizes))
        found = {number: self.sizes[number] ** self.alpha for number in stored}
        for episode in self.episodes:
            steps = [number for number in episode if number >= first]
            total = sum(self.sizes[number] for number in steps)
            for place, number in enumerate(steps):
                later = sum(self.sizes[each] for each in steps[place + 1 :])
                found[number] *= (1 - later / total) ** self.omega
        if self.unfinished == "conservative" and any(e[-1] >= first for e in self.episodes):
            largest = max(self.sum_of(e, first) for e in [*self.episodes, *self.running.values()])
            for episode in self.running.values():
                for number in (number for number in episode if number >= first):
                    until = self.sum_of([each for each in episode if each <= number], first)
                    found[number] *= (until / largest) ** self.omega
        return found

    def sum_of(self, episode, first):
        return sum(self.sizes[number] for number in episode if number >= first)

    def probabilities(self):
        """By slot."""
        found = self.priorities()
        shares = np.zeros(self.capacity)
        for number, priority in found.items():
            shares[number % self.capacity] = priority / sum(found.values())
        return shares


class LeavesTheEpisode(ReaperSampler):
    """An update changes R of the replayed steps alone: the sums of the others' are those of the
    end.
    """

    def end_episodes(self, slots, lengths, stride):
        super().end_episodes(slots, lengths, stride)
        self.frozen = self.errors.nodes.copy()

    @property
    def _memory(self):
        sums, _, *others = super()._memory
        return (sums, getattr(self, "frozen", self.errors.nodes), *others)


class CountsOneLess(ReaperSampler):
    """The step itself is taken for one that follows."""

    def end_episodes(self, slots, lengths, stride):
        super().end_episodes(slots, lengths, stride)
        np.maximum(self.before - 1, 0, out=self.before)


class ForgetsWhatIsOverwritten(ReaperSampler):
    """An episode's first steps count after others were written in their place."""

    def add(self, slots, added):
        super().add(slots, added)
        self.num_added[:] = np.minimum(added, self.capacity)


def holds_probabilities_are_the_twins(
    make, lanes=1, capacity=12, alpha=0.6, omega=0.7, unfinished="reliable"
):
    """Episodes of chance, with updates, overwritten steps, cuts, and a full ring several times
    over.

    The smallest priority of all is the twin's as well, and to the bit what a pass over all slots
    finds.
    """
    rng = np.random.default_rng(7)
    settings = {"alpha": alpha, "omega": omega, "priority_epsilon": EPSILON}
    settings |= {"normalize": "buffer", "unfinished": unfinished}
    sampler = make(capacity, [3], **settings)
    make_storage = partial(FrameStorage, environments=lanes) if lanes > 1 else TransitionStorage
    world = World(make_storage, capacity, runs=1)
    replay = Replay(world.storage, sampler, runs=1)
    twin = Twin(capacity, alpha, omega, unfinished)
    for count in range(90):
        step = world.step()
        replay.add(*step)
        over = np.reshape(step.terminated | step.truncated, lanes)
        for lane in range(lanes):
            twin.add(lane, over[lane])
        if count % 23 == 22:
            replay.truncate_episodes()
            for lane in range(lanes):
                twin.cut(lane)
            world.stacks = world.new_stacks()
        first = max(0, len(twin.sizes) - capacity)
        numbers = rng.integers(first, len(twin.sizes), size=3)
        errors = rng.normal(size=3) * 10.0 ** rng.integers(-3, 3, size=3)
        replay.update_priorities(numbers[None], errors[None])
        for number, error in zip(numbers.tolist(), errors.tolist(), strict=True):
            twin.update(number, error)
        np.testing.assert_allclose(replay.probabilities[0], twin.probabilities(), rtol=1e-9)
        every = sampler._priorities()
        if sampler.least is None:
            continue
        assert sampler.least.min == every[every > 0].min()
        assert sampler.least.min == pytest.approx(min(twin.priorities().values()), rel=1e-9)
        if count % 7 == 0:
            copy = make(capacity, [3], **settings)
            copy.restore(sampler.state)
            np.testing.assert_array_equal(copy.least.nodes, sampler.least.nodes)


@pytest.mark.parametrize(("alpha", "omega"), [(0.3, 0.3), (1.0, 1.0), (0.0, 1.0), (0.6, 0.0)])
@pytest.mark.parametrize("capacity", [1, 5, 12, 64])
def test_probabilities_are_the_formula(capacity, alpha, omega):
    holds_probabilities_are_the_twins(ReaperSampler, 1, capacity, alpha, omega)


@pytest.mark.parametrize("lanes", [2, 3])
@pytest.mark.parametrize("capacity", [5, 12])
def test_several_environments_feed_a_run(lanes, capacity):
    holds_probabilities_are_the_twins(ReaperSampler, lanes, capacity)


@pytest.mark.parametrize(
    ("lanes", "capacity"), [(1, 1), (1, 5), (1, 12), (1, 64), (3, 5), (3, 12), (3, 64)]
)
def test_unfinished_episodes_can_count_as_in_the_paper(lanes, capacity):
    holds_probabilities_are_the_twins(ReaperSampler, lanes, capacity, unfinished="conservative")


class TrustsTheUnfinished(ReaperSampler):
    """The steps of a running episode have R = 1 all the same."""

    def _priorities(self):
        running = self.after == reliability.RUNNING
        plain = self.sums.get(np.arange(self.capacity)[None])
        return np.where(running, plain, super()._priorities())


def test_trust_in_unfinished_episodes_is_noticed():
    with pytest.raises(AssertionError):
        holds_probabilities_are_the_twins(TrustsTheUnfinished, unfinished="conservative")


class ForgetsTheOldest(ReaperSampler):
    """The smallest priority of an episode stays what it was when its first steps are
    overwritten.
    """

    def add(self, slots, added):
        self.num_added[:] = 0  # the ring seems not to be full
        super().add(slots, np.minimum(added, self.capacity - 1))
        self.num_added[:] = added


@pytest.mark.parametrize(
    "bugged", [ForgetsTheOldest, LeavesTheEpisode, CountsOneLess, ForgetsWhatIsOverwritten]
)
def test_bugs_are_noticed(bugged):
    with pytest.raises(AssertionError):
        holds_probabilities_are_the_twins(bugged)


def finished(make=ReaperSampler, **settings):
    """A buffer of two episodes that have ended and a running one; and its twin."""
    settings = {"alpha": 0.8, "omega": 1.0, "unfinished": "reliable", **settings}
    replay = Replay(TransitionStorage(16, ()), make(16, [5], priority_epsilon=EPSILON, **settings))
    twin = Twin(16, settings["alpha"], settings["omega"], settings["unfinished"])
    for number, over in enumerate([0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]):
        replay.add(number, 0, 0.0, number, bool(over))
        twin.add(0, over)
    errors = np.array([0.1, 3.0, 0.0, 1.0, 0.2, -0.5, 2.0, 0.1, 0.7, 1.0, 0.5])
    replay.update_priorities(np.arange(11), errors)
    for number, error in enumerate(errors.tolist()):
        twin.update(number, error)
    return replay, twin


class ProportionalDraw(ReaperSampler):
    """Proposals are never refused."""

    def sample(self, batch_size, sizes, beta):
        slots, relative = self._draw(batch_size, sizes)
        return slots, relative**-beta


def holds_frequencies_are_the_formula(make, **settings):
    """Chi-square of draws that do not depend on one another."""
    replay, twin = finished(make, **settings)
    drawn = np.concatenate([replay.sample(8).indices for _ in range(1000)])
    counts = np.bincount(drawn, minlength=11)
    assert stats.chisquare(counts, 8000 * twin.probabilities()[:11]).pvalue > 1e-4


@pytest.mark.parametrize("tries", [reaper.TRIES, 1, 0])
def test_frequencies_are_the_formula(tries, monkeypatch):
    """With one try, or none, many draws come from the pass over all slots: the odds are
    the same.
    """
    monkeypatch.setattr(reaper, "TRIES", tries)
    holds_frequencies_are_the_formula(ReaperSampler)


def test_draws_that_leave_reliability_out_are_noticed():
    with pytest.raises(AssertionError):
        holds_frequencies_are_the_formula(ProportionalDraw)


def test_frequencies_with_unfinished_episodes_as_in_the_paper():
    holds_frequencies_are_the_formula(ReaperSampler, unfinished="conservative")


@pytest.mark.parametrize("unfinished", ["reliable", "conservative"])
@pytest.mark.parametrize("normalize", ["batch", "buffer", "none"])
def test_weights_are_the_formula(normalize, unfinished):
    replay, twin = finished(normalize=normalize, unfinished=unfinished)
    shares = twin.probabilities()[:11]
    every = (11 * shares) ** -0.5
    for _ in range(10):
        batch = replay.sample(6, beta=0.5)
        largest = {"batch": every[batch.indices].max(), "buffer": every.max(), "none": 1.0}
        expected = every[batch.indices] / largest[normalize]
        np.testing.assert_allclose(batch.weights, expected, rtol=1e-9)


def test_a_small_reliability_is_not_lost_beside_a_large_error():
    """1 − later / total would be 0 here, and the step would never be drawn."""
    replay = Replay(
        TransitionStorage(4, ()),
        ReaperSampler(4, [0], alpha=0.0, omega=0.5, priority_epsilon=1e-20),
    )
    for number in range(2):
        replay.add(number, 0, 0.0, number, number == 1)
    replay.update_priorities([0, 1], [1.0, 1e40])
    assert replay.probabilities[0] == pytest.approx(1e-20, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "exception", "message"),
    [
        ({"omega": 1.5}, ValueError, r"omega: must be in \[0, 1\], got 1.5"),
        ({"omega": None}, TypeError, "omega: must be a number, got None"),
        ({"alpha": -1}, ValueError, r"alpha: must be in \[0, 1\], got -1"),
        ({"priority_epsilon": 0}, ValueError, "priority_epsilon: must be greater than 0, got 0"),
        ({"normalize": "all"}, ValueError, "normalize: must be one of 'batch', 'buffer', 'none'"),
        ({"unfinished": "R"}, ValueError, "unfinished: must be one of 'reliable', 'conservative'"),
    ],
)
def test_bad_settings_are_refused(settings, exception, message):
    with pytest.raises(exception, match=message):
        ReaperSampler(9, [0], **settings)


def test_many_transitions_in_long_episodes_take_little_memory():
    n, length = 2_000, 500
    replay = Replay(TransitionStorage(n, ()), ReaperSampler(n, [0], normalize="buffer"))
    ends = np.arange(1, n + 1) % length == 0
    tracemalloc.start()
    replay.extend(np.zeros(n), np.zeros(n, int), np.zeros(n), np.zeros(n), ends)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * n * length / 4  # a table of all transitions by all steps would be 8 n length


def test_an_episode_that_ends_where_nothing_is_stored_is_refused():
    """Its smallest priority would be infinite, and so would all weights."""
    replay, _ = finished(normalize="buffer")
    state = {key: array.copy() for key, array in replay.sampler.state.items()}
    state["after"][0, 10], state["after"][0, 11], state["before"][0, 11] = 1, 0, 1  # 11 are stored
    with pytest.raises(ValueError, match="before and after must count the steps of episodes"):
        replay.sampler.check(state, replay.storage.ring.sizes)


def test_a_state_whose_parts_contradict_each_other_is_refused():
    replay, _ = finished()
    sampler, sizes = replay.sampler, replay.storage.ring.sizes
    for name, message in [
        ("sums", "errors and sums have leaves of different priorities"),
        ("num_added", "num_added must be the number of transitions added"),
        ("after", "before and after must count the steps of episodes"),
        ("before", "before and after must count the steps of episodes"),
    ]:
        state = {key: array.copy() for key, array in sampler.state.items()}
        if name == "sums":
            other, _ = finished(alpha=0.5)
            state["sums"] = other.sampler.state["sums"]
        elif name == "num_added":
            state["num_added"] -= 1
        else:
            state[name][0, 1] += 1  # of an episode that has ended
        with pytest.raises(ValueError, match=message):
            sampler.check(state, sizes)
