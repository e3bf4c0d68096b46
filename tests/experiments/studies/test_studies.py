"""The studies of this series: whole, paired, and comparing what they say they compare."""

import dataclasses

import numpy as np
import pytest
from small_study import differences

from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.experiments.studies import runner
from per_tutorial.experiments.studies.declared import STUDIES
from per_tutorial.experiments.studies.declared.after_per import (
    AFTER_PER_STUDIES,
    FOR_VECTORS,
    methods,
)
from per_tutorial.experiments.studies.declared.equal_alpha import (
    EQUAL_ALPHA_STUDIES,
    EXPONENTS,
    THRESHOLD_CARTPOLE,
    equal_alpha_methods,
)
from per_tutorial.experiments.studies.declared.minatar import (
    LONG_MINATAR_STUDIES,
    MINATAR_METHODS,
    MINATAR_STUDIES,
    PER_ON_PUBLISHED,
    PUBLISHED_BASE_STUDIES,
    PUBLISHED_STUDIES,
    RATE_STUDIES,
)
from per_tutorial.experiments.studies.declared.sb3 import SB3_STUDIES
from per_tutorial.experiments.studies.declared.series import NETWORKS
from per_tutorial.experiments.studies.declared.step_sizes import STEP_SIZE_STUDIES
from per_tutorial.experiments.studies.declared.unfinished import UNFINISHED_STUDIES
from per_tutorial.experiments.studies.runner import run_study

FEWER_SEEDS = {
    "long-cartpole": 10,
    "thousand-episodes": 5,
    "pong": 3,
    "sb3-pendulum-sac": 10,
    "sb3-pendulum-td3": 10,
    **{
        study.name: 10
        for study in (
            *MINATAR_STUDIES,
            *LONG_MINATAR_STUDIES,
            *RATE_STUDIES,
            *PUBLISHED_BASE_STUDIES,
            PER_ON_PUBLISHED,
        )
    },
    **{study.name: 5 for study in PUBLISHED_STUDIES},
    "updates-breakout": 10,
}


@pytest.mark.parametrize("name", STUDIES)
def test_a_declared_study_is_whole(name):
    study = STUDIES[name]
    assert study.name == name
    assert study.question.endswith("?")
    compared = {arm for pair in study.comparisons for arm in pair}
    assert compared == set(study.arms) or (not compared and len(study.arms) == 1)
    assert len(set(study.comparisons)) == len(study.comparisons)
    for pair in study.comparisons:
        assert differences(study, pair), pair
    assert len(study.seeds) >= FEWER_SEEDS.get(name, 30)
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
    monkeypatch.setattr(runner, "EVALUATION_EPISODES", 2)
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
    "thousand-episodes": {"sampler"},
    "pong": {"sampler"},
    "cartpole-conditions": {"sampler"},
    "lunarlander": {"sampler"},
    "again-cliffwalk": {"sampler"},
    "broken-cartpole": {"sampler", "exhibit"},
    "broken-mountaincar": {"sampler", "exhibit"},
    **{study.name: {"replay", "learning_rate"} for study in SB3_STUDIES},
    **{
        study.name: {name for change in methods(FOR_VECTORS).values() for name in change}
        for study in AFTER_PER_STUDIES
    },
    **{
        study.name: {name for change in equal_alpha_methods().values() for name in change}
        for study in (*EQUAL_ALPHA_STUDIES, THRESHOLD_CARTPOLE)
    },
    **{
        study.name: {name for change in MINATAR_METHODS.values() for name in change}
        for study in MINATAR_STUDIES
    },
    **{
        study.name: {*MINATAR_METHODS["per"], "learning_rate", "learning_rate_end"}
        for study in PUBLISHED_BASE_STUDIES
    },
    **{study.name: {"sampler", "loss"} for study in STEP_SIZE_STUDIES},
    **{study.name: {*methods(FOR_VECTORS)["reaper"], "unfinished"} for study in UNFINISHED_STUDIES},
    **{study.name: {"sampler"} for study in LONG_MINATAR_STUDIES},
    "updates-breakout": {"update_every"},
    # One arm, beside a published curve
    **{study.name: set() for study in (*PUBLISHED_STUDIES, *RATE_STUDIES, PER_ON_PUBLISHED)},
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


@pytest.mark.parametrize("name", [name for name in STUDIES if name.startswith("broken")])
def test_a_broken_arm_is_the_reference_with_one_bug(name):
    study = STUDIES[name]
    assert len(study.bugs) >= 12
    assert study.bugs == {arm: arm for arm in study.arms if arm not in ("per", "uniform")}
    for pair in study.comparisons:
        assert pair[1] == "per"
        changed = "sampler" if pair[0] == "uniform" else "exhibit"
        assert differences(study, pair) == {changed}


@pytest.mark.parametrize("study", AFTER_PER_STUDIES, ids=lambda study: study.name)
def test_every_method_after_per_gets_the_same_search(study):
    rates = {arm: config.learning_rate for arm, config in study.arms.items()}
    changes = methods({name: getattr(study.arms["lap"], name) for name in FOR_VECTORS})
    for method, change in changes.items():
        assert rates[method] == 4 * rates[f"{method}-quarter"] == rates["uniform"]
        for arm in (method, f"{method}-quarter"):
            uniform = study.arms[arm.replace(method, "uniform")]
            assert study.arms[arm] == uniform.replace(**change)
    for arm, other in study.comparisons:
        assert rates[arm] == rates[other]


@pytest.mark.parametrize("study", EQUAL_ALPHA_STUDIES, ids=lambda study: study.name)
def test_methods_are_compared_at_equal_exponents(study):
    assert set(study.seeds).isdisjoint(AFTER_PER_STUDIES[0].seeds)
    for arm, other in study.comparisons:
        assert study.arms[arm].learning_rate == study.arms[other].learning_rate
        if arm[-1] in EXPONENTS and other[-1] in EXPONENTS:
            assert study.arms[arm].alpha == study.arms[other].alpha == EXPONENTS[arm[-1]]
        if arm.startswith(("lap", "pal")):
            assert study.arms[arm].kappa == study.arms["huber"].kappa == 0.01


@pytest.mark.parametrize("study", STEP_SIZE_STUDIES, ids=lambda study: study.name)
def test_both_have_the_exponent_of_per_and_every_learning_rate_of_the_sweep(study):
    rates = {}
    for arm, config in study.arms.items():
        assert (config.alpha, config.kappa) == (0.6, 0.01)
        rates.setdefault(arm[:3], []).append(config.learning_rate)
    assert rates["lap"] == rates["pal"] == [0.001 * share for share in (0.25, 0.5, 1, 2, 4)]
    for arm, other in study.comparisons:
        assert study.arms[arm].learning_rate == study.arms[other].learning_rate


@pytest.mark.parametrize("study", MINATAR_STUDIES, ids=lambda study: study.name)
def test_the_studies_of_minatar_differ_in_nothing_but_the_game(study):
    assert len(set(study.seeds)) == study.stack == 10  # one stack an arm
    assert study.arms["per"].sampler == "proportional"
    first = MINATAR_STUDIES[0]
    assert study.comparisons == first.comparisons
    for arm, change in MINATAR_METHODS.items():
        assert study.arms[arm] == study.arms["uniform"].replace(**change)
        assert study.arms[arm].replace(env=first.arms[arm].env) == first.arms[arm]
    assert len({each.arms["per"].env for each in MINATAR_STUDIES}) == len(MINATAR_STUDIES)


def test_the_long_studies_of_minatar_differ_from_the_others_in_their_frames_alone():
    for long, short in zip(LONG_MINATAR_STUDIES, MINATAR_STUDIES, strict=True):
        assert long.seeds == short.seeds and long.metric == short.metric
        for arm, config in long.arms.items():
            assert config.steps == 500_000
            assert config.replace(steps=short.arms[arm].steps) == short.arms[arm]


@pytest.mark.parametrize("study", PUBLISHED_STUDIES, ids=lambda study: study.name)
def test_exploration_and_updates_begin_at_the_published_frames(study):
    """As examples/dqn.py of the authors has it: its conditions and its ε, frame by frame."""
    config = study.arms["published"]
    for t in range(0, 110_000, 500):
        waited = t - 5_000
        epsilon = 0.1 if waited >= 100_000 else ((0.1 - 1.0) / 100_000) * waited + 1.0
        assert config.epsilon(t) == pytest.approx(epsilon if t >= 5_000 else 1.0)
    for t in range(4_998, 5_004):
        assert (t + 1 >= config.learning_starts) == (t > 5_000)  # t + 1 transitions are stored


@pytest.mark.parametrize("study", RATE_STUDIES, ids=lambda study: study.name)
def test_the_studies_of_the_step_size_change_game_rate_and_frames_alone(study):
    (published,), (changed,) = (each.arms.values() for each in (PUBLISHED_STUDIES[0], study))
    rate = changed.learning_rate
    assert np.log2(rate) == round(np.log2(rate)) and changed.learning_rate_end == rate
    own = dict.fromkeys(("env", "steps", "learning_rate", "learning_rate_end"))
    own = {name: getattr(changed, name) for name in own}
    assert changed == published.replace(**own) and changed.env.endswith("-v0")


@pytest.mark.slow
def test_the_fast_form_of_a_study_of_minatar_runs(tmp_path, monkeypatch):
    pytest.importorskip("minatar")
    monkeypatch.setattr(runner, "EVALUATION_EPISODES", 2)
    study = dataclasses.replace(STUDIES["minatar-breakout"].fast(), seeds=range(2))
    arms = {name: config.replace(capacity=200) for name, config in study.arms.items()}
    results = run_study(dataclasses.replace(study, arms=arms), tmp_path)
    for arm in study.arms:
        grid, values = results.curve(arm, "score")
        assert grid[-1] == study.arms[arm].steps
        assert np.isfinite(values[-1]).all()
        assert np.isfinite(results.scores(arm)).all()


def test_every_run_of_the_hundred_finishes_the_episodes_that_are_asked_about():
    study = STUDIES["hundred-runs"]
    for config in study.arms.values():
        assert config.steps // config.max_episode_steps >= study.episodes
