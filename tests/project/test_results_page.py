"""docs/results.md and the README's answer: what `tools/results_page.py` computes from the data."""

import functools
import sys

import numpy as np
import pytest
from notebook_files import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import results_page  # noqa: E402

from per_tutorial.statistics import compare  # noqa: E402
from per_tutorial.studies import evidence  # noqa: E402
from per_tutorial.studies.results import load_study  # noqa: E402

per_minus_uniform = functools.cache(evidence.per_minus_uniform)


@pytest.mark.slow
def test_the_pages_have_the_numbers_and_the_figure_of_the_data():
    pages, rows = results_page.wanted()
    for path, sentences in pages.items():
        assert results_page.missing(sentences, path.read_text(encoding="utf-8")) == [], path.name
    assert len(pages[results_page.PAGE]) > 15
    text = results_page.PAGE.read_text(encoding="utf-8")
    assert rows in text
    assert results_page.FIGURE.read_bytes() == results_page.figure()


def test_a_wrong_number_is_found():
    text = "It gained +1.5 [0.2,\n2.8] and −3,000 in all."
    sentences = ["gained +1.5 [0.2, 2.8] and −3,000", "gained +1.6 [0.2, 2.8]"]
    assert results_page.missing(sentences, text) == sentences[1:]


@pytest.mark.slow
def test_the_answer_in_the_readme_holds():
    rows = per_minus_uniform()
    family = compare([row.scores for row in rows])
    shown = {sign: set() for sign in (1, -1)}
    for row, one in zip(rows, family, strict=True):
        if one.shown:
            shown[np.sign(one.difference.value)].add(row.world.split()[-1])
    assert shown[1] == {"MountainCar", "Breakout", "CartPole", "Cliffwalk"}
    assert shown[-1] == {"FrozenLake"}
    assert {"Acrobot", "LunarLander"} <= {row.world for row in rows}


@pytest.mark.slow
def test_the_same_runs_count_once():
    rows = per_minus_uniform(("ablation-acrobot", "after-acrobot"))
    plain = [row for row in rows if row.setting == "20k steps, 128 units, η"]
    assert [len(row.scores[0]) for row in plain] == [30]
    assert list(plain[0].tries) == ["ablation-acrobot"]


@pytest.mark.slow
def test_tries_of_one_comparison_are_pooled():
    names = "after-acrobot", "equal-alpha-acrobot"
    (row,) = (row for row in per_minus_uniform(names) if row.setting.endswith(" η"))
    assert list(row.tries) == list(names)
    first, new = (load_study(name) for name in names)
    expected = [
        *(first.scores("per") - first.scores("uniform")),
        *(new.scores("per-6") - new.scores("uniform")),
    ]
    np.testing.assert_array_equal(row.scores[0] - row.scores[1], expected)
    np.testing.assert_array_equal(np.concatenate(list(row.tries.values())), expected)


@pytest.mark.slow
def test_the_kinds_of_comparisons_do_not_overlap():
    names = ("sb3-cartpole", "equal-alpha-acrobot", "sb3-pendulum-sac")
    same = {(row.world, row.setting) for row in per_minus_uniform(names)}
    assert ("SB3 DQN CartPole", "8k steps, η/4") in same
    assert len(same) == 5  # of SAC the baseline is our uniform replay at η, and SB3's at η/4
    assert [row.world for row in evidence.other_exponents(names)] == ["Acrobot"]
    assert len(evidence.quarter_minus_full(names)) == 2
    methods = [row.method for row in evidence.newer_minus_per(names)]
    assert set(methods) == set(evidence.METHODS.values())
    assert len(methods) == 9
