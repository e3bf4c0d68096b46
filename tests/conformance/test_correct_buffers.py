"""Correct buffers are accused of nothing, however they are written; and the plain one is right."""

import numpy as np
import pytest

from per_tutorial import PrioritizedReplayBuffer, RankBasedReplayBuffer
from per_tutorial.conformance import examine, find_adapter
from per_tutorial.conformance.adapters import PlainAdapter
from per_tutorial.conformance.plain import Plain


class Independent(Plain):
    def prefix_sums(self, batch_size, masses):
        return self.rng.random(batch_size) * masses.sum()


class DividedByTheBuffer(Plain):
    def weights(self, probabilities, beta):
        return (probabilities / self.probabilities[: len(self)].min()) ** -beta


class Undivided(Plain):
    def weights(self, probabilities, beta):
        return (len(self) * probabilities) ** -beta


class LargestStored(Plain):
    def newcomer(self):
        return self.priorities.max() or 1.0


class WithoutReplacement(Plain):
    def sample(self, batch_size, beta=0.4):
        masses = self.masses()
        p = masses / masses.sum()
        slots = self.rng.choice(len(self), batch_size, replace=False, p=p)
        return self.batch(slots, self.weights(p[slots], beta))


class NeverOne(Plain):
    def sample(self, batch_size, beta=0.4):
        if batch_size < 2:
            raise ValueError("batch_size: must be at least 2")
        return super().sample(batch_size, beta)


class Clipped(Plain):
    def priority(self, td_errors):
        return np.minimum(np.abs(td_errors), 1.0) + self.epsilon


class Annealed(Plain):
    beta = 0.4

    def sample(self, batch_size, beta=0.4):
        self.beta = min(1.0, self.beta + 0.001)
        return super().sample(batch_size, self.beta)


class Delayed(Plain):
    def masses(self):
        masses = super().masses()
        masses[(self.added - 1 - np.arange(min(2, len(self)))) % self.capacity] = 0.0
        return masses

    def weights(self, probabilities, beta):
        return (probabilities / probabilities.min()) ** -beta


class NoNextAtTheEnd(Plain):
    def batch(self, slots, weights):
        batch = super().batch(slots, weights)
        batch.next_observations[batch.terminated] = -1.0
        return batch


class FromTheAgent(Plain):
    def newcomer(self):
        return 0.7


def declared(buffer, **declarations):
    adapter = PlainAdapter(buffer, **declarations.pop("options", {}))
    for name, value in declarations.items():
        setattr(adapter, name, value)
    return adapter


CORRECT = [
    declared(Plain),
    declared(Plain, options={"kind": "rank"}, distribution="rank"),
    declared(Plain, options={"kind": "uniform"}, distribution="uniform"),
    *(declared(buffer) for buffer in (Independent, DividedByTheBuffer, Undivided, LargestStored)),
    declared(NeverOne),
    declared(WithoutReplacement, replacement=False),
    declared(Clipped, clip=1.0),
    declared(Annealed, anneals_beta=True),
    declared(Delayed, delay=2, n_step=False),
    declared(NoNextAtTheEnd, terminal_next_observation=False),
    declared(FromTheAgent, newcomers="agent"),
    *(find_adapter(name) for name in ("proportional", "rank", "uniform")),
]
OFTEN = ("Plain", "per_tutorial, proportional", "Delayed")  # by `make test`, too
UNDECLARED = [  # what a correct but undeclared idiom is told
    (declared(Clipped), "exponent", "declare `clip`"),
    (
        declared(Plain, options={"priority_epsilon": 0.01}, epsilon=0),
        "exponent",
        "declare `epsilon`",
    ),
    (declared(Annealed), "weights", "declare `anneals_beta`"),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "adapter",
    [
        pytest.param(one, marks=[] if one.name in OFTEN else pytest.mark.exhaustive)
        for one in CORRECT
    ],
    ids=lambda one: f"{one.name}-{one.distribution}",
)
def test_a_correct_buffer_is_accused_of_nothing(adapter):
    report = examine(adapter, seed=1, everything=True)
    assert {one.verdict for one in report.results} <= {"passed", "skipped"}, str(report)
    assert sum(one.verdict == "passed" for one in report.results) >= 13


@pytest.mark.parametrize("adapter, check, hint", UNDECLARED)
@pytest.mark.slow
def test_an_undeclared_idiom_is_told_how_to_declare_it(adapter, check, hint):
    result = examine(adapter, checks=[check]).results[0]
    assert result.verdict == "failed" and hint in result.measured


@pytest.mark.slow
@pytest.mark.parametrize("capacity, batch_size", [(16, 2), (200, 64)])
def test_capacity_and_batch_are_the_users(capacity, batch_size):
    sizes = set()

    class Noting(Plain):
        def sample(self, batch, beta=0.4):
            sizes.add((self.capacity, batch))
            return super().sample(batch, beta)

    adapter = PlainAdapter(Noting)
    report = examine(adapter, capacity=capacity, batch_size=batch_size)
    assert report.passed, str(report)
    assert (capacity, batch_size) in sizes and max(batch for _, batch in sizes) <= batch_size


# The plain buffer ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, make", [("proportional", PrioritizedReplayBuffer), ("rank", RankBasedReplayBuffer)]
)
def test_the_plain_buffer_has_the_probabilities_of_ours(kind, make):
    plain = Plain(16, (1,), kind=kind, alpha=0.7)
    ours = make(16, (1,), alpha=0.7, **({"sort_every": 1} if kind == "rank" else {}))
    rng = np.random.default_rng(0)
    for k in range(21):
        for buffer in (plain, ours):
            buffer.add([k], 0, 0.0, [k + 1], False)
    errors = rng.normal(size=16)
    for buffer in (plain, ours):
        buffer.update_priorities(np.arange(5, 21), errors)
        buffer.update_priorities([2, 3], [9.0, 9.0])  # late: no one's
    of_ids = plain.probabilities[np.arange(5, 21) % 16]
    np.testing.assert_allclose(of_ids, ours.probabilities(), rtol=1e-9)


def test_the_plain_buffer_makes_n_step_windows():
    plain = Plain(8, (1,), n_step=3, discount=0.5)
    for k in range(10):  # ends: 3 by a terminal state, 7 by a time limit
        plain.add([k], 0, float(k), [k + 0.5], k == 3, k == 7)
    batch = plain.batch(np.array([2, 3, 6, 0, 1]), np.ones(5))
    assert batch.indices.tolist() == [2, 3, 6, 8, 9]
    assert batch.discounts.tolist() == [0, 0, 0.25, 0.25, 0.5]  # the newest windows are shorter
    assert batch.rewards.tolist() == [2 + 1.5, 3, 6 + 3.5, 8 + 4.5, 9]
    assert batch.next_observations[:, 0].tolist() == [3.5, 3.5, 7.5, 9.5, 9.5]
    assert batch.terminated.tolist() == [True, True, False, False, False]


def test_the_plain_buffers_weights_are_those_of_the_paper():
    plain = Plain(4, (1,), alpha=1.0, priority_epsilon=0.0, seed=0)
    for k in range(4):
        plain.add([k], 0, 0.0, [k], False)
    plain.update_priorities([0, 1, 2, 3], [-4.0, 2.0, 1.0, 1.0])
    assert plain.probabilities.tolist() == [0.5, 0.25, 0.125, 0.125]
    assert plain.weights(plain.probabilities, 1.0).tolist() == [0.25, 0.5, 1.0, 1.0]
    counts = np.bincount(plain.sample(4).indices, minlength=4)
    assert counts[:2].tolist() == [2, 1]  # stratified: two of four equal parts are the first's
