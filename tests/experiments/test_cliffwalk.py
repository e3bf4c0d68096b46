"""The Blind Cliffwalk: its memory, its values, and the compiled learner against a plain one."""

import itertools
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from per_tutorial.__main__ import main
from per_tutorial.experiments import cliffwalk_figures as study
from per_tutorial.experiments.blind_cliffwalk import (
    CONVERGED,
    SAMPLERS,
    BlindCliffwalk,
    CliffwalkLearner,
    make_memory,
    true_values,
)

ENV = "per_tutorial/BlindCliffwalk-v0"


def median_updates(n, sampler, runs=10, **options):
    updates = []
    for seed in range(runs):
        learner = CliffwalkLearner(n, sampler, seed=seed, **options)
        learner.run(1_000_000)
        assert learner.converged
        updates.append(learner.updates)
    return np.median(updates)


# The walk and its memory ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_the_memory_holds_all_that_all_sequences_of_actions_meet(n):
    env = BlindCliffwalk(n)
    played = []
    for actions in itertools.product((0, 1), repeat=n):
        env.reset()
        for action in actions:
            state = env.state
            _, reward, terminated, _, _ = env.step(action)
            played.append((state, action, reward, -1 if terminated else env.state))
            if terminated:
                break
    memory = make_memory(n, np.random.default_rng(0))
    stored = list(zip(*(field.tolist() for field in memory), strict=True))
    assert sorted(stored) == sorted(played)
    assert len(stored) == 2 ** (n + 1) - 2
    assert sum(memory.rewards) == 1
    assert stored != sorted(stored)


def test_states_have_their_multiplicity():
    memory = make_memory(6, np.random.default_rng(1))
    for state in range(6):
        for action in range(2):
            copies = ((memory.states == state) & (memory.actions == action)).sum()
            assert copies == 2 ** (6 - 1 - state)


def test_noise_changes_the_rewards_alone():
    quiet = make_memory(6, np.random.default_rng(1))
    noisy = make_memory(6, np.random.default_rng(1), noise=0.5)
    difference = noisy.rewards - quiet.rewards
    assert difference.std() == pytest.approx(0.5, rel=0.2)
    for name in ("states", "actions", "next_states"):
        np.testing.assert_array_equal(getattr(noisy, name), getattr(quiet, name))


@pytest.mark.parametrize("n", [2, 4, 10])
def test_true_values_solve_the_bellman_equation(n):
    values = true_values(n)
    env = BlindCliffwalk(n)
    for state, action in itertools.product(range(n), range(2)):
        env.reset()
        env.state = state
        _, reward, terminated, _, _ = env.step(action)
        following = 0.0 if terminated else values[env.state].max()
        assert values[state, action] == pytest.approx(reward + (1 - 1 / n) * following)


# The environment --------------------------------------------------------------------------------


def test_gymnasium_accepts_the_environment():
    check_env(gym.make(ENV, n=5).unwrapped, skip_render_check=True)


def test_the_name_alone_is_enough_where_nothing_is_imported():
    code = f"import gymnasium as g; print(g.make('per_tutorial.experiments.blind_cliffwalk:{ENV}', n=3).spec.id)"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == ENV


def test_the_module_loads_without_torch_and_matplotlib():
    code = "import per_tutorial.experiments.blind_cliffwalk, per_tutorial.experiments.cliffwalk_figures, sys; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert {"torch", "matplotlib", "IPython"}.isdisjoint(shown.stdout.split())


def test_an_episode():
    env = gym.make(ENV, n=3, render_mode="ansi")
    observation, _ = env.reset()
    assert observation.tolist() == [1, 0, 0]
    assert env.render() == "●○○"
    assert env.step(0)[1:4] == (0.0, False, False)
    assert env.render() == "○●○"
    env.step(1)
    assert env.step(0)[1:4] == (1.0, True, False)
    env.reset()
    assert env.step(1)[1:4] == (0.0, True, False)


# Learning, against a plain Python twin ----------------------------------------------------------


class Twin:
    """The learner as slow as it is plain: lists, loops, and the sampler's choice told from outside."""

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


@pytest.mark.parametrize("sampler", ["uniform", "proportional", "rank"])
def test_one_run_in_pieces_is_the_same_run(sampler):
    whole, pieces = (CliffwalkLearner(6, sampler, seed=2) for _ in range(2))
    whole.run(700)
    for updates in (1, 99, 600):
        pieces.run(updates)
    np.testing.assert_array_equal(whole.theta, pieces.theta)
    np.testing.assert_array_equal(whole.replayed, pieces.replayed)


@pytest.mark.parametrize("linear", [False, True])
def test_the_oracle_is_the_fastest_and_uniform_the_slowest(linear):
    updates = {name: median_updates(8, name, linear=linear) for name in SAMPLERS}
    assert updates["oracle"] == min(updates.values())
    assert updates["uniform"] == max(updates.values())


def test_the_oracle_needs_what_the_paper_needs():
    for x in (254, 1022, 4094):
        n = (x + 2).bit_length() - 1
        ratio = median_updates(n, "oracle") / study.PAPER["tabular", "oracle"][x]
        assert 1 / 1.1 < ratio < 1.1


def test_greedy_needs_a_random_start():
    # Footnote 2: from zero, a transition without error sinks, and nothing lifts it again.
    stuck = {}
    for scale in (0.0, 0.1):
        learners = [CliffwalkLearner(8, "greedy", initial_scale=scale, seed=s) for s in range(30)]
        stuck[scale] = sum(learner.run(20_000) == 20_000 for learner in learners)
    assert stuck[0.1] == 0 < 5 < stuck[0.0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 1}, ValueError, "n: must be at least 2"),
        ({"n": 3.0}, TypeError, "n: must be an integer"),
        ({"sampler": "random"}, ValueError, "sampler: must be one of 'uniform', 'greedy'"),
        ({"alpha": 2}, ValueError, r"alpha: must be in \[0, 1\]"),
        ({"priority_epsilon": 0}, ValueError, "priority_epsilon: must be greater than 0"),
        ({"noise": -1}, ValueError, "noise"),
        ({"step_size": 0}, ValueError, "step_size: must be greater than 0"),
        ({"seed": -1}, ValueError, "seed: must be at least 0"),
    ],
)
def test_settings_that_make_no_sense(options, error, message):
    with pytest.raises(error, match=message):
        CliffwalkLearner(**{"n": 4, "sampler": "rank", **options})


# The study --------------------------------------------------------------------------------------


def test_the_study_continues_where_it_stopped(tmp_path):
    path = tmp_path / "results.csv"
    measured = []
    study.run_study(path, longest=2, progress=measured.append)
    assert measured == study.points(2)
    more = []
    rows = study.run_study(path, longest=3, progress=more.append)
    assert set(more) == set(study.points(3)) - set(measured)
    assert study.load_results(path) == rows
    assert len(rows) == study.RUNS * len(study.points(3))


def test_a_study_stopped_in_the_middle_loses_one_point(tmp_path):
    path = tmp_path / "results.csv"

    def stop_at_third(point, seen=[]):  # noqa: B006  (it counts)
        seen.append(point)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run_study(path, longest=3, progress=stop_at_third)
    assert len(study.load_results(path)) == 2 * study.RUNS


def test_results_of_other_settings_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "results.csv"
    study.run_study(path, longest=2)
    monkeypatch.setitem(study.SETTINGS, "step_size", 0.5)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="was made with"):
        study.run_study(path, longest=3)
    assert path.read_bytes() == before


def test_damaged_results_are_named(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("nothing")
    with pytest.raises(ValueError, match="holds no results"):
        study.load_results(path)


def test_the_shipped_results_are_complete_and_what_the_code_gives():
    rows = study.load_results()
    assert {study._key(row) for row in rows} == set(study.points())
    for row in rows[:: len(rows) // 40]:
        if row["n"] <= 9:
            again = study.measure(study._key(row), row["run"])
            assert again["updates"] == row["updates"]


@pytest.mark.parametrize(
    "series",
    [("tabular", "greedy"), ("tabular", "oracle"), ("linear", "uniform"), ("linear", "oracle")],
)
def test_medians_are_within_one_and_a_half_times_the_papers(series):
    # Where the paper leaves no choice of α, with its axis read as 2^n − 2 transitions. Tabular uniform
    # replay is not among them: it needs up to 1.8 times the paper's updates.
    halves = [
        half
        for *which, _, _, _, _, half in study.ratios(study.load_results())
        if tuple(which) == series
    ]
    measured = [half for half in halves if half == half]  # walks of 17 states are not
    assert len(measured) >= 5
    assert all(1 / 1.5 < half < 1.5 for half in measured)


def test_the_command_prints_the_table_and_draws(tmp_path, capsys):
    out = tmp_path / "walk.csv"
    main(["cliffwalk", "--longest", "5", "--out", str(out), "--quiet"])
    table = capsys.readouterr().out
    assert "2^(n+1)−2" in table and "tabular" in table
    assert (tmp_path / "walk.csv.png").read_bytes().startswith(b"\x89PNG")
