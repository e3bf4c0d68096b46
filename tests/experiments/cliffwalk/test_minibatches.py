"""Minibatches on the Blind Cliffwalk, against a plain twin and the one-at-a-time learner."""

import numpy as np
import pytest

from per_tutorial.experiments.cliffwalk.environment import true_values
from per_tutorial.experiments.cliffwalk.learner import CONVERGED, CliffwalkLearner
from per_tutorial.experiments.cliffwalk.minibatches import (
    DRAWS,
    MinibatchLearner,
    updates_until_converged,
)
from per_tutorial.replay.random_streams import RandomStreams, next_uniform


class Twin:
    """The learner as slow as it is plain: no tree, no kinds, all in NumPy's own words."""

    def __init__(self, learner, seed):
        self.learner = learner
        self.rows = list(zip(*(field.tolist() for field in learner.memory), strict=True))
        self.q = learner.q.copy()
        self.priorities = np.ones(len(self.rows))
        self.random = RandomStreams([seed], "replay").states
        self.size = len(learner.last)

    def error(self, k):
        state, action, reward, following = self.rows[k]
        value = 0.0 if following == -1 else self.q[following].max()
        return reward + (1 - 1 / self.learner.n) * value - self.q[state, action]

    def priority(self, k):
        return (abs(self.error(k)) + 1e-6) ** self.learner.alpha

    def draw(self):
        left, drawn = self.priorities.copy(), []
        for k in range(self.size):
            random = next_uniform(self.random, 0)
            if self.learner.draws == "stratified":
                random = (k + random) / self.size
            ends = np.cumsum(left)
            drawn.append(int(np.searchsorted(ends, random * ends[-1], side="right")))
            if self.learner.draws == "without replacement":
                left[drawn[-1]] = 0.0
        return drawn

    def update(self):
        if self.learner.recompute:
            self.priorities[:] = [self.priority(k) for k in range(len(self.rows))]
        drawn = self.draw()
        errors, priorities = [self.error(k) for k in drawn], [self.priority(k) for k in drawn]
        for k, error, priority in zip(drawn, errors, priorities, strict=True):
            state, action = self.rows[k][:2]
            self.q[state, action] += self.learner.step_size * error / self.size
            self.priorities[k] = priority
        return drawn


@pytest.mark.slow
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_the_compiled_learner_agrees_with_a_plain_one(draws, recompute, alpha):
    learner = MinibatchLearner(
        4, draws=draws, recompute=recompute, alpha=alpha, step_size=1.0, batch_size=6, seed=3
    )
    twin, replayed = Twin(learner, seed=3), np.zeros(30, dtype=int)
    for update in range(30):
        assert learner.run(1) == 1, update
        drawn = twin.update()
        assert learner.last.tolist() == drawn
        np.add.at(replayed, drawn, 1)
        np.testing.assert_allclose(learner.q, twin.q, atol=1e-12)
        np.testing.assert_allclose(learner.priorities, twin.priorities, rtol=1e-9)
    np.testing.assert_array_equal(learner.replayed, replayed)
    assert learner.updates == 30


def test_minibatches_of_one_are_the_learner_of_one_at_a_time():
    ours = MinibatchLearner(6, batch_size=1, seed=2)
    theirs = CliffwalkLearner(6, "proportional", seed=2)
    assert ours.run() == theirs.run() > 100
    np.testing.assert_array_equal(ours.theta, theirs.theta)
    np.testing.assert_array_equal(ours.replayed, theirs.replayed)


def test_without_replacement_nothing_is_twice_in_a_minibatch():
    twice = dict.fromkeys(DRAWS, 0)
    for draws in DRAWS:
        learner = MinibatchLearner(5, draws=draws, seed=1)
        while learner.run(1):
            twice[draws] += len(set(learner.last.tolist())) < 8
    assert twice["without replacement"] == 0 < 5 < twice["stratified"] < twice["independent"]


def test_a_minibatch_of_the_whole_memory_is_possible():
    learner = MinibatchLearner(3, draws="without replacement", batch_size=14)
    learner.run(5)
    assert sorted(learner.last.tolist()) == list(range(14))
    assert learner.replayed.tolist() == [5] * 14


def test_learning_stops_at_the_criterion_and_continues_as_one_run():
    whole, pieces = (MinibatchLearner(6, draws="without replacement", seed=4) for _ in range(2))
    done = whole.run()
    assert whole.converged and whole.loss < CONVERGED and whole.run(10) == 0
    np.testing.assert_allclose(whole.q, true_values(6), atol=np.sqrt(12 * CONVERGED))
    assert pieces.run(done - 1) == done - 1 and not pieces.converged
    assert pieces.run(10) == 1
    np.testing.assert_array_equal(pieces.theta, whole.theta)


def test_updates_are_those_of_each_seed_and_infinite_beyond_the_limit():
    updates = updates_until_converged(5, runs=3, alpha=0.5)
    learner = MinibatchLearner(5, alpha=0.5, seed=2)
    assert updates[2] == learner.run()
    assert np.isinf(updates_until_converged(5, runs=2, limit=20)).all()


def test_priorities_help_in_minibatches_too():
    uniform = updates_until_converged(8, runs=10, alpha=0.0)
    per = updates_until_converged(8, runs=10)
    assert (per < 0.5 * uniform).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 1}, ValueError, "n: must be at least 2"),
        ({"draws": "with"}, ValueError, "draws: must be one of 'stratified'"),
        ({"recompute": 1}, TypeError, "recompute: must be True or False"),
        ({"batch_size": 15}, ValueError, "batch_size: must be at most 14"),
        ({"batch_size": 0}, ValueError, "batch_size: must be at least 1"),
        ({"alpha": 2}, ValueError, r"alpha: must be in \[0, 1\]"),
        ({"priority_epsilon": 0}, ValueError, "priority_epsilon: must be greater than 0"),
        ({"initial_scale": -1}, ValueError, "initial_scale"),
        ({"step_size": 0}, ValueError, "step_size: must be greater than 0"),
        ({"seed": -1}, ValueError, "seed: must be at least 0"),
    ],
)
def test_settings_that_make_no_sense(options, error, message):
    with pytest.raises(error, match=message):
        MinibatchLearner(**{"n": 3} | options)
