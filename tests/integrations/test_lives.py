"""The buffers of Stable-Baselines3, and the slots of other libraries, live beside plain twins."""

from collections import deque
from copy import deepcopy
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from hypothesis.stateful import precondition, rule
from lives import DISCOUNT, SETTINGS, Life, LifeOfSteps, Twin, lines, live, numbers

from per_tutorial.integrations import slot_sampler
from per_tutorial.integrations.slot_sampler import SlotSampler, make_sampler
from per_tutorial.replay.contracts import Batch


class LifeInSB3(LifeOfSteps):
    """Environments may be reset untold, and stacks may hold what no frame before was."""

    shape, go_on = (3, 3, 4), True

    def set_up(self, several):
        pytest.importorskip("stable_baselines3")
        self.environments = self.lost = several
        self.have_twins(1)

    def make(self, seed):
        from per_tutorial.integrations.sb3 import FrameReplayBuffer, PrioritizedReplayBuffer

        *name, kept = self.name.split(", ")
        settings = {"sampler": name[0], **SETTINGS[", ".join(name)], "seed": seed}
        settings |= {"n_steps": self.n_step, "gamma": DISCOUNT}
        settings["handle_timeout_termination"] = kept != "ends"
        size = self.capacity * self.environments + self.environments - 1  # a round too few
        kind, space = PrioritizedReplayBuffer, Box(0, 255, self.shape, np.float32)
        if kept == "frames":
            kind, space = FrameReplayBuffer, Box(0, 255, self.shape, np.uint8)
        elif kept == "dict":
            space = Dict({"all": space, "newest": Box(0, 255, self.shape[1:], np.float32)})
        return kind(size, space, Discrete(9), "cpu", self.environments, **settings)

    def as_kept(self, stacks):
        return {"all": stacks, "newest": stacks[:, -1]} if "dict" in self.name else stacks

    def stacks_of(self, kept):
        """The reverse of `as_kept`."""
        if "dict" not in self.name:
            return kept.numpy()
        np.testing.assert_array_equal(kept["newest"], kept["all"][:, -1])
        return kept["all"].numpy()

    def show(self, place):
        super().show(place)
        if self.rng.random() < 0.2:
            self.stacks[place][:-1] = self.rng.choice([0, 7, self.stacks[place][-1, 0, 0]])

    def step(self, place):
        if self.rng.random() < 0.1:
            self.begin_episode(place)
        *step, terminated, truncated = super().step(place)
        return *step, terminated or (truncated and "ends" in self.name), truncated

    def adding(self, steps):
        seen, actions, rewards, following, terminated, truncated = self.columns(steps)
        timeouts = truncated & (~terminated | ("ends" in self.name))
        infos = [{"TimeLimit.truncated": bool(each)} if each else {} for each in timeouts]
        seen, following = self.as_kept(seen), self.as_kept(following)
        dones = terminated | truncated
        return lambda: self.replay.add(seen, following, actions, rewards, dones, infos)

    def sampled(self, replay, batch_size, beta):
        replay.beta = beta
        return self.as_ours(replay.sample(batch_size))

    def as_ours(self, batch):
        """A minibatch of SB3, with the fields of ours."""
        fields = [batch.actions, batch.rewards, batch.dones, batch.weights, batch.discounts]
        assert {field.shape for field in fields} == {(len(batch.indices), 1)}
        actions, rewards, dones, weights, discounts = (field[:, 0].numpy() for field in fields)
        before, after = map(self.stacks_of, (batch.observations, batch.next_observations))
        returns = actions, rewards, after, dones == 1, weights, batch.indices
        probabilities = batch.probabilities[:, 0].numpy()
        return Batch(before, *returns, discounts * (1 - dones), probabilities)

    def contents(self, run, slots):
        ones = np.ones((1, len(slots)))
        return self.as_ours(self.replay._batch(slots[None], ones, ones, None))[:8]

    def size(self):
        return self.replay.size() * self.environments

    def stateful(self, replay):
        return replay._ledger

    @precondition(lambda self: self.replay.full)
    @rule(line=lines)
    def reset(self, line):
        if self.is_cut_short(self.replay.reset, line) and self.replay._ledger.ring.count > 0:
            self.it_is_as_long_as_its_twins()
            self.probabilities_are_the_twins()
            self.what_is_stored_is_the_twins()
            self.replay.reset()
        self.have_twins(1)
        self.drawn.clear()


class LifeOfSlots(Life):
    """A library stores transitions in slots, and syncs before it draws. The twin's are the rows."""

    def set_up(self, several):
        self.capacity -= 1  # two, or more
        make = partial(make_sampler, self.name.split(",")[0], self.capacity, **SETTINGS[self.name])
        self.make = lambda seed: SlotSampler(partial(make, seed=seed))
        self.is_empty()

    def is_empty(self):
        self.twins = [Twin(self.name, self.capacity)]
        self.stored = set()  # slots that the library has written
        self.held = []  # the slot of each row
        self.versions = np.zeros(self.capacity, np.int64)  # how often slots were written
        self.waiting = deque(maxlen=slot_sampler.MAX_PENDING)  # minibatches, with these then

    def store(self, line):
        """The library tells of the slots that it writes, or leaves new ones to `sync`."""
        slots = self.rng.integers(self.capacity, size=self.rng.integers(1, 6))
        self.stored |= {*slots.tolist()}
        if self.rng.random() < 0.3:
            self.sync(line)
            return
        write, again = partial(self.replay.write, slots), sorted({*slots} & {*self.held})
        cut_short = self.tell(write, {*slots}, line)
        if again and cut_short:
            self.sync()
        before = deepcopy(self.twins)
        self.twin_writes(again)
        if again and cut_short:  # which nobody notices but who does it again
            self.in_full_or_not_at_all(before)
            write()
            self.twin_writes([*{*slots}])

    def sync(self, line=0):
        slots = np.array(sorted(self.stored)[::-1], np.int64)
        self.tell(lambda: self.replay.sync(len(slots), lambda: slots), self.stored, line)

    def tell(self, call, slots, line):
        """Make the call, which tells of these slots: new ones have rows as soon as they count."""
        cut_short = self.is_cut_short(call, line)
        if self.replay.filled > len(self.held):
            new = sorted({*slots} - {*self.held})
            self.held += new
            self.twin_writes(new)
        return cut_short

    def twin_writes(self, slots):
        twin, rows = self.twins[0], [self.held.index(slot) for slot in slots]
        twin.write(np.array(rows, np.int64), twin.newcomer())
        twin.added = len(self.held)
        self.versions[slots] += 1

    @precondition(lambda self: len(self.held) == self.capacity)
    @rule(number=numbers, line=lines)
    def shrink(self, number, line):
        """The library removes all transitions, or all but a few."""
        rng = np.random.default_rng(number)
        kept = rng.choice(self.held, size=rng.integers(len(self.held)), replace=False)
        self.drawn = [each for each in self.drawn if {*each} <= {*kept}]
        self.is_empty()
        self.stored, self.held = {*kept}, sorted(kept)
        self.twin_writes(self.held)
        call = partial(self.replay.sync, len(kept), lambda: kept)
        if len(kept) == 0 and number % 2:
            call = self.replay.clear
        if self.is_cut_short(call, line):
            call()

    def sampled(self, replay, batch_size, beta):
        self.sync()
        slots, weights = replay.sample(batch_size, beta)
        rows = np.array([self.held.index(slot) for slot in slots])
        slots[:] = 0  # which are the caller's own
        probabilities = self.shares()[0][rows]
        return SimpleNamespace(indices=rows, weights=weights, probabilities=probabilities)

    def draw_in_vain(self, draw, line):
        """What nobody got may wait for TD errors as well."""
        before = [None, *self.replay._pending][-1]
        super().draw_in_vain(draw, line)
        after = [None, *self.replay._pending][-1]
        if after is not before:
            self.waiting.append((after[0], self.versions[after[0]]))

    def remember(self, batch):
        slots = np.array(self.held)[batch.indices]
        self.waiting.append((slots, self.versions[slots]))
        self.drawn += [slots, slots[::-1]]  # in this order, they are any slots

    def ids(self, drawn):
        self.sync()
        ids = np.array([self.held.index(slot) for slot in drawn])
        for k, (slots, versions) in enumerate(self.waiting):
            if np.array_equal(slots, drawn):
                ids[versions != self.versions[drawn]] = -self.capacity - 1  # overwritten
                del self.waiting[k]
                break
        return ids[None]

    def update(self, drawn, td_errors):
        self.replay.update(drawn, td_errors)

    def restores(self):
        def restore(new):
            new.restore(self.replay.state)
            self.waiting.clear()

        return [restore]

    def shares(self):
        self.sync()
        found = self.replay.probabilities()
        shares = np.zeros(self.capacity)
        shares[: len(self.held)] = found[self.held]
        assert not np.delete(found, self.held).any()
        return [shares]

    def size(self):
        self.sync()
        assert {*self.held} == self.stored
        return self.replay.filled


ROWS = ["proportional, rows", "proportional, buffer, ends", "rank, dict", "uniform, rows"]
LIVES = {
    "sb3": (LifeInSB3, ROWS),
    "frames": (LifeInSB3, ["proportional, frames", "rank, buffer, frames"]),
    "slots": (LifeOfSlots, [*SETTINGS]),
}
every_life = pytest.mark.parametrize("life, names", LIVES.values(), ids=LIVES)
pytestmark = pytest.mark.filterwarnings("ignore:stack. observations are no stacks")


@pytest.fixture(autouse=True)
def three_minibatches_wait(monkeypatch):
    monkeypatch.setattr(slot_sampler, "MAX_PENDING", 3)


@pytest.mark.slow
@every_life
def test_lives(life, names):
    live(life, names, 100, derandomize=True)


@pytest.mark.exhaustive
@every_life
def test_many_more_lives(life, names):
    live(life, names, 600)
