"""Every planted bug is found by its check, which names the mistake."""

import re
from dataclasses import replace

import numpy as np
import pytest
from plain_adapter import PlainAdapter

from per_tutorial.conformance import CHECKS, examine
from per_tutorial.conformance.bugs import BUGS
from per_tutorial.conformance.plain import Plain


@pytest.mark.parametrize("name", BUGS)
@pytest.mark.slow
def test_the_check_that_a_bug_names_finds_it(name):
    (result,) = examine(PlainAdapter(BUGS[name]), checks=[BUGS[name].found_by]).results
    assert result.verdict == "failed", result  # a bug that is only inconclusive would be skipped


def shallow(self, prefix_sums, masses):
    """The search takes log2(capacity) steps, rounded down: right for powers of two."""
    leaves = 1 << (self.capacity - 1).bit_length()
    sums = np.concatenate([np.zeros(leaves), masses, np.zeros(leaves - len(masses))])
    for node in reversed(range(1, leaves)):
        sums[node] = sums[2 * node] + sums[2 * node + 1]
    nodes, rest = np.ones(len(prefix_sums), int), np.array(prefix_sums)
    for _ in range(int(np.log2(self.capacity))):
        right = rest >= sums[2 * nodes]
        rest -= np.where(right, sums[2 * nodes], 0)
        nodes = 2 * nodes + right
    return np.clip(nodes - leaves, 0, len(masses) - 1)


def of_last_week(self):
    """Masses are computed anew every ten minibatches."""
    self.asked = getattr(self, "asked", -1) + 1
    if self.asked % 10 == 0 or len(self.kept) < len(self):
        self.kept = Plain.masses(self)
    return self.kept


def over_the_smallest_ever(self, probabilities, beta):
    masses = Plain.masses(self)
    self.smallest = min(getattr(self, "smallest", np.inf), masses.min())
    return (self.smallest / masses.sum() / probabilities) ** beta


def after_the_pointer(self, *fields):
    slot, priority = self.next_slot(), self.priorities[self.next_slot()]
    Plain.add(self, *fields)
    self.priorities[[self.next_slot(), slot]] = self.largest, priority


def same_numbers(self, batch_size, masses):
    self.rng = np.random.default_rng(0)
    return Plain.prefix_sums(self, batch_size, masses)


def random_slot(self):
    return int(self.rng.integers(self.capacity)) if self.added >= self.capacity else self.added


def but_the_last(self):
    late = self.added - self.capacity
    return self.added if late < 0 else late % (self.capacity - 1)


def only_when_full(self):
    return Plain.masses(self) if len(self) == self.capacity else np.ones(len(self))


def of_no_seed(self, batch_size, masses):
    return np.random.random(batch_size) * masses.sum()


def of_seed_0(self, *sizes, **given):
    Plain.__init__(self, *sizes, **given | {"seed": 0})


def broken(**methods):
    return PlainAdapter(type("Broken", (Plain,), methods))


def but_two(self, ids):
    """The last two of a minibatch are lost."""
    return np.append(Plain.slots_of(self, ids[:-2]), [-1, -1])


def size_of_reward(self, *fields):
    Plain.add(self, *fields[:2], abs(fields[2]), *fields[3:])


def demanding(self, *options):
    assert not getattr(self, "waits", False), "update first"
    self.waits = True
    return Plain.sample(self, *options)


def updated(self, ids, td_errors):
    self.waits = False
    Plain.update_priorities(self, ids, td_errors)


def small_added_after(self):
    return np.maximum(self.priorities[: len(self)] - self.epsilon, 0) ** self.alpha + self.epsilon


def clipped(self, td_errors):  # 1000 becomes what the new owners have
    return np.minimum(Plain.priority(self, td_errors), 1.0)


def half_precision(self, field, slots):
    values = self.rows[field][slots]
    return values.astype(np.float16) if values.dtype == np.float32 else values


def changes_added(self, slots, priorities):
    np.add.at(self.priorities, slots, priorities - self.priorities[slots])
    self.priorities[slots] = np.maximum(self.priorities[slots], self.epsilon)


def one_too_far_after_wrapping(self, ids):
    slots = Plain.slots_of(self, ids)
    return np.where(slots < 0, -1, (slots + (self.added > self.capacity)) % self.capacity)


def of_the_last_batch(self, priorities):
    self.largest = max(priorities.tolist(), default=self.largest)


def sum_to_one(self, probabilities, beta):
    weights = probabilities**-beta
    return weights / weights.sum()


def tail_never_flushed(self):
    """The last n − 1 steps of an episode are never the start of a window."""
    slots, masses = np.arange(len(self)), Plain.masses(self)
    for back in range(1, self.n_step):
        masses[self.ends((slots + back - 1) % self.capacity)[: len(self)]] = 0.0
    return masses


def forgetful(self, path):
    Plain.load(self, path)
    self.largest = 1.0


def not_a_number(self, indices, td_errors):
    self.write(self.slots_of(indices), self.priority(td_errors))


def kept_arrays(self, *fields):
    self.kept = [*getattr(self, "kept", []), (self.next_slot(), fields[0], fields[3])]
    Plain.add(self, *fields)
    for slot, observation, following in self.kept[-self.capacity :]:
        self.rows["observation"][slot], self.rows["next_observation"][slot] = observation, following


def one_array_for_all(self, field, slots):
    values = Plain.gather(self, field, slots)
    array = self.__dict__.setdefault("arrays", {}).setdefault((field, len(slots)), values)
    array[:] = values
    return array


LATE = BUGS["stale-write-back"].slots_of
HIDING = [  # check, buffer, what is said
    ("handling", broken(sample=demanding, update_priorities=updated), "the adapter must allow"),
    ("reach", broken(find=shallow), "never came"),
    ("reach", broken(next_slot=but_the_last), "should have been overwritten"),
    ("contents", broken(add=size_of_reward), "rewards is"),
    ("contents", broken(gather=half_precision), "never added"),
    ("updates", broken(slots_of=but_two), "expected"),
    ("updates", broken(write=changes_added), "some of them twice"),
    ("updates", broken(masses=of_last_week), "are sums refreshed later?"),
    ("proportions", broken(masses=only_when_full), "in a part-full buffer"),
    ("proportions", broken(slots_of=one_too_far_after_wrapping), "after wrapping around"),
    ("epsilon", broken(masses=small_added_after), "is ε added before the power?"),
    ("newcomers", broken(add=after_the_pointer), "after new ones were added"),
    ("newcomers", broken(remember=of_the_last_batch), "after updates, a new transition is"),
    ("weights", broken(weights=lambda self, P, b: P ** -(b**2)), "β = 0.4, weights are P^-0.16"),
    ("weights-scale", broken(weights=over_the_smallest_ever), "were mixed before"),
    ("weights-scale", broken(weights=sum_to_one), "all errors are equal, but"),
    ("n-step", broken(ends=lambda self, slots: self.rows["terminated"][slots]), "a time limit"),
    ("n-step", broken(masses=tail_never_flushed), "near an end never come"),
    ("saving", broken(load=forgetful), "new ones are"),
    ("bad-errors", broken(update_priorities=not_a_number), "after a TD error of nan"),
    ("seeds", broken(__init__=of_seed_0), "two seeds draw the same transitions"),
    ("seeds", broken(prefix_sums=of_no_seed), "the same seed twice draws different transitions"),
    ("late-updates", broken(slots_of=LATE, priority=clipped), "update with |δ| = 0.0001"),
    ("arrays", broken(add=kept_arrays), "as if it kept them without a copy"),
    ("arrays", broken(gather=one_array_for_all), "of a minibatch changed when the next one"),
]


@pytest.mark.slow
@pytest.mark.parametrize("check, adapter, words", HIDING)
def test_a_bug_that_hides_from_most_questions_is_found(check, adapter, words):
    with pytest.raises(AssertionError, match=re.escape(words)) as caught:
        CHECKS[check](adapter)
    assert len(caught.traceback) == 2  # the test, and no lines of the check


def huber(size):
    return np.where(size < 1, size**2 / 2, size - 0.5)


def handed_over(priority_of):
    """The adapter of a right buffer that is given something else than δ."""

    def update(self, buffer, keys, td_errors, weights):
        buffer.update_priorities(keys, priority_of(np.abs(td_errors), weights))

    return type("HandedOver", (PlainAdapter,), {"update": update})()


keyless = PlainAdapter()
keyless.sample = lambda *options: replace(PlainAdapter.sample(keyless, *options), keys=None)
undeclared = broken(priority=lambda self, td_errors: np.abs(td_errors))
undeclared.epsilon = 0.0  # whoever adds none has none to declare

FIRST = [  # with what a report begins
    (PlainAdapter(BUGS["newcomers-at-one"]), "newcomers", "likely: it always gets 1"),
    (
        broken(newcomer=lambda self: self.largest**self.alpha),
        "newcomers",
        "α is applied to it twice",
    ),
    (PlainAdapter(BUGS["no-weights"]), "weights", "the weights are left out"),
    (broken(weights=lambda self, P, b: self.rng.permutation(P**-b)), "weights", "in another order"),
    (broken(weights=lambda self, P, b: P**b), "weights", "the minus sign of β is missing"),
    (broken(weights=lambda self, P, b: P ** (-b / self.alpha)), "weights", "of p, not of p^α"),
    (broken(weights=lambda self, P, b: P**-1.0), "weights", "β is ignored"),
    (keyless, "handling", "likely: the Minibatch has no `keys`"),
    (handed_over(lambda size, weights: size * weights), "exponent", "|δ| times the weight"),
    (handed_over(lambda size, weights: np.minimum(size, 1)), "exponent", "declare `clip`"),
    (handed_over(lambda size, weights: huber(size)), "exponent", "the Huber loss, not |δ|"),
    (broken(masses=lambda self: Plain.masses(self) + 0.01), "exponent", "is added to |δ|^α"),
    (broken(next_slot=random_slot), "reach", "should have been overwritten"),
    (broken(prefix_sums=same_numbers), "reach", "random numbers are the same"),
    (
        broken(prefix_sums=lambda self, n, p: Plain.prefix_sums(self, 60, p)[:n]),
        "reach",
        "do not span the total",
    ),
    (handed_over(lambda size, weights: 1 / size), "exponent", "the order is reversed"),
    (broken(add=after_the_pointer), "reach", "priority goes to the next slot"),
    (undeclared, "epsilon", "add ε to |δ|, in the buffer or in `update`"),
    (PlainAdapter(BUGS["drifting-sums"]), "sums", "do the sums keep rounding errors?"),
    (PlainAdapter(BUGS["column-of-weights"]), "handling", "their product is a table"),
]


@pytest.mark.slow
@pytest.mark.parametrize("adapter, check, words", FIRST)
def test_a_report_begins_with_the_cause(adapter, check, words):
    first = examine(adapter).failures[0]
    assert first.check == check and words in first.measured


def test_every_check_finds_a_bug_and_every_bug_is_described():
    assert {bug.found_by for bug in BUGS.values()} | {check for check, *_ in HIDING} == set(CHECKS)
    for name, bug in BUGS.items():
        assert bug.__doc__.endswith("."), name
        assert all(re.match(r"[\w.-]+/[\w.-]+(#\d+$| \()", case) for case in bug.seen), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["alpha-twice", "newcomers-at-one", "no-weights", "truncation-as-terminal"]
)
def test_nothing_unrelated_fails(name):
    report = examine(PlainAdapter(BUGS[name]), 3)
    assert [one.check for one in report.failures] == [BUGS[name].found_by], report
