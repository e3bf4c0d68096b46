"""The compiled learner of the Blind Cliffwalk against a plain one, and against the paper."""

import csv
import itertools
import subprocess
import sys

import numpy as np
import pytest
from notebook_files import NOTEBOOKS

from per_tutorial.cliffwalk.environment import true_values
from per_tutorial.cliffwalk.learner import CONVERGED, SAMPLERS, CliffwalkLearner


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

    def __init__(self, learner):
        self.rows = list(zip(*(field.tolist() for field in learner.memory), strict=True))
        self.n = learner.n
        self.table = learner.theta.tolist()
        self.priorities = [1.0] * len(self.rows)

    def error(self, k):
        state, action, reward, following = self.rows[k]
        value = 0.0 if following == -1 else max(row[following] for row in self.table)
        return reward + (1 - 1 / self.n) * value - self.table[action][state]

    def update(self, k):
        error = self.error(k)
        state, action = self.rows[k][:2]
        self.table[action][state] += 0.25 * error
        self.priorities[k] = abs(error)

    def loss(self):
        truth = true_values(self.n)
        pairs = itertools.product(range(self.n), range(2))
        return sum((self.table[a][s] - truth[s, a]) ** 2 for s, a in pairs) / (2 * self.n)

    def loss_after(self, k):
        table, priority = [row[:] for row in self.table], self.priorities[k]
        self.update(k)
        loss = self.loss()
        self.table, self.priorities[k] = table, priority
        return loss


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_compiled_learner_agrees_with_a_plain_one(sampler, noise):
    learner = CliffwalkLearner(4, sampler, noise=noise, seed=3)
    twin = Twin(learner)
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
        np.testing.assert_allclose(learner.q, np.transpose(twin.table), atol=1e-12)
    assert learner.replayed.sum() == learner.updates > 50


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_oracle_needs_what_the_paper_needs():
    """Medians that we read off the published figure 2."""
    for n, updates in {8: 317, 10: 497, 12: 696}.items():
        assert 1 / 1.1 < median_updates(n, "oracle") / updates < 1.1


def recorded_updates(figure, n, sampler):
    """The updates of ten recorded runs, in the order of their seeds 0 to 9."""
    _, *lines = (NOTEBOOKS / "results/cliffwalk.csv").read_text(encoding="utf-8").splitlines()
    runs = {"figure": figure, "n": str(n), "sampler": sampler}.items()
    return [float(row["updates"]) for row in csv.DictReader(lines) if runs <= row.items()]


@pytest.mark.slow
def test_the_recorded_runs_are_those_of_the_learner():
    """Rounding may differ between processors."""
    for sampler in ("uniform", "greedy", "oracle"):
        again = [CliffwalkLearner(6, sampler, seed=seed).run() for seed in range(10)]
        np.testing.assert_allclose(again, recorded_updates("tabular", 6, sampler), rtol=0.01)


@pytest.mark.parametrize(
    ("sampler", "published"),
    [("greedy", {8: 658, 10: 2.35e3, 12: 8.7e3}), ("oracle", {8: 317, 10: 497, 12: 696})],
)
def test_recorded_medians_are_within_one_and_a_half_times_the_papers(sampler, published):
    for n, updates in published.items():
        found = np.median(recorded_updates("tabular", n, sampler))
        assert 1 / 1.5 < found / updates < 1.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 1}, "n: must be at least 2"),
        ({"sampler": "random"}, "sampler: must be one of 'uniform', 'greedy'"),
        ({"alpha": 2}, r"alpha: must be in \[0, 1\]"),
        ({"noise": -1}, "noise: must be in"),
    ],
)
def test_settings_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        CliffwalkLearner(**{"n": 4, "sampler": "rank", **options})


@pytest.mark.slow
def test_the_walk_loads_without_torch_and_matplotlib():
    code = "import per_tutorial.cliffwalk, sys; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert {"torch", "matplotlib", "IPython"}.isdisjoint(shown.stdout.split())
