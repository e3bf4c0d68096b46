"""The table of all comparisons, and the numbers of docs/results.md and of the README's answer."""

import csv

import comparisons
import numpy as np
import pytest
import results_page
from notebook_files import ROOT
from PIL import Image

from per_tutorial.statistics import Estimate, compare, t_interval
from per_tutorial.studies.comparisons import COLUMNS, read_comparisons
from per_tutorial.studies.results import load_study
from per_tutorial.worlds.gains import gains, load_cells

FAMILIES = read_comparisons(comparisons.TABLE)


def test_the_page_and_the_readme_have_the_numbers_and_the_figures_of_the_data():
    text = results_page.PAGE.read_text(encoding="utf-8")
    assert results_page.missing(results_page.wanted(), text) == []
    every, shown = results_page.estimates(), results_page.estimates(shown_only=True)
    for path, found in ((results_page.FIGURE, every), (results_page.SHOWN, shown)):
        with Image.open(path) as figure:
            assert figure.text["Description"] == results_page.described(found)


def less_error(gain):
    """A gain, log2 of uniform replay's error over the method's, as a change of the error in %."""
    value, high, low = (100 * (2**-each - 1) for each in gain)
    form = ".1f" if abs(value) < 10 else ".0f"
    return f"{results_page.signed(Estimate(value, low, high), form)} %"


def test_the_page_has_the_numbers_of_the_small_worlds():
    """No study changes them any more: what they are computed from ran at an earlier commit."""
    cells, cuts, signals, entries = (
        load_cells(name, comparisons.RESULTS) for name in ("map", "cuts", "signals", "entries")
    )
    every = {name: [gains(cell, name) for cell in cells.values()] for name in ("per", "rank")}
    verdicts = compare([(gain, 0 * gain) for name in every for gain in every[name]])
    assert len(verdicts) == 60 and not any(one.difference.high < 0 for one in verdicts)
    said = [less_error(t_interval(np.mean(every[name], axis=0))) for name in every]
    for name in ("outliers-n5-noise0.0-outliers=0.01", "batch-n5-noise0.0-batch=64"):
        said.append(less_error(t_interval(gains(cuts[name], "per"))))
    for found, study, name in (
        (signals, "signals", "per"),
        (entries, "entries", "entered"),
        (signals, "signals", "fresh"),
    ):
        each = [gains(found[f"{study}-n{n}-noise0.0-"], name) for n in (4, 5, 6)]
        said.append(less_error(t_interval(np.mean(each, axis=0))))
    text = results_page.PAGE.read_text(encoding="utf-8")
    assert results_page.missing([*said, "Of the 60 comparisons with uniform replay, 0"], text) == []


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_the_pages_have_the_share_of_policies_that_fail_on_mountaincar(page):
    shares = []
    for name, arms in (
        ("ablation-mountaincar", ("dqn-uniform", "dqn-per")),
        ("equal-alpha-mountaincar", ("uniform", "per-6")),
    ):
        study = load_study(name, comparisons.RESULTS)
        for arm in arms:
            failed = study.scores(arm, "greedy score") < study.facts["failed_below"]
            shares.append(f"{100 * failed.mean():.0f} %")
    said = "{} with uniform replay, {} with PER; when we ran it again, {} and {}".format(*shares)
    assert results_page.missing([said], (ROOT / page).read_text(encoding="utf-8")) == []


def test_a_wrong_number_is_found():
    text = "It gained +1.5 [0.2,\n2.8] and −3,000 in all."
    sentences = ["gained +1.5 [0.2, 2.8] and −3,000", "gained +1.6 [0.2, 2.8]"]
    assert results_page.missing(sentences, text) == sentences[1:]


def test_the_answer_in_the_readme_holds():
    rows, verdicts, *_ = results_page.judged("one rate")
    shown = {sign: set() for sign in (1, -1)}
    for row, one in zip(rows, verdicts, strict=True):
        if one.shown:
            shown[np.sign(one.difference.value)].add(row.world.split()[-1])
    assert shown[1] == {"MountainCar", "Pong", "Breakout", "CartPole", "Cliffwalk"}
    assert shown[-1] == {"FrozenLake"}
    assert {"Acrobot", "LunarLander"} <= {row.world for row in rows}


@pytest.mark.slow
def test_the_table_is_that_of_the_studies():
    heading, columns, *lines = comparisons.TABLE.read_text(encoding="utf-8").splitlines()
    recorded = list(csv.reader(lines))
    assert columns == ",".join(COLUMNS)
    for row, new in zip(recorded, comparisons.table(), strict=True):
        assert row[:8] == [str(value) for value in new[:8]], "python tools/comparisons.py"
        assert [float(value) for value in row[8:]] == pytest.approx([*map(float, new[8:])])


def test_studies_with_the_same_settings_are_tries_of_one_comparison_and_their_runs_count_once():
    """The runs of plain DQN in `ablation-acrobot` are those of `after-acrobot`."""
    same = ("Acrobot", "20k steps, 128 units, η")
    (row,) = (row for row in FAMILIES["one rate"] if (row.world, row.setting) == same)
    curves = []
    for name, *arms in (
        ("ablation-acrobot", "dqn-per", "dqn-uniform"),
        ("equal-alpha-acrobot", "per-6", "uniform"),
        ("tuned-acrobot", "per", "uniform"),  # both sides chose the same rate
    ):
        study = load_study(name, comparisons.RESULTS)
        for side, arm in zip(row.scores, arms, strict=True):
            np.testing.assert_allclose(side[row.studies == name], study.scores(arm), rtol=1e-12)
        curves.append(study.curve(arms[1])[1])
    assert len(row.studies) == 90
    assert row.range == pytest.approx(np.ptp(np.nanmean(np.concatenate(curves, axis=1), axis=1)))
