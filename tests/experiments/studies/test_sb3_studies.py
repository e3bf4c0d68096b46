"""Studies of Stable-Baselines3's agents: declared, continued, refused and read."""

import dataclasses
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from small_sb3 import CONFIG
from small_study import contents, rows_of

from per_tutorial.__main__ import main
from per_tutorial.experiments.studies.declared import STUDIES
from per_tutorial.experiments.studies.declared.sb3 import SB3_STUDIES
from per_tutorial.experiments.studies.results import load_study, report
from per_tutorial.experiments.studies.runner import run_study
from per_tutorial.experiments.studies.sb3 import settings
from per_tutorial.experiments.studies.sb3.settings import LIBRARY, OLDEST, library_version
from per_tutorial.experiments.studies.study import EVALUATION_EPISODES, Study

pytest.importorskip("stable_baselines3")

from per_tutorial.experiments.studies.sb3 import training
from per_tutorial.experiments.studies.sb3.training import make_environment, train

ROOT = Path(__file__).parents[3]

STUDY = Study(
    name="small-sb3",
    question="Which is better?",
    arms={"sb3": CONFIG, "per": CONFIG.replace(replay="proportional")},
    comparisons=(("per", "sb3"),),
    metric="score over training",
    failed_below=10,
    seeds=range(2),
    stack=1,
    curves=(),
)
RUNS = [f"{STUDY.name}/{arm}.seeds-{seed}-{seed}.csv" for arm in STUDY.arms for seed in STUDY.seeds]


@pytest.fixture(scope="module")
def finished_runs(tmp_path_factory):
    """The folder of the finished small study, and its `StudyResults`."""
    folder = tmp_path_factory.mktemp("sb3")
    return folder, run_study(STUDY, folder)


@pytest.fixture
def copied_runs(finished_runs, tmp_path):
    """A copy of it, to do harm to."""
    return shutil.copytree(finished_runs[0], tmp_path, dirs_exist_ok=True)


@pytest.fixture
def trained_runs(monkeypatch):
    """The (replay, seed) of every run that is trained."""
    calls, original = [], training.train_one

    def noted(config, seed):
        calls.append((config.replay, seed))
        return original(config, seed)

    monkeypatch.setattr(training, "train_one", noted)
    return calls


# Declared


@pytest.mark.parametrize("study", SB3_STUDIES, ids=lambda study: study.name)
def test_a_declared_study_can_be_continued_after_each_run_and_is_judged_by_its_training(study):
    assert STUDIES[study.name] is study
    assert study.metric == "score over training"
    assert {len(seeds) for _, seeds in study.stacks} == {1}
    base = study.arms["sb3"]
    assert base.steps % base.options.get("train_freq", 1) == 0  # else SB3 makes a few steps more
    assert base.options["buffer_size"] >= base.steps  # nothing is forgotten
    environment = make_environment(base)
    discrete = isinstance(environment.action_space, gym.spaces.Discrete)
    assert discrete == (base.agent == "DQN")


def test_the_cliffwalk_of_sb3_has_the_discount_of_its_length():
    walk = STUDIES["sb3-cliffwalk"].arms["sb3"]
    assert walk.options["gamma"] == 1 - 1 / walk.env_options["n"]
    assert make_environment(walk).unwrapped.n == walk.env_options["n"]


# Files


@pytest.mark.parametrize(
    "changes", [{"checkpoint_every": 50}, {"curves": ("q_value",)}, {"bugs": {"per": "x"}}]
)
def test_what_only_our_own_learner_has_is_refused_before_anything_is_written(changes, tmp_path):
    with pytest.raises(ValueError, match="study: runs of SB3 have no checkpoints, bugs or cur"):
        run_study(dataclasses.replace(STUDY, **changes), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_every_run_is_a_file_and_all_of_them_are_one(finished_runs):
    folder, results = finished_runs
    assert sorted(contents(folder)) == sorted([f"{STUDY.name}.csv.gz", *RUNS])
    assert results.arms == STUDY.arms
    assert (results.seeds, results.comparisons) == ([0, 1], [("per", "sb3")])
    for run in results.facts["stacks"]:
        assert run[LIBRARY] == library_version()
        assert run["torch"] and run["python"] and run["processor"] and run["seconds"] > 0
    assert "per − sb3" in report(results)


@pytest.mark.slow
@pytest.mark.parametrize("window", [20, 3])
def test_the_values_are_those_of_the_trainings(window, tmp_path):
    study = dataclasses.replace(STUDY, score_window=window)
    results = run_study(study, tmp_path)
    assert results.facts["score_window"] == window
    for arm, config in STUDY.arms.items():
        history, greedy = train(config, STUDY.seeds, EVALUATION_EPISODES)
        grid, scores = results.curve(arm)
        np.testing.assert_allclose(scores, history.learning_curve(grid, window), rtol=1e-4)
        np.testing.assert_allclose(results.scores(arm, "greedy score"), greedy, rtol=1e-4)


@pytest.mark.slow
def test_a_stopped_study_continues_after_its_last_run(finished_runs, trained_runs, tmp_path):
    original, calls = training.train, []

    def stopping(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    with pytest.MonkeyPatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(training, "train", stopping)
        run_study(STUDY, tmp_path)
    assert sorted(contents(tmp_path)) == sorted(RUNS[:2])
    trained_runs.clear()
    run_study(STUDY, tmp_path)
    assert trained_runs == [("proportional", 0), ("proportional", 1)]
    collected = f"{STUDY.name}.csv.gz"
    assert rows_of(tmp_path / collected) == rows_of(finished_runs[0] / collected)


CHANGED = {
    "other settings": ({"learning_rate": 5e-4}, {}, "learning_rate = 0.001, not 0.0005"),
    "other options": ({"options": {}}, {}, "options = {'buffer_size': 100, .*}, not {}"),
    "another score": ({}, {"score_window": 5}, "score_window = 20, not 5"),
}


@pytest.mark.parametrize("collected", [True, False])
@pytest.mark.parametrize("change", CHANGED)
def test_runs_of_other_settings_are_refused(change, collected, copied_runs, trained_runs):
    settings, others, message = CHANGED[change]
    arms = STUDY.arms | {"per": STUDY.arms["per"].replace(**settings)}
    if not collected:
        (copied_runs / f"{STUDY.name}.csv.gz").unlink()
    before = contents(copied_runs)
    with pytest.raises(ValueError, match=f"was made with {message}; choose another folder"):
        run_study(dataclasses.replace(STUDY, arms=arms, **others), copied_runs)
    assert trained_runs == [] and contents(copied_runs) == before


# The library


def pretend(monkeypatch, found):
    """Another version of SB3 is installed, or none."""

    def version(name):
        assert name == LIBRARY
        if found is None:
            raise PackageNotFoundError(name)
        return found

    monkeypatch.setattr(settings, "version", version)


def test_runs_of_another_version_of_sb3_are_refused(copied_runs, trained_runs, monkeypatch):
    installed = library_version()
    pretend(monkeypatch, "99.0.1")
    with pytest.raises(ValueError, match=f"{LIBRARY} = '{installed}', not '99.0.1'; choose ano"):
        run_study(STUDY, copied_runs)
    assert trained_runs == []


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "trains agents of Stable-Baselines3, which is not installed: pip install "),
        ("2.7.1", "needs Stable-Baselines3 2.8 or newer, got 2.7.1: pip install -U "),
        ("1.99", "needs Stable-Baselines3 2.8 or newer, got 1.99: pip install -U "),
    ],
)
def test_without_a_fitting_sb3_a_study_ends_in_one_clear_line(
    found, message, monkeypatch, tmp_path
):
    pretend(monkeypatch, found)
    with pytest.raises(SystemExit) as caught:
        main(["study", "sb3-cartpole", "--fast", "--quiet", "--out", str(tmp_path / "new")])
    line = caught.value.code
    assert line == f'python -m per_tutorial: This study {message}"per_tutorial[sb3]"'
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("found", ["2.8.0", "2.10.0a1", "3.0"])
def test_newer_versions_are_taken(found, monkeypatch):
    pretend(monkeypatch, found)
    assert library_version() == found


def test_the_oldest_version_is_that_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = " ".join(project["optional-dependencies"]["sb3"])
    assert re.search(rf"{LIBRARY}>=([\d.]+)", needed)[1] == ".".join(map(str, OLDEST))


@pytest.mark.slow
def test_results_are_read_where_sb3_is_not_installed(finished_runs):
    code = (
        "import sys; sys.modules['stable_baselines3'] = None\n"
        "from per_tutorial.experiments.studies.results import load_study, report\n"
        "from per_tutorial.experiments.studies.declared import STUDIES\n"
        f"study = load_study({STUDY.name!r}, {str(finished_runs[0])!r})\n"
        "assert 'torch' not in sys.modules\n"
        "print(report(study))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == report(load_study(STUDY.name, finished_runs[0]))
