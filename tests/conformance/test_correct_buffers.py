"""Correct buffers are accused of nothing, however they are written; and the plain one is right."""

import numpy as np
import pytest
from plain_adapter import PlainAdapter

from per_tutorial import PrioritizedReplayBuffer, RankBasedReplayBuffer
from per_tutorial.conformance import examine, find_adapter
from per_tutorial.conformance.plain import Plain


def without_replacement(self, batch_size, beta=0.4):
    masses = self.masses()
    p = masses / masses.sum()
    slots = self.rng.choice(len(self), batch_size, replace=False, p=p)
    return self.batch(slots, self.weights(p[slots], beta))


def never_one(self, batch_size, beta=0.4):
    if batch_size < 2:
        raise ValueError("batch_size: must be at least 2")
    return Plain.sample(self, batch_size, beta)


def annealed(self, batch_size, beta=0.4):
    self.beta = min(1.0, getattr(self, "beta", 0.4) + 0.001)
    return Plain.sample(self, batch_size, self.beta)


def delayed(self):
    hidden = (self.added - 1 - np.arange(min(2, len(self)))) % self.capacity
    kept, self.priorities[hidden] = self.priorities[hidden], 0.0  # they have the last ranks
    masses, self.priorities[hidden] = Plain.masses(self), kept
    masses[hidden] = 0.0
    return masses


def columns(self, slots, weights):
    batch = Plain.batch(self, slots, weights)
    names = ("actions", "rewards", "terminated", "weights")
    return batch._replace(**{name: getattr(batch, name)[:, None] for name in names})


def no_next_at_the_end(self, slots, weights):
    batch = Plain.batch(self, slots, weights)
    batch.next_observations[batch.terminated] = -1.0
    return batch


def last_states_need_slots(self, *fields):
    """The capacity counts states: an episode's last one has a slot, which is never drawn."""
    Plain.add(self, *fields)
    if any(fields[4:]):
        self.priorities[self.next_slot()] = 0.0
        self.added += 1


def buffer(name="Plain", given=None, declared=None, **methods):
    """The adapter of a plain buffer with other methods, arguments and declarations."""
    adapter = PlainAdapter(type(name, (Plain,), methods), **(given or {}))
    for declaration, value in (declared or {}).items():
        setattr(adapter, declaration, value)
    return adapter


def largest_left(self):
    return np.delete(self.priorities, self.next_slot()).max() or 1.0


def with_share(self):
    masses = Plain.masses(self)
    return 0.9 * masses / masses.sum() + 0.1 / len(self)


def clipped(self, td_errors):
    return np.minimum(np.abs(td_errors), 1.0) + self.epsilon


def by_smallest(self, probabilities, beta):
    return (probabilities / probabilities.min()) ** -beta


ONE_STEP = {"n_step": False}
CORRECT = [
    buffer(),
    buffer("Rank", {"kind": "rank"}, {"distribution": "rank"}),
    buffer("RankDelayed", {"kind": "rank"}, {"distribution": "rank", "delay": 2}, masses=delayed),
    buffer("Uniform", {"kind": "uniform"}, {"distribution": "uniform"}),
    buffer("Independent", prefix_sums=lambda self, n, masses: self.rng.random(n) * masses.sum()),
    buffer("Undivided", weights=lambda self, P, beta: (len(self) * P) ** -beta),
    buffer("ByBuffer", weights=lambda self, P, beta: (P / self.probabilities.max()) ** -beta),
    buffer("LargestLeft", newcomer=largest_left),
    buffer("NeverOne", sample=never_one),
    buffer("Floor", None, {"epsilon": 0.0}, priority=lambda self, d: np.maximum(np.abs(d), 1e-8)),
    buffer("NoReplacement", declared={"replacement": False}, sample=without_replacement),
    buffer("Clipped", declared={"clip": 1.0}, priority=clipped),
    buffer("Annealed", declared={"anneals_beta": True}, sample=annealed),
    buffer("Delayed", None, {"delay": 2, **ONE_STEP}, masses=delayed, weights=by_smallest),
    buffer("NoNext", None, {"terminal_next_observation": False}, batch=no_next_at_the_end),
    buffer("FromTheAgent", declared={"newcomers": "agent"}, newcomer=lambda self: 0.7),
    buffer("TenthUniform", declared={"uniform_share": 0.1}, masses=with_share),
    buffer("Columns", batch=columns),
    buffer("Steps", declared=ONE_STEP, add=last_states_need_slots),
    buffer(
        "Padded", prefix_sums=lambda self, n, m: np.resize(self.rng.random(n // 2) * m.sum(), n)
    ),
    *(find_adapter(name) for name in ("proportional", "rank", "uniform")),
]
OFTEN = ("Plain", "per_tutorial, proportional", "Delayed")  # by `make test`, too
UNDECLARED = [  # what a correct but undeclared idiom is told
    (buffer(priority=clipped), "exponent", "declare `clip`"),
    (buffer(priority=lambda self, d: np.abs(d) + 0.01), "exponent", "so declare `epsilon`"),
    (buffer(sample=annealed), "weights", "declare `anneals_beta`"),
    (buffer(masses=with_share), "exponent", "10% of the draws are uniform"),
    (buffer(sample=without_replacement), "exponent", "declare `replacement`"),
    (buffer(masses=delayed), "reach", "declare `delay = 2`"),
    (buffer(declared={"delay": 1}, masses=delayed), "reach", "declare `delay = 1`"),
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
@pytest.mark.parametrize("capacity, batch_size", [(13, 2), (17, 16)])
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
