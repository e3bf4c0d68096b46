"""The studies of this series: whole, paired, and comparing what they say they compare."""

import dataclasses
import json

import numpy as np
import pytest
from notebook_files import NOTEBOOKS
from small_study import differences

from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.studies import runner
from per_tutorial.studies.declared import STUDIES
from per_tutorial.studies.declared.tuned import CHOSEN, EDGES, GRID
from per_tutorial.studies.results import load_study
from per_tutorial.studies.runner import run_study

RESULTS = NOTEBOOKS / "results"
FILES = sorted(RESULTS.glob("*.csv.gz"))
RECORDED = [path.name.removesuffix(".csv.gz") for path in FILES]
# What the arms of a comparison, or of a study without any, may differ in
SUBJECTS = {
    **dict.fromkeys(("ablation", "rates", "tuned"), {"sampler", "learning_rate"}),
    **dict.fromkeys(("hundred", "pong", "cartpole"), {"sampler"}),
}
FEWER_SEEDS = {"pong": 10, "rates": 10}


@pytest.mark.parametrize("name", STUDIES)
def test_a_declared_study_is_whole_and_changes_its_subject_alone(name):
    study, kind = STUDIES[name], name.split("-")[0]
    assert study.name == name
    assert study.question.endswith("?")
    compared = {arm for pair in study.comparisons for arm in pair}
    assert compared == (set() if kind == "rates" else set(study.arms))
    assert len(set(study.comparisons)) == len(study.comparisons)
    assert kind in SUBJECTS, f"SUBJECTS: must say in what the arms of {kind}-… may differ"
    first, *others = study.arms
    for pair in study.comparisons or [(first, other) for other in others]:
        assert set() < differences(study, pair) <= SUBJECTS[kind], pair
    assert len(study.seeds) >= FEWER_SEEDS.get(kind, 30)
    for arm in study.arms:
        trained = [seed for other, seeds in study.parts if other == arm for seed in seeds]
        assert trained == list(study.seeds)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in STUDIES if name in RECORDED])
def test_its_results_were_made_with_what_is_declared(name):
    """Settings that are newer than the file, or gone since, are not compared."""
    study, results = STUDIES[name], load_study(name, RESULTS)
    for arm, config in study.arms.items():
        declared = json.loads(json.dumps(dataclasses.asdict(config)))
        recorded = results.arms[arm]
        shared = declared.keys() & recorded.keys() - {"device"}
        assert len(shared) >= 8
        assert {key: recorded[key] for key in shared} == {key: declared[key] for key in shared}
    assert results.seeds == list(study.seeds)
    assert set(study.comparisons) == set(results.comparisons)
    for fact in ("question", "metric", "failed_below"):
        assert results.facts[fact] == getattr(study, fact)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_results_are_whole(name):
    results = load_study(name, RESULTS)
    parts = [(part["arm"], seed) for part in results.facts["stacks"] for seed in part["seeds"]]
    assert sorted(parts) == sorted((arm, seed) for arm in results.arms for seed in results.seeds)
    for arm, settings in results.arms.items():
        grid, score = results.curve(arm)
        assert len(grid) <= 50 and grid[-1] == settings["steps"]
        assert np.isfinite(score[-1]).all()
        for metric in ("greedy score", None):
            assert np.isfinite(results.scores(arm, metric)).all()


def test_the_rates_of_the_tuned_studies_are_those_that_the_rule_chooses():
    edges, chosen = {}, {}
    for name in (name for name in RECORDED if name.startswith("rates-")):
        results, world = load_study(name, RESULTS), name.removeprefix("rates-")
        for side in ("uniform", "per"):
            means = {
                float(arm.removeprefix(f"{side}-")): results.scores(arm).mean()
                for arm in results.arms
                if arm.startswith(side)
            }
            best = max(GRID, key=means.get)
            if grown := {min(GRID): best / 2, max(GRID): best * 2}.get(best):
                edges.setdefault(world, {})[side] = grown
            assert sorted(means) == sorted({*GRID, grown or 1})
            chosen.setdefault(world, {})[side] = max(means, key=means.get)
    assert (edges, chosen) == (EDGES, CHOSEN)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name, arm, needs, changes",
    [
        ("pong", "per", "ale_py", {"learning_starts": 400, "environments": 2}),
        ("rates-lunarlander", "per-1", "Box2D", {}),
    ],
)
def test_the_fast_form_of_a_study_in_other_worlds_runs(
    name, arm, needs, changes, tmp_path, monkeypatch
):
    """One arm of it, with few games: emulators start slowly, and bfloat16 is slow on a CPU."""
    pytest.importorskip(needs)
    monkeypatch.setattr(runner, "EVALUATION_EPISODES", 2)
    fast = STUDIES[name].fast()
    config = fast.arms[arm].replace(precision="float32", **changes)
    study = dataclasses.replace(fast, arms={arm: config}, comparisons=(), seeds=range(2))
    results = run_study(study, tmp_path)
    for measure in ("score", *study.curves, "greedy"):
        grid, values = results.curve(arm, measure)
        assert grid[-1] == config.steps
        assert np.isfinite(values[-1]).all()
    if study.checkpoint_every is not None:
        agents = DQNLearner.load(tmp_path / study.name / f"{arm}.seeds-0-1.safetensors")
        assert agents.seeds == [0, 1]
