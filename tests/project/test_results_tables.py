"""The tables of docs/results.md about what came after PER are those of the shipped studies."""

import re

import numpy as np
import pytest
import results_tables
from results_tables import CLASSIC, PAGE, PAIRS, is_shipped, parts, tables

from per_tutorial.experiments.cliffwalk.minibatches import updates_until_converged
from per_tutorial.experiments.statistics.estimates import (
    Estimate,
    holm,
    paired_difference,
    paired_t_test,
    signed_rank_test,
    steps_to_threshold,
    summary,
)
from per_tutorial.experiments.statistics.families import Judged
from per_tutorial.experiments.studies.aggregates import normalised_worlds
from per_tutorial.experiments.studies.declared import STUDIES
from per_tutorial.experiments.studies.declared.minatar import LONG_MINATAR_STUDIES, PUBLISHED_SCORES
from per_tutorial.experiments.studies.results import load_study

TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_has_the_tables_of_the_shipped_studies():
    assert parts(TEXT)[1] == tables(), "python tools/results_tables.py --write"


def test_every_shipped_study_of_what_came_after_has_its_column():
    shipped = [name for name in STUDIES if re.match("after-|minatar-", name) and is_shipped(name)]
    known = results_tables.CLASSIC | results_tables.MINATAR
    assert len(shipped) >= 2
    assert all(f"| {known[name]} |" in TEXT for name in shipped)


@pytest.mark.parametrize("study", LONG_MINATAR_STUDIES, ids=lambda study: study.name)
def test_half_a_million_frames_by_hand(study):
    results = load_study(study.name)
    game = results_tables.MINATAR[study.name.replace("long", "minatar")]
    (row,) = re.findall(rf"^\| {game} \| .*$", TEXT, re.MULTILINE)
    difference = results.scores("per").mean() - results.scores("uniform").mean()
    assert f"{difference:+.2f} [".replace("-", "−") in row.split("|")[2]
    last = results.curve("uniform")[1][-1]
    published = PUBLISHED_SCORES[study.arms["uniform"].env][study.arms["uniform"].steps]
    assert row.endswith(
        f"| {last.mean():.2f} ({last.min():.2f} to {last.max():.2f}) | {published:g} |"
    )


def test_what_an_update_at_every_frame_changes():
    last = load_study("updates-breakout").curve("every-frame")[1][-1]
    said = f"ours has {last.mean():.2f} ({last.min():.2f} to {last.max():.2f}) after 200,000 frames"
    assert said in " ".join(TEXT.split())


def test_what_the_published_settings_reach_beside_the_published_curve():
    results = load_study("published-breakout")
    scores = results.scores("published")
    mean, low, high = summary(scores)["mean"]
    published = PUBLISHED_SCORES["MinAtar/Breakout-v1"]
    at_end = published[results.arms["published"].steps]
    grid, curve = load_study("updates-breakout").curve("every-frame")
    adam = curve[grid == 148_000].mean()
    assert adam < low and high < at_end
    grid, curve = results.curve("published")
    text = " ".join(TEXT.split())
    for said in (
        f"five runs have a mean of {mean:.2f} [{low:.2f}, {high:.2f}] after 150,000 frames "
        f"({scores.min():.2f} to {scores.max():.2f}; ",
        f"where the curve is at {at_end:g}, just outside this interval.",
        f"and {adam:.2f} after 148,000",
        f"{curve[grid == 99_000].mean():.2f} after 99,000 frames.",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("study", "first", "said"),
    [
        (
            "rate-breakout",
            200_000,
            {
                100_000: "ours is behind, {} against 4.3",
                200_000: "{} bricks after",
                500_000: "{} after",
            },
        ),
        (
            "rate-space-invaders",
            200_000,
            {200_000: "{} after 200,000 frames", 500_000: "{} after 500,000"},
        ),
        ("rate-freeway", 250_000, {250_000: "ten runs score {}", 500_000: "and {} after 500,000"}),
        (
            "rate-asterix",
            200_000,
            {200_000: "{} after 200,000 frames", 500_000: "{} after 500,000"},
        ),
    ],
)
def test_with_the_best_step_size_the_published_curve_lies_within_the_runs(study, first, said):
    results = load_study(study)
    published = PUBLISHED_SCORES[results.arms["best-rate"].env.replace("-v0", "-v1")]
    grid, curve = results.curve("best-rate")
    text = " ".join(TEXT.split())
    for frames in (first, 500_000):
        runs = curve[grid == frames].squeeze()
        assert len(runs) == 10 and runs.min() < published[frames] < runs.max()
    for frames, words in said.items():
        mean, low, high = summary(curve[grid == frames].squeeze())["mean"]
        assert words.format(f"{mean:.2f} [{low:.2f}, {high:.2f}]") in text
    both = "{:g} and {:g}.".format(*(published[frames] for frames in (first, 500_000)))
    assert f"curve is at {both}" in text


@pytest.mark.slow
def test_a_cell_by_hand():
    """PER − uniform on the Blind Cliffwalk: the mean difference, and the largest p after Holm."""
    study = load_study("after-cliffwalk")
    difference = study.scores("per").mean() - study.scores("uniform").mean()
    pairs = [(study.scores(a), study.scores(b)) for a, b in study.comparisons]
    place = study.comparisons.index(("per", "uniform"))
    p = max(
        holm([test(*pair) for pair in pairs])[place] for test in (paired_t_test, signed_rank_test)
    )
    row = next(line for line in TEXT.splitlines() if line.startswith("| PER − uniform"))
    assert row.startswith(f"| PER − uniform | **{difference:+.3f} [")
    assert f"], p {p:.3f}**" in row.split("|")[2]


@pytest.mark.parametrize(
    "verdict, mark", [("clear", "**"), ("borderline", "*"), ("not told apart", "")]
)
def test_bold_is_clear_and_italics_are_borderline(verdict, mark):
    judged = Judged(Estimate(1.0, 0.5, 1.5), 0.01, (0.01, 0.01, 0.01), verdict)
    assert results_tables.cell_of(judged, "+.1f") == f"{mark}+1.0 [+0.5, +1.5], p 0.010{mark}"


def test_all_pairs_are_declared():
    for name in CLASSIC:
        assert set(PAIRS) <= set(STUDIES[name].comparisons)


def test_a_changed_number_is_noticed(tmp_path, monkeypatch, capsys):
    page = tmp_path / "results.md"
    page.write_text(TEXT.replace("| PER − uniform | **+", "| PER − uniform | **−", 1), "utf-8")
    monkeypatch.setattr(results_tables, "PAGE", page)
    monkeypatch.setattr(results_tables, "tables", lambda: parts(TEXT)[1])
    monkeypatch.setattr("sys.argv", ["results_tables.py"])
    with pytest.raises(SystemExit, match="call this with --write"):
        results_tables.main()
    monkeypatch.setattr("sys.argv", ["results_tables.py", "--write"])
    results_tables.main()
    assert page.read_text(encoding="utf-8") == TEXT


@pytest.mark.slow
def test_studies_that_are_not_shipped_have_no_column(monkeypatch):
    monkeypatch.setattr(results_tables, "is_shipped", lambda name: False)
    assert tables().splitlines() == [results_tables.BEGIN, "", results_tables.END]
    assert set(normalised_worlds(CLASSIC)) <= set(CLASSIC)


@pytest.mark.slow
@pytest.mark.parametrize("line", re.findall(r"^\| (\d+), ([\d.]+) \|(.*)\|$", TEXT, re.MULTILINE))
def test_minibatches_on_the_walk_take_what_is_said(line):
    n, eta, cells = line
    settings = {"draws": "independent", "step_size": float(eta)}
    updates = [
        np.log2(updates_until_converged(int(n), **settings | change))
        for change in ({}, {"draws": "without replacement"}, {"recompute": True})
    ]
    expected = []
    for each in updates[1:]:
        value, low, high = 2 ** np.array(paired_difference(each, updates[0]))
        expected.append(f" {value:.2f} [{low:.2f}, {high:.2f}] ")
    assert cells == "|".join(expected)


@pytest.mark.slow
def test_steps_to_the_threshold_are_what_is_said():
    (row,) = (line for line in TEXT.splitlines() if line.startswith("| ReaPER ("))
    medians, arrived = [], []
    for arm in ("per", "reaper"):
        grid, curve = load_study("after-acrobot").curve(arm)
        medians.append(np.median(steps_to_threshold(curve, grid, -100)))
        grid, curve = load_study("after-cartpole").curve(arm)
        arrived.append(np.isfinite(steps_to_threshold(curve, grid, 475)).sum())
    assert f"on Acrobot a median of {medians[0]:,.0f} for both" in row
    assert medians[0] == medians[1]
    assert f"on CartPole {arrived[0]} and {arrived[1]} of {curve.shape[1]} runs got there" in row
