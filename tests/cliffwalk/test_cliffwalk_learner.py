"""The compiled learner of the Blind Cliffwalk against a plain one, and against the paper."""

import itertools

import numpy as np
import pytest

from per_tutorial.cliffwalk.environment import true_values
from per_tutorial.cliffwalk.learner import CONVERGED, SAMPLERS, CliffwalkLearner
from per_tutorial.cliffwalk.paper import PAPER


def median_updates(n, sampler, runs=10, **options):
    updates = []
    for seed in range(runs):
        learner = CliffwalkLearner(n, sampler, seed=seed, **options)
        learner.run(1_000_000)
        assert learner.converged
        updates.append(learner.updates)
    return np.median(updates)


# Learning, against a plain Python twin ----------------------------------------------------------


class Twin:
    """The learner's plain twin: lists and loops; the sampler's choice comes from outside."""

    def __init__(self, learner, linear):
        self.rows = list(zip(*(field.tolist() for field in learner.memory), strict=True))
        self.n, self.linear = learner.n, linear
        weights = learner.theta.tolist()
        self.table = [row[:-1] for row in weights]
        self.biases = [row[-1] if linear else 0.0 for row in weights]
        self.priorities = [1.0] * len(self.rows)

    def q(self, state, action):
        return self.table[action][state] + self.biases[action]

    def error(self, k):
        state, action, reward, following = self.rows[k]
        value = 0.0 if following == -1 else max(self.q(following, 0), self.q(following, 1))
        return reward + (1 - 1 / self.n) * value - self.q(state, action)

    def update(self, k):
        error = self.error(k)
        state, action = self.rows[k][:2]
        step = 0.25 * error / (2 if self.linear else 1)
        self.table[action][state] += step
        if self.linear:
            self.biases[action] += step
        self.priorities[k] = abs(error)

    def loss(self):
        truth = true_values(self.n)
        pairs = itertools.product(range(self.n), range(2))
        return sum((self.q(s, a) - truth[s, a]) ** 2 for s, a in pairs) / (2 * self.n)

    def loss_after(self, k):
        table, biases = [row[:] for row in self.table], self.biases[:]
        priority = self.priorities[k]
        self.update(k)
        loss = self.loss()
        self.table, self.biases, self.priorities[k] = table, biases, priority
        return loss


@pytest.mark.slow
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_compiled_learner_agrees_with_a_plain_one(sampler, linear, noise):
    learner = CliffwalkLearner(4, sampler, linear=linear, noise=noise, seed=3)
    twin = Twin(learner, linear)
    for _ in range(120):
        if not learner.run(1):
            break
        k = learner.last
        if sampler == "greedy":
            assert twin.priorities[k] == pytest.approx(max(twin.priorities))
        elif sampler == "oracle":
            losses = [twin.loss_after(j) for j in range(len(twin.rows))]
            assert losses[k] == pytest.approx(min(losses))
        twin.update(k)
        assert learner.loss == pytest.approx(twin.loss())
        q = [[twin.q(state, action) for action in range(2)] for state in range(4)]
        np.testing.assert_allclose(learner.q, q, atol=1e-12)
    assert learner.replayed.sum() == learner.updates > 50


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_learning_stops_at_the_criterion(sampler):
    learner = CliffwalkLearner(5, sampler, seed=1)
    losses = np.full(100_000, np.nan)
    done = learner.run(100_000, losses)
    assert learner.converged and learner.updates == done
    assert (losses[: done - 1] >= CONVERGED).all()
    assert losses[done - 1] == learner.loss < CONVERGED
    assert np.isnan(losses[done:]).all()
    assert learner.run(10) == 0
    np.testing.assert_allclose(learner.q, true_values(5), atol=np.sqrt(10 * CONVERGED))


def test_the_oracle_needs_what_the_paper_needs():
    for x in (254, 1022, 4094):
        n = (x + 2).bit_length() - 1
        ratio = median_updates(n, "oracle") / PAPER["tabular", "oracle"][x]
        assert 1 / 1.1 < ratio < 1.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 1}, "n: must be at least 2"),
        ({"sampler": "random"}, "sampler: must be one of 'uniform', 'greedy'"),
        ({"alpha": 2}, r"alpha: must be in \[0, 1\]"),
        ({"step_size": 0}, "step_size: must be greater than 0"),
    ],
)
def test_settings_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        CliffwalkLearner(**{"n": 4, "sampler": "rank", **options})
