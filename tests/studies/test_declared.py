"""The studies of this series: whole, paired, and comparing what they say they compare."""

import dataclasses
import json

import numpy as np
import pytest
from small_study import differences

from per_tutorial.common.data import data_folder
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.studies import runner
from per_tutorial.studies.declared import STUDIES
from per_tutorial.studies.declared.ablations import NETWORKS
from per_tutorial.studies.declared.minatar import METHODS
from per_tutorial.studies.results import load_study
from per_tutorial.studies.runner import run_study

# What a comparison may change at most
SUBJECTS = {
    "ablation-cartpole": {"sampler", "learning_rate"},
    "ablation-acrobot": {"sampler", "learning_rate"},
    "ablation-mountaincar": {"sampler", "learning_rate"},
    "alpha-beta": {"sampler", "alpha", "beta_start", "beta_end"},
    "hundred-runs": {"sampler"},
    "pong": {"sampler"},
    "cartpole-conditions": {"sampler"},
    "minatar-breakout": {name for change in METHODS.values() for name in change},
}
FEWER_SEEDS = {"pong": 3, "minatar-breakout": 10}


@pytest.mark.parametrize("name", STUDIES)
def test_a_declared_study_is_whole_and_changes_its_subject_alone(name):
    study = STUDIES[name]
    assert study.name == name
    assert study.question.endswith("?")
    assert {arm for pair in study.comparisons for arm in pair} == set(study.arms)
    assert len(set(study.comparisons)) == len(study.comparisons)
    for pair in study.comparisons:
        assert differences(study, pair), pair
        assert differences(study, pair) <= SUBJECTS[name], pair
    assert len(study.seeds) >= FEWER_SEEDS.get(name, 30)
    assert [seed for arm, seeds in study.parts if arm == pair[0] for seed in seeds] == [
        *study.seeds
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_its_results_were_made_with_what_is_declared(name):
    """Settings that are newer than the file, or gone since, are not compared."""
    study, results = STUDIES[name], load_study(name)
    for arm, config in study.arms.items():
        declared = json.loads(json.dumps(dataclasses.asdict(config)))
        recorded = results.arms[arm]
        shared = declared.keys() & recorded.keys() - {"device"}
        assert len(shared) >= 8
        assert {key: recorded[key] for key in shared} == {key: declared[key] for key in shared}
    assert results.seeds == list(study.seeds)
    assert set(study.comparisons) <= set(results.comparisons)
    for fact in ("question", "metric", "failed_below"):
        assert results.facts[fact] == getattr(study, fact)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", sorted(data_folder().glob("*.csv.gz")), ids=lambda path: path.name)
def test_recorded_results_are_whole(path):
    results = load_study(path.name.removesuffix(".csv.gz"))
    parts = [(part["arm"], seed) for part in results.facts["stacks"] for seed in part["seeds"]]
    assert sorted(parts) == sorted((arm, seed) for arm in results.arms for seed in results.seeds)
    for arm, settings in results.arms.items():
        grid, score = results.curve(arm)
        assert len(grid) <= 50 and grid[-1] == settings["steps"]
        assert np.isfinite(score[-1]).all()
        for metric in ("greedy score", None):
            assert np.isfinite(results.scores(arm, metric)).all()


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
        rate_differs = arm.endswith("-quarter") != against.endswith("-quarter")
        expected = {"sampler"} | ({"learning_rate"} if rate_differs else set())
        assert differences(study, (arm, against)) == expected
        assert "uniform" in against and "uniform" not in arm
    for network in NETWORKS:
        assert (f"{network}-per", f"{network}-uniform") in study.comparisons


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name, arm, needs, changes",
    [
        ("pong", "per", "ale_py", {"learning_starts": 400, "environments": 2}),
        ("minatar-breakout", "lap", "minatar", {"capacity": 200}),
    ],
)
def test_the_fast_form_of_a_study_from_pixels_runs(
    name, arm, needs, changes, tmp_path, monkeypatch
):
    """One arm of it, with few games: emulators start slowly, and bfloat16 is slow on a CPU."""
    pytest.importorskip(needs)
    monkeypatch.setattr(runner, "EVALUATION_EPISODES", 2)
    fast = STUDIES[name].fast()
    arms = {arm: fast.arms[arm].replace(precision="float32", **changes)}
    study = dataclasses.replace(fast, arms=arms, comparisons=(), seeds=range(2))
    results = run_study(study, tmp_path)
    for measure in ("score", *study.curves, "greedy"):
        grid, values = results.curve(arm, measure)
        assert grid[-1] == study.arms[arm].steps
        assert np.isfinite(values[-1]).all()
    agents = DQNLearner.load(tmp_path / study.name / f"{arm}.seeds-0-1.safetensors")
    assert agents.seeds == [0, 1]
