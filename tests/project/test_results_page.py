"""The tables of docs/results.md, and what the README says of them: what the studies found."""

import functools
import gzip
import json
import re

import numpy as np
import pytest
from notebook_files import ROOT

from per_tutorial.common.data import data_file
from per_tutorial.statistics import agreement, failure_rate, paired_difference, verdict
from per_tutorial.studies.results import load_study

README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


@functools.cache
def measured(world):
    """What docs/results.md says of PER against uniform replay in a world, number by number."""
    results = load_study(f"ablation-{world}")
    per, uniform = "dqn-per", "dqn-uniform"
    score = paired_difference(results.scores(per), results.scores(uniform))
    greedy = [results.scores(arm, "greedy score") for arm in (uniform, per)]
    better = paired_difference(greedy[1], greedy[0])
    failed = [failure_rate(scores, results.facts["failed_below"]).value for scores in greedy]
    mean = results.scores(uniform).mean()
    return [*score, mean, *better, *(100 * share for share in failed)]


@pytest.mark.slow
@pytest.mark.parametrize("world", ["MountainCar", "CartPole", "Acrobot"])
def test_the_table_of_results_is_what_the_studies_found(world):
    section = RESULTS.split("## Does PER help?")[1].split("\n## ")[0]
    (row,) = re.findall(rf"^\| {world}.*?\|(.*)$", section, re.MULTILINE)
    shown = [float(number.replace("−", "-")) for number in re.findall(r"[−+]?\d+", row)]
    assert shown == [round(value) for value in measured(world.lower())]


@pytest.mark.slow
@pytest.mark.parametrize(
    "label, name, other, digits",
    [
        ("DQN, CartPole", "sb3-cartpole", "uniform", 1),
        ("DQN, Blind Cliffwalk", "sb3-cliffwalk", "uniform", 3),
        ("DQN, FrozenLake", "sb3-sparse", "uniform", 3),
        ("SAC, Pendulum", "sb3-pendulum-sac", "uniform", 1),
        ("TD3, Pendulum", "sb3-pendulum-td3", "uniform", 1),
    ],
)
def test_the_table_of_other_agents_is_what_the_studies_found(label, name, other, digits):
    (row,) = re.findall(rf"^\| {label}.*$", RESULTS, re.MULTILINE)
    results = load_study(name)
    scores = {arm: results.scores(arm) for arm in results.arms}
    value, low, high = paired_difference(scores["per"], scores[other])
    assert f"{value:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]" in row.replace("−", "-")
    mean = float(re.search(r"of (−?[\d,.]+):", row)[1].replace("−", "-").replace(",", ""))
    assert mean == pytest.approx(scores[other].mean(), rel=0.02)
    family = agreement([(scores[arm], scores[to]) for arm, to in results.comparisons])
    judged = family[results.comparisons.index(("per", other))]
    assert ": " + judged.verdict in row
    shown = row.split("|")[-2].strip()
    assert shown == ("< 0.001" if judged.p < 0.001 else f"{judged.p:.{len(shown.split('.')[1])}f}")


@pytest.mark.parametrize(
    "label, variant", [("the same for both", "hard"), ("as published", "published")]
)
def test_the_table_of_a_thousand_episodes_is_what_the_study_found(label, variant):
    (row,) = re.findall(rf"^\| {label}.*$", RESULTS, re.MULTILINE)
    results, arms = load_study("thousand-episodes"), (f"per-{variant}", f"uniform-{variant}")
    for arm in arms:
        peaks = np.nanmax(results.curve(arm, "score after episodes")[1], axis=0)
        assert f"| {peaks.min():.0f} to {peaks.max():.0f} |" in row
    per, uniform = (results.scores(arm) for arm in arms)
    value, low, high = paired_difference(per, uniform)
    shown = f"{value:+.0f} [{low:+.0f}, {high:+.0f}] of {uniform.mean():.0f}"
    assert f"| {shown}: {verdict(per, uniform)} |" in row.replace("−", "-")


@pytest.mark.parametrize(
    "name, arm, other, said",
    [
        ("lunarlander", "per", "uniform", "+8.2 [−8.1, +24.6] of −147"),
        ("sb3-cartpole", "per-quarter", "uniform-quarter", "+10.5 [8.0, 13.6] of 11"),
        ("sb3-cartpole", "uniform", "per-quarter", "51.8 [45.9, 58.7]"),
        ("base-breakout", "per", "uniform", "0.15 [0.07, 0.24] of 3.49"),
        ("base-breakout", "per-quarter", "uniform", "+0.02 [−0.07, 0.11]"),
        ("base-breakout", "rank", "uniform", "+0.14 [0.03, 0.22]"),
        ("base-space-invaders", "per", "uniform", "0.74 [0.40, 1.09] of 14.35"),
        ("base-space-invaders", "uniform", "per-quarter", "9.11 [8.64, 9.54]"),
        ("base-space-invaders", "rank", "uniform", "1.15 [0.80, 1.50]"),
        ("equal-alpha-acrobot-quarter", "laber", "per-6", "−58.4 [−85.6, −34.5]"),
        ("equal-alpha-acrobot-quarter", "laber", "huber-1", "−0.3 [−28.2, +26.4]"),
        ("equal-alpha-mountaincar", "per-6", "uniform", "+199.5 [93.6, 302.2]"),
        ("equal-alpha-mountaincar", "per-6", "lap-6", "202.1 [105.2, 302.0]"),
        ("equal-alpha-mountaincar", "per-6", "pal-6", "270.1 [169.4, 369.9]"),
        ("equal-alpha-mountaincar", "per-6", "laber", "175.0 [66.4, 283.4]"),
        ("equal-alpha-cartpole", "per-6", "uniform", "24.3 [10.2, 38.9]"),
        ("equal-alpha-cartpole", "per-4", "uniform", "12.2 [−3.6, 29.5]"),
        ("threshold-cartpole", "per-6", "uniform", "−3.2 [−19.7, 13.2] of 342"),
        ("equal-alpha-cartpole", "laber", "per-6", "−89.0 [−109.6, −67.5]"),
        ("equal-alpha-cartpole", "laber", "huber-1", "−10.4 [−41.8, +20.4]"),
        ("equal-alpha-cartpole", "per-6", "huber-1", "78.5 [53.9, 103.2]"),
        ("after-cartpole", "per-quarter", "uniform-quarter", "+3.9 [−10.0, +18.1]"),
        ("equal-alpha-cartpole-quarter", "per-6", "uniform", "−8.0 [−19.5, +3.8]"),
        ("equal-alpha-cartpole-quarter", "per-4", "pal-4", "42.5 [24.2, 60.1]"),
        ("equal-alpha-cartpole-quarter", "per-6", "pal-6", "30.9 [17.8, 44.0]"),
        ("equal-alpha-cartpole-quarter", "laber", "per-6", "−112.1 [−132.7, −90.8]"),
        ("equal-alpha-cartpole-quarter", "laber", "huber-1", "+12.5 [−11.8, +38.0]"),
        ("step-sizes-cartpole", "lap-quarter", "pal-quarter", "19.9 [8.2, 32.1]"),
        ("step-sizes-cartpole", "lap-four", "pal-four", "33.3 [18.8, 47.7]"),
        ("step-sizes-acrobot", "pal-quarter", "lap-quarter", "−13.3 [−25.0, −3.2]"),
        ("step-sizes-mountaincar", "pal-quarter", "lap-quarter", "−99.0 [−158.6, −45.8]"),
        ("equal-alpha-acrobot-quarter", "per-6", "huber-1", "58.0 [38.9, 79.2]"),
        ("equal-alpha-acrobot", "laber", "huber-1", "+11.8 [4.3, 19.0]"),
    ],
)
def test_differences_that_stand_in_the_prose(name, arm, other, said):
    results = load_study(name)
    scores, baseline = results.scores(arm), results.scores(other)
    text = " ".join(RESULTS.split())
    assert said in text
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", said.replace("−", "-"))]
    digits = len(said.partition(" ")[0].partition(".")[2])
    found = [*paired_difference(scores, baseline)]
    assert numbers[:3] == [round(value, digits) for value in found]
    if len(numbers) > 3:
        digits = len(said.partition(" of ")[2].partition(".")[2])
        assert numbers[3] == round(baseline.mean(), digits)


def test_most_runs_of_the_long_study_of_cartpole_reach_its_threshold():
    results = load_study("threshold-cartpole")
    reached = {
        arm: int((np.nanmax(results.curve(arm)[1], axis=0) >= 475).sum()) for arm in results.arms
    }
    uniform, per, huber = (reached.pop(arm) for arm in ("uniform", "per-6", "huber"))
    text = " ".join(RESULTS.split())
    assert f"{uniform} of 30 runs with uniform replay reach it and {per} with PER" in text
    assert f"Huber's loss and their κ reaches 475 in {huber} of 30 runs" in text
    assert min(reached.values()) > 20
    shorter = load_study("equal-alpha-cartpole"), load_study("after-cartpole")
    most = max(
        (np.nanmax(study.curve(arm)[1], axis=0) >= 475).sum()
        for study in shorter
        for arm in study.arms
    )
    assert f"At most {most} of 30 runs of any method reach a score of 475" in text


def test_what_the_first_and_the_new_pairs_of_cartpole_say_together():
    first, new = load_study("after-cartpole"), load_study("equal-alpha-cartpole")
    gains = [
        first.scores("per") - first.scores("uniform"),
        new.scores("per-6") - new.scores("uniform"),
    ]
    together = paired_difference(np.concatenate(gains), np.zeros(60))
    greedy = [new.scores(arm, "greedy score") for arm in ("per-6", "uniform")]
    text = " ".join(RESULTS.split())
    assert "all sixty together give {:.1f} [{:.1f}, {:.1f}]".format(*together) in text
    assert (
        "and by {:.0f} [{:.0f}, {:.0f}] (exploratory)".format(*paired_difference(*greedy)) in text
    )
    shown = "by {:.0f} [{:.0f}, {:.0f}] of".format(*paired_difference(gains[1], np.zeros(30)))
    assert shown + f" {new.scores('uniform').mean():.0f}" in " ".join(README.split())


@pytest.mark.parametrize(
    "world, arm, other, said",
    [
        ("cartpole", "ladder-8 updates", "ladder-1 updates", "166 [106, 226]: clear"),
        ("cartpole", "copied-8 updates", "ladder-1 updates", "160 [97, 221]: clear"),
        ("cartpole", "one-8 updates", "one-1 updates", "195 [108, 279]: clear"),
        ("cartpole", "ladder-2 frames", "ladder-1 updates", "124 [65, 185]: clear"),
        ("cartpole", "ladder-4 frames", "ladder-1 updates", "76 [7, 141]: borderline"),
        ("mountaincar", "ladder-8 updates", "ladder-1 updates", "311 [192, 431]: clear"),
        ("mountaincar", "ladder-8 updates", "copied-8 updates", "328 [220, 435]: clear"),
        ("mountaincar", "one-1 updates", "ladder-1 updates", "135 [−54, 331]: not"),
        ("mountaincar", "ladder-8 updates", "one-1 updates", "176 [4, 344]: borderline"),
    ],
)
def test_what_more_actors_gain(world, arm, other, said):
    cells = json.loads(gzip.decompress(data_file(f"actors-{world}.json.gz").read_bytes()))["cells"]
    scores, baseline = (
        np.mean(cells["{}-equal-{}".format(*name.split())]["scores"], axis=1)
        for name in (arm, other)
    )
    (judged,) = agreement([(scores, baseline)])
    shown, _, word = said.partition(": ")
    assert shown in " ".join(RESULTS.split())
    assert "{:.0f} [{:.0f}, {:.0f}]".format(*judged.difference) == shown.replace("−", "-")
    assert judged.verdict.startswith(word)


@pytest.mark.parametrize(
    "name", ["base-breakout", "base-space-invaders", "long-breakout", "long-space-invaders"]
)
def test_the_readme_says_what_per_gains_on_minatar(name):
    results = load_study(name)
    per, uniform = results.scores("per"), results.scores("uniform")
    assert verdict(per, uniform) == "clear"
    value, low, high = paired_difference(per, uniform)
    said = f"{value:+.2f} [{low:.2f}, {high:.2f}] of {uniform.mean():.2f}"
    assert said in " ".join(README.replace("−", "-").split())


def test_with_the_published_settings_per_does_not_lose_on_space_invaders():
    per = load_study("per-space-invaders").scores("per")
    uniform = load_study("rate-space-invaders").scores("best-rate", "score over training")
    assert verdict(per, uniform) == "not told apart"
    assert f"{per.mean():.2f} {uniform.mean():.2f}" == "21.13 21.13"
    value, low, high = paired_difference(per, uniform)
    assert f"{value:.2f} [{low:.2f}, {high:.2f}]" == "-0.00 [-0.47, 0.47]"
    assert "half a million: there ±0.47 around 0.00." in README
    said = f"21.13 with PER and 21.13 with uniform replay, an interval of [{low:.2f}, {high:.2f}]"
    assert said in " ".join(RESULTS.replace("−", "-").split())


def test_what_else_is_said_of_per_on_space_invaders_with_the_published_settings():
    base = load_study("base-space-invaders")
    quarter = paired_difference(base.scores("per-quarter"), base.scores("uniform"))
    said = "(there at a quarter of the rate {:.2f} [{:.2f}, {:.2f}])".format(*quarter)
    assert said in " ".join(README.replace("−", "-").split())
    per, uniform = (base.scores(arm, "final score") for arm in ("per", "uniform"))
    assert verdict(per, uniform) == "not told apart"
    said = "{:+.2f} [{:.2f}, {:.2f}]".format(*paired_difference(per, uniform))
    assert f"{said} of {uniform.mean():.2f}" in " ".join(RESULTS.replace("−", "-").split())


@pytest.mark.parametrize("name", ["minatar-space-invaders", "minatar-asterix", "long-asterix"])
def test_elsewhere_on_minatar_the_two_are_not_told_apart(name):
    results = load_study(name)
    assert verdict(results.scores("per"), results.scores("uniform")) == "not told apart"
    if "asterix" in name:  # of which the results say so
        assert max(results.scores(arm).mean() for arm in results.arms) < 1


def test_the_scores_at_pong_are_those_of_the_study():
    pong = load_study("pong")
    found = {
        arm: [f"{score:.1f}" for score in pong.scores(arm, "greedy score")] for arm in pong.arms
    }
    line = f"PER {', '.join(found['per'])}; uniform {', '.join(found['uniform'])}"
    assert line in " ".join(RESULTS.split())


def test_the_readme_says_which_share_of_the_runs_failed():
    *_, uniform, per = (round(value) for value in measured("mountaincar"))
    new = load_study("equal-alpha-mountaincar")
    again = [
        100 * failure_rate(new.scores(arm, "greedy score"), new.facts["failed_below"]).value
        for arm in ("uniform", "per-6")
    ]
    sentence = (
        f"On MountainCar, {uniform} % of the final policies with uniform replay failed, "
        f"and {per} % with PER; in thirty new pairs {again[0]:.0f} % and {again[1]:.0f} %."
    )
    assert sentence in " ".join(README.split())
