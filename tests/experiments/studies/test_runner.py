"""Studies run: stopped, continued and refused; what their files hold."""

import dataclasses
import io
import multiprocessing
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from plain_dqn import DoublePrecisionLearner
from platforms import posix_only
from small_study import CONFIG, STACKS, STUDY, contents, rows_of, with_heading

from per_tutorial.__main__ import main
from per_tutorial.common.data import data_folder
from per_tutorial.common.provenance import versions
from per_tutorial.dqn import training
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.experiments.studies import runner
from per_tutorial.experiments.studies.declared import STUDIES
from per_tutorial.experiments.studies.results import load_study, report
from per_tutorial.experiments.studies.runner import run_study
from per_tutorial.experiments.studies.sb3.settings import LIBRARY
from per_tutorial.experiments.studies.study import EVALUATION_EPISODES, Study

ROOT = Path(__file__).parents[3]


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    (copied / "small" / ".per.seeds-2-3.csv.cut8short").write_text(
        '# {"study": "small", "ar', encoding="utf-8"
    )
    calls = []
    run_study(STUDY, copied, progress=lambda *counts: calls.append(counts))
    assert trained == [("proportional", [2, 3])]
    assert calls == [(1800, 2400), (2400, 2400)]
    assert rows_of(copied / "small.csv.gz") == before


@pytest.mark.slow
def test_more_seeds_and_arms_continue_what_is_there(copied, trained):
    study = dataclasses.replace(
        STUDY, seeds=range(5), arms=STUDY.arms | {"other": CONFIG.replace(double=True)}
    )
    results = run_study(study, copied)
    new_arm = [("uniform", [0, 1]), ("uniform", [2, 3]), ("uniform", [4])]
    assert trained == [("uniform", [4]), ("proportional", [4]), *new_arm]
    assert (results.seeds, list(results.arms)) == ([*range(5)], ["uniform", "per", "other"])


KILLED = "hundred-runs"


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    with redirect_stdout(io.StringIO()):
        main(["study", KILLED, "--fast", "--quiet", "--processes", "1", "--out", str(folder)])
    return folder


@posix_only
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
    "with the agents saved": (runner, "write_table", 1),
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    with pytest.raises(
        ValueError, match="no environment 'Cartpole-v1', did you mean 'CartPole-v1'"
    ):
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
    with pytest.raises(
        ValueError, match=r"made with curves = \['q_value'\], not \['loss'\]; choose"
    ):
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
        lambda heading: heading["settings"].update(nesterov=0.9),
    )
    with pytest.raises(ValueError, match="made with nesterov = 0.9, not None"):
        run_study(STUDY, copied)


def test_a_setting_that_never_was_is_refused(copied):
    with_heading(
        copied / "small" / "per.seeds-0-1.csv",
        lambda heading: heading["settings"].update(nesterov=None),
    )
    with pytest.raises(ValueError, match="made with nesterov = None"):
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


@pytest.mark.parametrize("processes, exception", [(0, ValueError), (1.5, TypeError)])
def test_a_wrong_number_of_processes_is_refused(processes, exception, tmp_path):
    with pytest.raises(exception, match="processes: must be"):
        run_study(STUDY, tmp_path, processes=processes)
    assert contents(tmp_path) == {}


# Files of version 0.1.0


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(data_folder().glob("*.csv.gz")), ids=lambda path: path.name)
def test_shipped_results_are_not_refused_as_those_of_other_settings(path, tmp_path):
    results = load_study(path.name.removesuffix(".csv.gz"))
    shutil.copy(path, tmp_path)
    made_with = results.facts["stacks"][0].get(LIBRARY)
    if made_with is not None and made_with != versions(LIBRARY).get(LIBRARY):
        pytest.skip(f"its runs need Stable-Baselines3 {made_with}")
    study = STUDIES[results.facts["study"]].on(next(iter(results.arms.values()))["device"])
    killed(study, tmp_path, runner, "_train", 1)  # it got as far as that


def test_stacks_of_version_0_1_0_count_as_done(tmp_path, trained):
    """A fast study that version 0.1.0 trained: its stacks, without the file that collects them."""
    study = STUDIES["hundred-runs"].fast()
    shutil.copytree(ROOT / "tests" / "data" / f"{study.name}-0.1.0", tmp_path / study.name)
    results = run_study(study, tmp_path)
    assert trained == []
    assert results.arms.keys() == study.arms.keys()
    assert results.seeds == [0, 1, 2]
    np.testing.assert_allclose(results.scores("per"), [27.8, 18.6, 17.3], atol=0.05)
    assert report(results)
