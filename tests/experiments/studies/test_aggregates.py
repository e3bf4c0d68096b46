"""Aggregates over environments, against plain twins of the formulas of Agarwal et al. (2021)."""

import time

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean

from per_tutorial.experiments.statistics.estimates import (
    bootstrap_interval,
    interquartile_mean,
    probability_of_improvement,
)
from per_tutorial.experiments.studies.aggregates import (
    REFERENCES,
    aggregate,
    aggregate_difference,
    aggregate_improvement,
    normalised_scores,
    normalised_worlds,
    runs_kept,
)
from per_tutorial.experiments.studies.declared.after_per import AFTER_PER_STUDIES
from per_tutorial.experiments.studies.declared.minatar import MINATAR_STUDIES
from per_tutorial.experiments.studies.results import load_study


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def worlds(rng):
    """Three worlds of twelve pairs; what the seed does to a run, it does to both arms."""
    made = {}
    for k, world in enumerate(("one", "two", "three")):
        luck = rng.normal(k, 1 + k, size=12)
        made[world] = {"a": luck + rng.normal(0.3, 0.2, size=12), "b": luck.round(1)}
    return made


def table(worlds, arm):
    """(runs, worlds), as rliable takes them."""
    return np.stack([scores[arm] for scores in worlds.values()], axis=1)


def resampled_tables(worlds, arms, resamples, seed):
    """The tables of each resample, one by one: each environment's runs are drawn in pairs."""
    rng = np.random.default_rng(seed)
    draws = [rng.integers(0, 12, (resamples, 12)) for _ in worlds]
    for k in range(resamples):
        yield [
            np.stack(
                [
                    scores[arm][drawn[k]]
                    for scores, drawn in zip(worlds.values(), draws, strict=True)
                ],
                axis=1,
            )
            for arm in arms
        ]


def plain_iqm(scores):
    return trim_mean(scores, proportiontocut=0.25, axis=None)


def plain_improvement(x, y):
    """rliable's: the mean over worlds of Mann and Whitney's U, as a share of all pairs of runs."""
    u = [mannwhitneyu(a, b, alternative="greater").statistic for a, b in zip(x.T, y.T, strict=True)]
    return np.mean(u) / (len(x) * len(y))


def test_the_interquartile_mean_over_worlds_is_its_plain_twin(worlds):
    found = aggregate(worlds, resamples=300, seed=4)
    assert list(found) == ["a", "b"]
    for arm, (value, low, high) in found.items():
        assert value == pytest.approx(plain_iqm(table(worlds, arm)), rel=1e-12)
        twins = [plain_iqm(each) for (each,) in resampled_tables(worlds, [arm], 300, seed=4)]
        assert (low, high) == pytest.approx(np.quantile(twins, (0.025, 0.975)), rel=1e-12)


def test_a_difference_is_of_the_same_resamples(worlds):
    found = aggregate_difference(worlds, "a", "b", resamples=300, seed=4)
    assert found.value == pytest.approx(
        plain_iqm(table(worlds, "a")) - plain_iqm(table(worlds, "b")), rel=1e-12
    )
    twins = [
        plain_iqm(a) - plain_iqm(b) for a, b in resampled_tables(worlds, ["a", "b"], 300, seed=4)
    ]
    assert (found.low, found.high) == pytest.approx(
        np.quantile(twins, (0.025, 0.975)), rel=1e-12, abs=1e-14
    )
    # Drawn apart, what the seed does to both would not cancel.
    apart = aggregate(worlds, resamples=300)
    assert found.high - found.low < 0.5 * (apart["a"].high - apart["a"].low)


def test_the_probability_of_improvement_is_its_plain_twin(worlds):
    found = aggregate_improvement(worlds, "a", "b", resamples=300, seed=4)
    a, b = table(worlds, "a"), table(worlds, "b")
    assert found.value == pytest.approx(plain_improvement(a, b), rel=1e-12)
    twins = [plain_improvement(a, b) for a, b in resampled_tables(worlds, ["a", "b"], 300, seed=4)]
    assert (found.low, found.high) == pytest.approx(np.quantile(twins, (0.025, 0.975)), rel=1e-12)


def test_one_world_alone_is_what_the_estimates_say(worlds):
    alone = {"one": worlds["one"]}
    a, b = worlds["one"]["a"], worlds["one"]["b"]
    found = aggregate(alone, resamples=2_000, seed=3)["a"]
    assert found.value == pytest.approx(interquartile_mean(a), rel=1e-12)
    expected = bootstrap_interval(a, statistic=interquartile_mean, resamples=2_000, seed=3)
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-12)
    improvement = aggregate_improvement(alone, "a", "b", resamples=100)
    assert improvement.value == probability_of_improvement(a, b, resamples=100).value


@pytest.mark.slow
def test_many_resamples_come_in_chunks_and_take_little_time(rng):
    worlds = {str(world): {"a": rng.normal(size=30)} for world in range(4)}
    start = time.process_time()
    found = aggregate(worlds)["a"]
    assert time.process_time() - start < 10  # 0.5 s on one core of 2026
    again = aggregate(worlds, seed=1)["a"]
    assert found != again
    assert found == pytest.approx(again, abs=0.02 * (found.high - found.low))


def test_the_interval_covers_the_truth_as_often_as_it_says(rng):
    covered = []
    for seed in range(300):
        worlds = {
            "near": {"a": rng.normal(0, 1, 20), "b": rng.normal(0, 1, 20)},
            "far": {"a": rng.normal(5, 1, 20), "b": rng.normal(5, 1, 20)},
        }
        chance = aggregate_improvement(worlds, "a", "b", resamples=500, seed=seed)
        covered.append(chance.low <= 0.5 <= chance.high)
    assert 0.89 < np.mean(covered) < 0.98


def test_each_world_weighs_the_same_whatever_its_number_of_runs():
    worlds = {"many": {"a": np.zeros(30)}, "few": {"a": np.ones(10)}}
    assert aggregate(worlds, resamples=10)["a"].value == pytest.approx(0.5, abs=1e-12)
    # A quarter of the weight goes at each end: 15 of these zeros, and 5 of these ones.
    worlds["many"]["a"][:15], worlds["few"]["a"][5:] = -100, 100
    assert aggregate(worlds, resamples=10)["a"].value == pytest.approx(0.5, abs=1e-12)


def test_the_middle_half_may_hold_more_runs_of_one_world_than_of_another():
    worlds = {"low": {"a": np.arange(12.0)}, "high": {"a": np.arange(100.0, 112.0)}}
    assert runs_kept(worlds, "a") == pytest.approx({"low": 6, "high": 6})
    worlds["middle"] = {"a": np.arange(50.0, 62.0)}
    assert runs_kept(worlds, "a") == pytest.approx({"low": 3, "high": 3, "middle": 12})
    # Each world weighs the same: a run of the few weighs three times as much as one of the many.
    worlds = {"many": {"a": np.arange(30.0)}, "few": {"a": np.arange(100.0, 110.0)}}
    assert runs_kept(worlds, "a") == pytest.approx({"many": 15, "few": 5})
    # Of equal scores, none is kept before another.
    worlds = {"one": {"a": [1, 1, 1, 5]}, "other": {"a": [1, 1, 1, 1]}}
    assert runs_kept(worlds, "a") == pytest.approx({"one": 12 / 7, "other": 16 / 7})


def test_the_runs_kept_are_those_that_the_aggregate_is_made_of(rng):
    """Raised so little that no ranks change, an environment moves the aggregate by its share."""
    worlds = {"ten": {"a": rng.normal(0, 1, 10)}, "thirty": {"a": rng.normal(0.5, 2, 30)}}
    before = aggregate(worlds, resamples=2)["a"].value
    for world, kept in runs_kept(worlds, "a").items():
        raised = worlds | {world: {"a": worlds[world]["a"] + 1e-6}}
        moved = aggregate(raised, resamples=2)["a"].value - before
        share = kept / len(worlds[world]["a"])  # of two worlds, whose middle half is the mean
        assert 0 < share < 1
        assert moved == pytest.approx(1e-6 * share, rel=1e-5)


def test_only_arms_that_all_worlds_have():
    worlds = {"one": {"x": [1, 2], "a": [1, 2], "b": [3, 4]}, "two": {"b": [1, 2], "a": [1, 2]}}
    assert list(aggregate(worlds, resamples=10)) == ["a", "b"]


def test_a_missing_score_is_not_hidden(worlds):
    worlds["two"]["a"][3] = np.nan
    found = aggregate(worlds, resamples=10)
    assert np.isnan(found["a"]).all() and not np.isnan(found["b"]).any()
    with pytest.raises(ValueError, match="every run of 'two' needs a score"):
        aggregate_improvement(worlds, "a", "b", resamples=10)
    with pytest.raises(ValueError, match="every run of 'two' needs a score"):
        runs_kept(worlds, "a")
    assert sum(runs_kept(worlds, "b").values()) == pytest.approx(18)  # the half of 36


@pytest.mark.parametrize(
    ("worlds", "message"),
    [
        ({}, "worlds: must hold at least one"),
        ({"one": {"a": [1, 2]}, "two": {"b": [1, 2]}}, "must share at least one arm"),
        ({"one": {"a": [1, 2], "b": [1, 2, 3]}}, "the arms of 'one' must have the same runs"),
        ({"one": {"a": [[1, 2]]}}, r"worlds\['one'\]\['a'\]: must have the shape"),
        ({"one": {"a": [1]}}, "at least two runs"),
        ({"one": {"a": [1, np.inf]}}, "must not be infinite"),
    ],
)
def test_what_cannot_be_aggregated(worlds, message):
    with pytest.raises(ValueError, match=message):
        aggregate(worlds)


def test_unknown_arms_and_bad_settings(worlds):
    with pytest.raises(ValueError, match="arm: must be one of 'a', 'b', got 'c'"):
        aggregate_difference(worlds, "a", "c")
    with pytest.raises(ValueError, match="arm: must be one of 'a', 'b', got 'c'"):
        aggregate_improvement(worlds, "c", "a")
    with pytest.raises(ValueError, match="resamples"):
        aggregate(worlds, resamples=0)
    with pytest.raises(TypeError, match="must be numbers"):
        aggregate({"one": {"a": ["x", "y"]}})


# Normalised scores ------------------------------------------------------------------------------


def test_every_world_of_these_studies_has_its_reference():
    for study in (*AFTER_PER_STUDIES, *MINATAR_STUDIES):
        (world,) = {config.env for config in study.arms.values()}
        assert REFERENCES[world].random < REFERENCES[world].good


def test_thresholds_are_the_environments_own():
    import gymnasium as gym

    for world in ("CartPole-v1", "Acrobot-v1", "MountainCar-v0"):
        assert REFERENCES[world].good == gym.spec(world).reward_threshold


def test_random_actions_score_what_is_said():
    import gymnasium as gym

    for world, episodes in (("CartPole-v1", 300), ("Acrobot-v1", 3)):
        env = gym.make(world, max_episode_steps=500)
        env.action_space.seed(0)
        returns = []
        for episode in range(episodes):
            env.reset(seed=episode)
            total, over = 0.0, False
            while not over:
                _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
                total, over = total + float(reward), terminated or truncated
            returns.append(total)
        assert np.mean(returns) == pytest.approx(REFERENCES[world].random, abs=2)


@pytest.mark.slow
def test_scores_in_units_of_their_world():
    study = load_study("after-cliffwalk")
    scores = normalised_scores(study)
    assert list(scores) == list(study.arms)
    np.testing.assert_allclose(scores["per"], (study.scores("per") - 0.004) / 0.996)
    study.arms["per"] = study.arms["per"].replace(env="CartPole-v1")
    with pytest.raises(ValueError, match="results: all arms must act in one world"):
        normalised_scores(study)
    study.arms = {"per": study.arms["per"].replace(env="Taxi-v3")}
    with pytest.raises(ValueError, match="results: must be one of .*, got 'Taxi-v3'"):
        normalised_scores(study)


def test_only_studies_whose_results_are_there(tmp_path):
    found = normalised_worlds(["after-cliffwalk", "not-yet"])
    assert list(found) == ["after-cliffwalk"] and len(found["after-cliffwalk"]) == 16
    assert normalised_worlds(["after-cliffwalk"], tmp_path) == {}
