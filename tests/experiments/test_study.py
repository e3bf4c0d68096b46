"""Studies: stopped, continued and refused; what their files hold; what is declared and shipped."""

import dataclasses
import gzip
import io
import json
import multiprocessing
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path, PurePath

import numpy as np
import pytest
from plain_dqn import DoublePrecisionLearner

from per_tutorial.__main__ import main
from per_tutorial.dqn import training
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.experiments import estimates as statistics
from per_tutorial.experiments import study as study_module
from per_tutorial.experiments.studies import NETWORKS, STUDIES
from per_tutorial.experiments.study import (
    EVALUATION_EPISODES,
    GRID_POINTS,
    SHIPPED,
    Study,
    StudyResults,
    load_study,
    report,
    run_study,
)

ROOT = Path(__file__).parents[1]
CONFIG = DQNConfig(
    steps=300, hidden=(8,), batch_size=4, learning_starts=20, epsilon_steps=100, max_episode_steps=20
)
STUDY = Study(
    name="small",
    question="Which is better?",
    arms={"uniform": CONFIG, "per": CONFIG.replace(sampler="proportional", alpha=0.5)},
    comparisons=(("per", "uniform"),),
    metric="score over training",
    failed_below=12,
    seeds=range(4),
    stack=2,
    episodes=40,
)
STACKS = ["per.seeds-0-1", "per.seeds-2-3", "uniform.seeds-0-1", "uniform.seeds-2-3"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished study: its folder, `StudyResults`, and what its progress was called with."""
    folder, calls = tmp_path_factory.mktemp("study") / "not" / "yet", []
    results = run_study(STUDY, folder, progress=lambda *counts: calls.append(counts))
    return folder, results, calls


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the folder of a finished study, to do harm to."""
    for name, content in contents(finished[0]).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def trained(monkeypatch):
    """The (sampler, seeds) of every training, as they happen."""
    calls, train = [], training.train

    def noted(config, seeds, **options):
        calls.append((config.sampler, list(seeds)))
        return train(config, seeds, **options)

    monkeypatch.setattr(training, "train", noted)
    return calls


def contents(folder):
    """Everything in a folder, {path: bytes}."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def rows_of(path):
    """The lines of a collected file, without the heading, which holds durations."""
    return gzip.decompress(path.read_bytes()).decode().splitlines()[1:]


def with_heading(path, change):
    """Write a stack's file anew with another heading."""
    first, rest = path.read_text().split("\n", 1)
    heading = json.loads(first.removeprefix("# "))
    change(heading)
    path.write_text(f"# {json.dumps(heading)}\n{rest}")


# What a study leaves


def test_every_stack_is_a_file_and_all_of_them_are_one(finished):
    folder, _, calls = finished
    assert sorted(contents(folder)) == ["small.csv.gz", *(f"small/{one}.csv" for one in STACKS)]
    assert calls == [(done, 2400) for done in (0, 600, 1200, 1800, 2400)]


def test_the_heading_tells_what_the_runs_were_made_with(finished):
    facts = finished[1].facts
    for name in ("question", "metric", "failed_below"):
        assert facts[name] == getattr(STUDY, name)
    assert (facts["study"], facts["comparisons"]) == ("small", [["per", "uniform"]])
    assert [(stack["arm"], stack["seeds"]) for stack in facts["stacks"]] == STUDY.stacks
    for stack in facts["stacks"]:
        assert DQNConfig(**stack["settings"]) == STUDY.arms[stack["arm"]]
        assert stack["python"] == platform.python_version()
        for package in ("torch", "numpy", "numba", "gymnasium"):
            assert stack[package] == version(package)
        assert stack["processor"]
        assert stack["seconds"] > 0
    assert facts["seconds"] == pytest.approx(sum(one["seconds"] for one in facts["stacks"]))
    assert finished[1].arms == STUDY.arms
    assert finished[1].seeds == list(STUDY.seeds)
    assert finished[1].comparisons == [("per", "uniform")]


@pytest.mark.parametrize("arm", STUDY.arms)
def test_the_values_are_those_of_the_trainings(finished, arm):
    results = finished[1]
    for seeds in ([0, 1], [2, 3]):
        history = training.train(STUDY.arms[arm], seeds)
        grid, score = results.curve(arm)
        assert grid.tolist() == list(range(12, 301, 6))  # no episode ends within 6 steps
        np.testing.assert_allclose(score[:, seeds], history.learning_curve(grid), rtol=1e-4)
        grid, q_value = results.curve(arm, "q_value")
        assert grid.tolist() == list(range(24, 301, 6))  # the first update is at step 20
        rows = [history.log_steps.index(step) for step in grid]
        np.testing.assert_allclose(q_value[:, seeds], history.measure("q_value")[rows], rtol=1e-4)
        greedy = training.evaluate(history.agent, EVALUATION_EPISODES).mean(axis=1)
        np.testing.assert_allclose(results.scores(arm, "greedy score")[seeds], greedy, rtol=1e-4)
        for seed in seeds:
            returns = history.returns(seed - seeds[0])[1]
            at, after = results.curve(arm, "score after episodes")
            whole = [count for count in (20, 40) if len(returns) >= count]
            assert whole == at[np.isfinite(after[:, seed])].tolist()
            expected = [returns[count - 20 : count].mean() for count in whole]
            np.testing.assert_allclose(after[: len(whole), seed], expected, rtol=1e-4)
    np.testing.assert_allclose(results.scores(arm), np.nanmean(score, axis=0))


def test_a_training_shorter_than_the_grid_has_a_value_at_every_step(tmp_path):
    study = dataclasses.replace(
        STUDY, arms={"one": CONFIG.replace(steps=30)}, comparisons=(), seeds=range(2)
    )
    results = run_study(study, tmp_path)
    grid, q_value = results.curve("one", "q_value")
    assert grid.tolist() == list(range(20, 31))
    assert np.isfinite(q_value).all()
    assert results.curve("one")[0].max() == 30


def test_the_declared_curves_are_kept_and_no_others(tmp_path):
    arms = {"per": STUDY.arms["per"]}
    curves = {"curves": ("loss", "held_out_q"), "episodes": None}
    study = dataclasses.replace(STUDY, arms=arms, comparisons=(), seeds=range(2), **curves)
    results = run_study(study, tmp_path)
    history = training.train(arms["per"], [0, 1])
    for name in ("loss", "held_out_q"):
        grid, values = results.curve("per", name)
        assert grid.tolist() == list(range(24, 301, 6))
        rows = [history.log_steps.index(step) for step in grid]
        np.testing.assert_allclose(values, history.measure(name)[rows], rtol=1e-4)
    with pytest.raises(ValueError, match="one of 'score', 'loss', 'held_out_q', 'greedy', got"):
        results.curve("per", "q_value")


# A run depends on its own seed alone


def test_the_stacks_do_not_matter(tmp_path, monkeypatch):
    """But for rounding, hence 64 bits; the values in the files have five digits."""
    monkeypatch.setattr(training, "DQNLearner", DoublePrecisionLearner)
    arms = {"per": STUDY.arms["per"]}
    rows = []
    for stack in (1, 3):
        folder = tmp_path / str(stack)
        run_study(dataclasses.replace(STUDY, arms=arms, comparisons=(), stack=stack), folder)
        lines = [line.rsplit(",", 1) for line in rows_of(folder / "small.csv.gz")[1:]]
        rows.append({key: float(value) for key, value in lines})
    assert rows[0].keys() == rows[1].keys()
    np.testing.assert_allclose(list(rows[0].values()), list(rows[1].values()), rtol=1e-4)


# Stopped and continued


def test_what_is_finished_is_not_trained_again(copied, trained):
    before, calls = contents(copied), []
    run_study(STUDY, copied, progress=lambda *counts: calls.append(counts))
    assert trained == []
    assert calls == [(2400, 2400)]
    assert contents(copied) == before


def test_only_what_is_missing_is_trained(copied, trained):
    before = rows_of(copied / "small.csv.gz")
    (copied / "small" / "per.seeds-2-3.csv").unlink()
    (copied / "small.csv.gz").unlink()
    (copied / "small" / ".per.seeds-2-3.csv.cut8short").write_text('# {"study": "small", "ar')
    calls = []
    run_study(STUDY, copied, progress=lambda *counts: calls.append(counts))
    assert trained == [("proportional", [2, 3])]
    assert calls == [(1800, 2400), (2400, 2400)]
    assert rows_of(copied / "small.csv.gz") == before


def test_more_seeds_and_arms_continue_what_is_there(copied, trained):
    study = dataclasses.replace(
        STUDY, seeds=range(5), arms=STUDY.arms | {"other": CONFIG.replace(double=True)}
    )
    results = run_study(study, copied)
    new_arm = [("uniform", [0, 1]), ("uniform", [2, 3]), ("uniform", [4])]
    assert trained == [("uniform", [4]), ("proportional", [4]), *new_arm]
    assert (results.seeds, list(results.arms)) == ([*range(5)], ["uniform", "per", "other"])


KILLED = "beta-schedules"


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    with redirect_stdout(io.StringIO()):
        main(["study", KILLED, "--fast", "--quiet", "--processes", "1", "--out", str(folder)])
    return folder


@pytest.mark.slow
def test_a_killed_study_continues_to_the_same_results(uninterrupted, tmp_path, trained, capsys):
    """Killed while two processes train, which end as well; continued by a single one."""
    parts, total = tmp_path / f"{KILLED}-fast", len(STUDIES[KILLED].fast().stacks)
    command = [sys.executable, "-m", "per_tutorial", "study", KILLED, "--fast", "--quiet"]
    process = subprocess.Popen(
        [*command, "--processes", "2", "--out", str(tmp_path)],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while not list(parts.glob("*.csv")):
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with pytest.raises(ProcessLookupError):
        for _ in range(6000):
            os.killpg(process.pid, 0)  # its workers have not ended yet
            time.sleep(0.02)

    kept = contents(parts)
    finished_stacks = sum(not name.startswith(".") for name in kept)
    assert 1 <= finished_stacks < total
    main(["study", KILLED, "--fast", "--quiet", "--processes", "1", "--out", str(tmp_path)])
    assert len(trained) == total - finished_stacks
    assert contents(parts).items() >= kept.items()
    collected = f"{KILLED}-fast.csv.gz"
    assert rows_of(tmp_path / collected) == rows_of(uninterrupted / collected)


# Killed inside a stack

LONG = dataclasses.replace(STUDY, name="long", seeds=range(2), checkpoint_every=70)


class Killed(BaseException):
    """The process ends here."""


def killed(study, folder, owner, name, call):
    """Run a study that is killed at a call of a function, the first one counted as 1."""
    calls, function = [], getattr(owner, name)

    def dying(*args, **options):
        calls.append(None)
        if len(calls) == call:
            raise Killed
        return function(*args, **options)

    with pytest.MonkeyPatch.context() as patched, pytest.raises(Killed):
        patched.setattr(owner, name, dying)
        run_study(study, folder)


MOMENTS = {
    "before the first checkpoint": (Checkpoints, "save_if_due", 60),
    "in the middle of a stack": (Checkpoints, "save_if_due", 200),
    "with all steps done": (DQNLearner, "save", 1),
    "with the agents saved": (study_module, "atomic_write", 1),
    "with only the checkpoints to remove": (shutil, "rmtree", 1),
}
CONTINUED = list(MOMENTS)[1:4]


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unkilled")
    run_study(LONG, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_stack_continues_to_the_same_results_and_agents(moment, unkilled, tmp_path):
    killed(LONG, tmp_path, *MOMENTS[moment])
    left = [path.name for path in tmp_path.rglob("step-*.npz")]
    assert bool(left) == (moment != "before the first checkpoint")
    facts = run_study(LONG, tmp_path).facts
    assert rows_of(tmp_path / "long.csv.gz") == rows_of(unkilled / "long.csv.gz")
    assert [stack["continued"] for stack in facts["stacks"]] == [moment in CONTINUED, False]
    files = ("per.csv", "per.safetensors", "uniform.csv", "uniform.safetensors")
    files = [name.replace(".", ".seeds-0-1.") for name in files]
    assert sorted(path.name for path in (tmp_path / "long").iterdir()) == files
    for arm, config in LONG.arms.items():
        agent = DQNLearner.load(tmp_path / "long" / f"{arm}.seeds-0-1.safetensors")
        assert (agent.config, agent.seeds) == (config, [0, 1])
        expected = training.train(config, [0, 1]).agent.online.state_dict()
        for name, tensor in agent.online.state_dict().items():
            np.testing.assert_array_equal(tensor, expected[name])


def test_checkpoints_do_not_change_the_results(finished, tmp_path):
    run_study(dataclasses.replace(LONG, name="small", seeds=STUDY.seeds), tmp_path)
    assert rows_of(tmp_path / "small.csv.gz") == rows_of(finished[0] / "small.csv.gz")


def test_a_checkpoint_made_with_other_settings_is_refused(tmp_path):
    killed(LONG, tmp_path, *MOMENTS["in the middle of a stack"])
    arms = {name: config.replace(double=True) for name, config in LONG.arms.items()}
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="folder: .* was made with double = False, not True"):
        run_study(dataclasses.replace(LONG, arms=arms), tmp_path)
    assert contents(tmp_path) == before


def test_an_error_in_a_process_surfaces_and_stops_the_others(tmp_path):
    """At once: the other arm would need minutes."""
    slow = CONFIG.replace(steps=300_000)
    study = Study(
        name="broken",
        question="",
        arms={"slow": slow, "wrong": slow.replace(env="Cartpole-v1")},
        comparisons=(),
        metric="greedy score",
        failed_below=0,
        seeds=range(2),
        stack=2,
    )
    with pytest.raises(ValueError, match="no environment 'Cartpole-v1', did you mean 'CartPole-v1'"):
        run_study(study, tmp_path, processes=2)
    assert multiprocessing.active_children() == []
    assert not list(tmp_path.rglob("*.csv*"))


# Refused


def other(**changes):
    """The study with another second arm."""
    arms = STUDY.arms | {"per": STUDY.arms["per"].replace(**changes)}
    return dataclasses.replace(STUDY, arms=arms)


OTHERS = [
    (other(alpha=0.6), "alpha = 0.5, not 0.6"),
    (other(hidden=(8, 8)), "hidden = [8], not [8, 8]"),
    (other(terminal_reward=-1), "terminal_reward = None, not -1.0"),
    (
        other(double=True, sampler="uniform"),
        "double = False, not True; sampler = 'proportional', not 'uniform'",
    ),
]


@pytest.mark.parametrize("study, difference", OTHERS, ids=[difference for _, difference in OTHERS])
@pytest.mark.parametrize("lost", ["nothing", "the stacks", "the collected file"])
def test_other_settings_are_refused_and_nothing_is_touched(
    study, difference, lost, copied, trained
):
    if lost == "the stacks":
        for path in (copied / "small").iterdir():
            path.unlink()
    elif lost == "the collected file":
        (copied / "small.csv.gz").unlink()
    before = contents(copied)
    with pytest.raises(ValueError) as caught:
        run_study(study, copied)
    message = str(caught.value)
    assert message.startswith("folder: ")
    assert f"was made with {difference}; choose another folder" in message
    if lost == "the collected file":
        assert str(copied / "small" / "per.seeds-0-1.csv") in message
    assert trained == []
    assert contents(copied) == before


def test_other_measurements_are_refused(copied):
    with pytest.raises(ValueError, match="made with episodes = 40, not None; choose"):
        run_study(dataclasses.replace(STUDY, episodes=None), copied)
    with pytest.raises(ValueError, match=r"made with curves = \['q_value'\], not \['loss'\]; choose"):
        run_study(dataclasses.replace(STUDY, curves=("loss",)), copied)


def test_a_stack_under_another_name_is_refused(copied):
    (copied / "small" / "per.seeds-0-1.csv").rename(copied / "small" / "per.seeds-2-3.csv")
    with pytest.raises(ValueError, match=r"made with seeds = \[0, 1\], not \[2, 3\]; choose"):
        run_study(STUDY, copied)


def test_a_setting_newer_than_a_file_had_its_default(copied, trained):
    (copied / "small.csv.gz").unlink()
    for path in (copied / "small").iterdir():
        with_heading(path, lambda heading: heading["settings"].pop("beta_schedule"))
        with_heading(path, lambda heading: heading.pop("curves"))
    assert run_study(STUDY, copied).arms == STUDY.arms
    assert trained == []
    assert load_study("small", copied).arms == STUDY.arms
    with pytest.raises(ValueError, match="beta_schedule = 'linear', not 'compounding'"):
        run_study(other(beta_schedule="compounding"), copied)
    with pytest.raises(ValueError, match=r"curves = \['q_value'\], not \['q_value', 'loss'\]"):
        run_study(dataclasses.replace(STUDY, curves=("q_value", "loss")), copied)


def test_a_setting_that_is_no_longer_there_is_refused(copied):
    with_heading(
        copied / "small" / "per.seeds-0-1.csv",
        lambda heading: heading["settings"].update(momentum=0.9),
    )
    with pytest.raises(ValueError, match="made with momentum = 0.9, not None"):
        run_study(STUDY, copied)


DAMAGE = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "the last digit": lambda data: data[:-2],
    "the last line": lambda data: data[: data.rindex(b"\n", 0, -1) + 1],
    "no heading": lambda data: data.partition(b"\n")[2],
    "another heading": lambda data: b"# [1, 2]\n" + data.partition(b"\n")[2],
    "other columns": lambda data: data.replace(b"measure", b"quantity", 1),
    "no text": lambda data: data + b"\xff\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_stack_is_named(damage, copied, trained):
    path = copied / "small" / "uniform.seeds-2-3.csv"
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    before = contents(copied)
    with pytest.raises(ValueError) as caught:
        run_study(STUDY, copied)
    assert f"{str(path)!r} holds no results" in str(caught.value)
    assert trained == []
    assert contents(copied) == before


def test_a_damaged_collected_file_is_named_wherever_it_is_hit(copied):
    path = copied / "small.csv.gz"
    data = path.read_bytes()
    damaged = [data[:length] for length in range(0, len(data), 97)]
    for place in range(10, len(data), 97):  # behind the header, which carries nothing of ours
        damaged.append(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
    for one in damaged:
        path.write_bytes(one)
        with pytest.raises(ValueError) as caught:
            load_study("small", copied)
        assert f"{str(path)!r} holds no results" in str(caught.value)


def test_an_unknown_study_is_told_which_there_are(copied):
    with pytest.raises(ValueError, match="name: no results of a study 'smal', there are small$"):
        load_study("smal", copied)
    with pytest.raises(ValueError, match="name: no results of a study 'any', there are none"):
        load_study("any", copied / "nowhere")


@pytest.mark.parametrize("processes, exception", [(0, ValueError), (1.5, TypeError)])
def test_a_wrong_number_of_processes_is_refused(processes, exception, tmp_path):
    with pytest.raises(exception, match="processes: must be"):
        run_study(STUDY, tmp_path, processes=processes)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    "changes, exception, message",
    [
        ({"metric": "luck"}, ValueError, "metric: must be one of 'score over training', 'greedy"),
        ({"stack": 0}, ValueError, "stack: must be at least 1, got 0"),
        ({"failed_below": "475"}, TypeError, "failed_below: must be a number, got '475'"),
        ({"episodes": 19}, ValueError, "episodes: must be at least 20, got 19"),
        ({"curves": ("q_values",)}, ValueError, "curves: must be one of 'eps.*, got 'q_values'"),
        ({"checkpoint_every": 0}, ValueError, "checkpoint_every: must be at least 1, got 0"),
        ({"seeds": range(1)}, ValueError, r"seeds: .* at least two, got range\(0, 1\)"),
        ({"name": "a study"}, ValueError, "name, arms: must be of a–z.*, got 'a study'"),
        ({"name": "../up"}, ValueError, "name, arms: must be of a–z.*, got '../up'"),
        ({"arms": {"Uniform": CONFIG}}, ValueError, "name, arms: must be .*, got 'Uniform'"),
        ({"arms": {}}, ValueError, r"arms: .* the same number of steps, got \[\]"),
        (
            {"arms": STUDY.arms | {"short": CONFIG.replace(steps=150)}},
            ValueError,
            r"arms: must all have the same number of steps, got \[150, 300\]",
        ),
        (
            {"comparisons": (("per", "unifrom"),)},
            ValueError,
            "comparisons: must be one of 'uniform', 'per', got 'unifrom'",
        ),
    ],
)
def test_a_study_that_does_not_fit_together(changes, exception, message):
    with pytest.raises(exception, match=message):
        dataclasses.replace(STUDY, **changes)


# Results


def results_of(*rows, seeds=(3, 5, 9), metric="score over training"):
    """Results of two arms, made of (arm, seed, measure, at, value)."""
    settings = {"steps": 100}
    stacks = [{"arm": arm, "seeds": list(seeds), "settings": settings} for arm in ("a", "b")]
    facts = {"stacks": stacks, "metric": metric, "comparisons": [["a", "b"]]}
    return StudyResults(facts, [tuple(map(str, row)) for row in rows])


def test_runs_are_paired_by_their_seeds_in_whatever_order_they_were_written():
    results = results_of(
        *(("a", seed, "greedy", 100, 10 * seed) for seed in (9, 3, 5)),
        *(("b", seed, "greedy", 100, seed) for seed in (5, 9, 3)),
    )
    assert results.scores("a", "greedy score").tolist() == [30, 50, 90]
    assert results.scores("b", "greedy score").tolist() == [3, 5, 9]


def test_a_curve_is_nan_where_a_run_has_nothing_to_tell_and_shares_its_grid_with_all_arms():
    results = results_of(
        ("a", 3, "score", 50, 1), ("a", 3, "score", 100, 2), ("a", 9, "score", 100, 4),
        ("b", 5, "score", 100, 7), ("b", 5, "q_value", 60, 0.5),
    )  # fmt: skip
    nan = np.nan
    grid, curve = results.curve("a")
    assert grid.tolist() == [50, 100]
    np.testing.assert_array_equal(curve, [[1, nan, nan], [2, nan, 4]])
    grid, curve = results.curve("b")
    assert grid.tolist() == [50, 100]
    np.testing.assert_array_equal(curve, [[nan, nan, nan], [nan, 7, nan]])
    np.testing.assert_array_equal(results.curve("a", "q_value")[1], [[nan, nan, nan]])
    with pytest.warns(RuntimeWarning, match="empty slice"):
        np.testing.assert_array_equal(results.scores("a"), [1.5, nan, 4])


def test_the_declared_metric_is_the_one_that_counts_unless_another_is_asked_for():
    rows = [("a", seed, "score", at, at * seed) for at in (50, 100) for seed in (3, 5, 9)]
    rows += [("a", seed, "greedy", 100, -seed) for seed in (3, 5, 9)]
    training_scores, greedy_scores = [225, 375, 675], [-3, -5, -9]
    declared = results_of(*rows)
    assert declared.scores("a").tolist() == training_scores
    assert declared.scores("a", "greedy score").tolist() == greedy_scores
    declared = results_of(*rows, metric="greedy score")
    assert declared.scores("a").tolist() == greedy_scores
    assert declared.scores("a", "score over training").tolist() == training_scores


def test_what_results_do_not_have_is_refused_with_what_they_have(finished):
    results = finished[1]
    with pytest.raises(ValueError, match="arm: must be one of 'uniform', 'per', got 'rank'"):
        results.curve("rank")
    with pytest.raises(ValueError, match="arm: must be one of 'uniform', 'per', got 'rank'"):
        results.scores("rank")
    with pytest.raises(ValueError, match="measure: must be one of 'score', .*, got 'loss'"):
        results.curve("per", "loss")
    with pytest.raises(ValueError, match="metric: must be one of 'score over.*, got 'greedy'"):
        results.scores("per", "greedy")


def test_the_report_has_every_arm_and_every_comparison_with_their_intervals(finished):
    results = finished[1]
    heading, *arms, title, comparison = report(results).splitlines()
    assert heading == "score over training, 4 runs an arm, 95 % intervals"
    scores = {arm: results.scores(arm) for arm in STUDY.arms}
    for arm, line in zip(STUDY.arms, arms, strict=True):
        assert line.startswith(f"{arm} ")
        for name, estimate in statistics.summary(scores[arm]).items():
            value, low, high = (f"{number:.1f}" for number in estimate)
            assert f"{name} {value} [{low}, {high}]" in " ".join(line.split())
        greedy = results.scores(arm, "greedy score")
        assert f"failed {(greedy < 12).mean():.0%} [" in " ".join(line.split())
    assert title.startswith("paired differences")
    difference = statistics.paired_difference(scores["per"], scores["uniform"])
    better = statistics.probability_of_improvement(scores["per"], scores["uniform"])
    shown = [f"{value:+.1f} [{low:+.1f}, {high:+.1f}]" for value, low, high in [difference]]
    shown += [f"P(better) {value:.2f} [{low:.2f}, {high:.2f}]" for value, low, high in [better]]
    assert " ".join(comparison.split()) == f"per − uniform {' '.join(shown)}"


# The declared studies


def differences(study, pair):
    """The settings in which two arms differ."""
    one, other = (dataclasses.asdict(study.arms[arm]) for arm in pair)
    return {name for name in one if one[name] != other[name]}


@pytest.mark.parametrize("name", STUDIES)
def test_a_declared_study_is_whole(name):
    study = STUDIES[name]
    assert study.name == name
    assert study.question.endswith("?")
    assert set(study.arms) == {arm for pair in study.comparisons for arm in pair}
    assert len(set(study.comparisons)) == len(study.comparisons)
    for pair in study.comparisons:
        assert differences(study, pair), pair
    assert len(study.seeds) >= {"long-cartpole": 10, "pong": 3}.get(name, 30)
    assert {seed for _, seeds in study.stacks for seed in seeds} == set(study.seeds)
    assert len(study.stacks) == len(set(map(str, study.stacks)))


@pytest.mark.parametrize("name", STUDIES)
def test_its_fast_form_is_the_same_study_but_small(name):
    study, fast = STUDIES[name], STUDIES[name].fast()
    assert fast.name not in STUDIES  # so that its files never mix with those of the study
    for field in ("question", "comparisons", "metric", "failed_below", "episodes", "curves"):
        assert getattr(fast, field) == getattr(study, field)
    assert list(fast.arms) == list(study.arms)
    assert len(fast.seeds) > fast.stack > 1
    for arm, config in fast.arms.items():
        assert config.steps <= 500 and config.learning_starts < config.steps
        changed = config.replace(**{field: getattr(study.arms[arm], field) for field in SIZES})
        assert changed == study.arms[arm]
    for pair in study.comparisons:
        assert differences(fast, pair) == differences(study, pair)


SIZES = ("steps", "max_episode_steps", "hidden", "learning_starts")


@pytest.mark.slow
def test_the_fast_form_of_pong_runs(tmp_path, monkeypatch):
    """One arm of it, with few updates, and few games: every emulator takes a while to start."""
    pytest.importorskip("ale_py")
    pytest.importorskip("cv2")
    monkeypatch.setattr(study_module, "EVALUATION_EPISODES", 2)
    fast = STUDIES["pong"].fast()
    arms = {"per": fast.arms["per"].replace(learning_starts=400)}
    study = dataclasses.replace(fast, arms=arms, comparisons=(), seeds=range(2))
    results = run_study(study, tmp_path)
    for measure in ("score", *study.curves, "greedy"):
        grid, values = results.curve("per", measure)
        assert grid[-1] == study.arms["per"].steps
        assert np.isfinite(values).all()
    assert np.isfinite(results.scores("per")).all()
    assert DQNLearner.load(tmp_path / study.name / "per.seeds-0-1.safetensors").seeds == [0, 1]


def test_a_study_moves_to_another_device_with_nothing_else_changed():
    moved = STUDY.on("cuda")
    assert {config.device for config in moved.arms.values()} == {"cuda"}
    assert moved.on("cpu") == STUDY


@pytest.mark.parametrize("name", [name for name in STUDIES if name.startswith("ablation")])
def test_the_arms_of_an_ablation_differ_in_what_their_names_say(name):
    study = STUDIES[name]
    rate = study.arms["dqn-uniform"].learning_rate
    for arm, config in study.arms.items():
        network, label, *quarter = arm.split("-")
        switches = {"double": False, "dueling": False} | NETWORKS[network]
        assert (config.double, config.dueling) == (switches["double"], switches["dueling"])
        assert config.sampler == {"per": "proportional"}.get(label, label)
        assert config.learning_rate == (rate / 4 if quarter else rate)
        others = differences(study, (arm, "dqn-uniform"))
        assert others <= {"double", "dueling", "sampler", "learning_rate"}
    for arm, against in study.comparisons:
        assert "uniform" in against and "uniform" not in arm
        both = differences(study, (arm, against))
        assert both == {"sampler"} | ({"learning_rate"} if rate_differs(arm, against) else set())
    for network in NETWORKS:
        assert (f"{network}-per", f"{network}-uniform") in study.comparisons
        if f"{network}-per-quarter" in study.arms:
            for baseline in (f"{network}-uniform-quarter", f"{network}-uniform"):
                assert (f"{network}-per-quarter", baseline) in study.comparisons


def rate_differs(arm, against):
    return arm.endswith("-quarter") != against.endswith("-quarter")


# For the other studies: what a comparison may change at most
PUBLISHED = ("per-published", "uniform-published")
SUBJECTS = {
    "alpha-beta": {"sampler", "alpha", "beta_start", "beta_end"},
    "beta-schedules": {"sampler", "beta_schedule"},
    "hundred-runs": {"sampler"},
    "long-cartpole": {"sampler"},
    "pong": {"sampler"},
}


def test_every_study_is_covered_here():
    assert set(STUDIES) == set(SUBJECTS) | {name for name in STUDIES if "ablation" in name}


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_comparison_changes_its_subject_and_nothing_else(name):
    study = STUDIES[name]
    for pair in study.comparisons:
        if pair == PUBLISHED:  # unequal as it was, in its memory and without weights
            allowed = {"sampler", "capacity", "beta_start", "beta_end"}
            assert (study.arms[pair[0]].beta_start, study.arms[pair[0]].beta_end) == (0, 0)
        else:
            allowed = SUBJECTS[name]
        assert differences(study, pair) <= allowed, pair


def test_every_run_of_the_hundred_finishes_the_episodes_that_are_asked_about():
    study = STUDIES["hundred-runs"]
    for config in study.arms.values():
        assert config.steps // config.max_episode_steps >= study.episodes


# What the package ships


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.csv.gz")), ids=lambda path: path.name)
def test_shipped_results_are_whole_and_those_of_the_declared_study(path):
    study = STUDIES[path.name.removesuffix(".csv.gz")]
    results = load_study(study.name)
    device = next(iter(results.arms.values())).device
    assert results.arms == study.on(device).arms
    assert results.seeds == list(study.seeds)
    assert results.comparisons == list(study.comparisons)
    for name in ("question", "metric", "failed_below"):
        assert results.facts[name] == getattr(study, name)
    stacks = [(stack["arm"], seed) for stack in results.facts["stacks"] for seed in stack["seeds"]]
    assert sorted(stacks) == sorted((arm, seed) for arm in study.arms for seed in study.seeds)
    for arm, config in study.arms.items():
        grid, score = results.curve(arm)
        assert len(grid) <= GRID_POINTS and grid[-1] == config.steps
        assert np.isfinite(score[-1]).all()
        for metric in ("greedy score", study.metric):
            assert np.isfinite(results.scores(arm, metric)).all()
    assert path.stat().st_size < 1_000_000
    assert report(results)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.csv.gz")), ids=lambda path: path.name)
def test_shipped_results_are_not_refused_as_those_of_other_settings(path, tmp_path):
    results = load_study(path.name.removesuffix(".csv.gz"))
    shutil.copy(path, tmp_path)
    study = STUDIES[results.facts["study"]].on(next(iter(results.arms.values())).device)
    killed(study, tmp_path, training, "train", 1)  # it got as far as that


def test_results_are_part_of_the_installed_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = settings["package-data"]["per_tutorial"]
    for name in ("study.csv.gz", *(path.name for path in SHIPPED.iterdir())):
        assert any(PurePath("results", name).match(pattern) for pattern in patterns), name
