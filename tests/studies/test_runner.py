"""Studies run: stopped, continued and refused; what their files hold."""

import dataclasses
import multiprocessing
import os
import platform
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import version

import numpy as np
import pytest
from platforms import posix_only
from small_study import CONFIG, PARTS, STUDY, contents, rows_of

from per_tutorial.__main__ import main
from per_tutorial.dqn import training
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.studies import runner
from per_tutorial.studies.declared import STUDIES
from per_tutorial.studies.runner import run_study
from per_tutorial.studies.study import EVALUATION_EPISODES, Study

# What a study leaves


@pytest.mark.slow
def test_every_part_is_a_file_and_all_of_them_are_one(finished):
    folder, _, calls = finished
    assert sorted(contents(folder)) == ["small.csv.gz", *(f"small/{one}.csv" for one in PARTS)]
    assert calls == [(done, 2400) for done in (0, 600, 1200, 1800, 2400)]


def test_the_heading_tells_what_the_runs_were_made_with(finished):
    facts = finished[1].facts
    for name in ("question", "metric", "failed_below"):
        assert facts[name] == getattr(STUDY, name)
    assert (facts["study"], facts["comparisons"]) == ("small", [["per", "uniform"]])
    assert [(stack["arm"], stack["seeds"]) for stack in facts["stacks"]] == STUDY.parts
    for stack in facts["stacks"]:
        assert DQNConfig(**stack["settings"]) == STUDY.arms[stack["arm"]]
        assert stack["python"] == platform.python_version()
        for package in ("torch", "numpy", "numba", "gymnasium"):
            assert stack[package] == version(package)
        assert stack["processor"]
        assert stack["seconds"] > 0
    assert facts["seconds"] == pytest.approx(sum(one["seconds"] for one in facts["stacks"]))
    assert {arm: DQNConfig(**one) for arm, one in finished[1].arms.items()} == STUDY.arms


def test_a_stopped_training_ends_a_study_in_a_notebook_too(tmp_path, monkeypatch):
    """There `train` returns what it has, which is no part of a study."""
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    log, calls = History.log, []

    def stopped(history, replay):
        calls.append(log(history, replay))
        if len(calls) == 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(History, "log", stopped)
    with pytest.warns(UserWarning, match="stopped after"), pytest.raises(KeyboardInterrupt):
        run_study(STUDY, tmp_path)
    assert contents(tmp_path) == {}


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


# Stopped and continued


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


KILLED = "hundred-runs"


@posix_only
@pytest.mark.exhaustive
def test_a_killed_study_continues_to_the_same_results(tmp_path, trained, capsys):
    """Killed while two processes train, which end as well; continued by a single one."""
    parts, total = tmp_path / f"{KILLED}-fast", len(STUDIES[KILLED].fast().parts)
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
    finished_parts = sum(not name.startswith(".") for name in kept)
    assert 1 <= finished_parts < total
    main(["study", KILLED, "--fast", "--quiet", "--processes", "1", "--out", str(tmp_path)])
    assert len(trained) == total - finished_parts
    assert contents(parts).items() >= kept.items()
    run_study(STUDIES[KILLED].fast(), tmp_path / "uninterrupted")
    collected = f"{KILLED}-fast.csv.gz"
    assert rows_of(tmp_path / collected) == rows_of(tmp_path / "uninterrupted" / collected)


# Killed inside a part

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


INSIDE = "in the middle of a part"
MOMENTS = {
    "before the first checkpoint": (Checkpoints, "save_if_due", 60),
    INSIDE: (Checkpoints, "save_if_due", 200),
    "with all steps done": (DQNLearner, "save", 1),
    "with the agents saved": (runner, "write_table", 1),
    "with only the checkpoints to remove": (runner, "rmtree", 1),
}
CONTINUED = list(MOMENTS)[1:4]


def until(step, rows):
    """The scores in a table of results up to a step of the trainings."""
    fields = [row.split(",") for row in rows]
    return [row for row in fields if row[2] == "score" and int(row[3]) <= step]


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unkilled")
    run_study(LONG, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_part_continues(moment, unkilled, tmp_path):
    killed(LONG, tmp_path, *MOMENTS[moment])
    left = [path.name for path in tmp_path.rglob("checkpoint*.npz")]
    assert bool(left) == (moment != "before the first checkpoint")
    facts = run_study(LONG, tmp_path).facts
    rows, expected_rows = (rows_of(folder / "long.csv.gz") for folder in (tmp_path, unkilled))
    if moment == INSIDE:  # goes on in new episodes
        assert until(140, rows) == until(140, expected_rows) != []
    else:
        assert rows == expected_rows
    assert [stack["continued"] for stack in facts["stacks"]] == [moment in CONTINUED, False]
    files = ("per.csv", "per.safetensors", "uniform.csv", "uniform.safetensors")
    files = [name.replace(".", ".seeds-0-1.") for name in files]
    assert sorted(path.name for path in (tmp_path / "long").iterdir()) == files
    for arm, config in LONG.arms.items():
        agent, expected = (
            DQNLearner.load(folder / "long" / f"{arm}.seeds-0-1.safetensors")
            for folder in (tmp_path, unkilled)
        )
        assert (agent.config, agent.seeds) == (config, [0, 1])
        if moment != INSIDE:
            for name, tensor in agent.online.state_dict().items():
                np.testing.assert_array_equal(tensor, expected.online.state_dict()[name])


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
        at_once=2,
    )
    with pytest.raises(ValueError, match="^env: 'Cartpole-v1' cannot be made: "):
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
    (dataclasses.replace(STUDY, episodes=None), "episodes = 40, not None"),
    (
        other(double=True, sampler="uniform"),
        "double = False, not True; sampler = 'proportional', not 'uniform'",
    ),
]


@pytest.mark.parametrize("study, difference", OTHERS, ids=[difference for _, difference in OTHERS])
@pytest.mark.parametrize("lost", ["small", "small.csv.gz"])
def test_other_settings_are_refused_and_nothing_is_touched(
    study, difference, lost, copied, trained
):
    (copied / lost).rename(copied / "elsewhere")  # the parts, or the collected file
    before = contents(copied)
    with pytest.raises(ValueError) as caught:
        run_study(study, copied)
    assert re.fullmatch(rf"folder: .* was saved with {re.escape(difference)}", str(caught.value))
    assert trained == []
    assert contents(copied) == before
