"""The results of a study: what is read from its file, what is refused, and what the report says."""

import gzip
import json
import re

import numpy as np
import pytest
from notebook_files import NOTEBOOKS
from small_study import STUDY

from per_tutorial.common.files import write_table
from per_tutorial.statistics import compare, t_interval
from per_tutorial.studies.results import COLUMNS, StudyResults, load_study, read_results, report

# Results


def results_of(*rows, seeds=(3, 5, 9), metric="score over training"):
    """Results of two arms, made of (arm, seed, measure, at, value)."""
    settings = {"steps": 100}
    stacks = [{"arm": arm, "seeds": list(seeds), "settings": settings} for arm in ("a", "b")]
    facts = {"stacks": stacks, "metric": metric, "comparisons": [["a", "b"]]}
    return StudyResults(facts, [tuple(map(str, row)) for row in rows])


def test_runs_are_paired_by_their_seeds_in_whatever_order_they_were_written():
    results = results_of(
        *(("a", seed, "greedy", 100, 10 * seed) for seed in (9, 3, 5)),
        *(("b", seed, "greedy", 100, seed) for seed in (5, 9, 3)),
    )
    assert results.scores("a", "greedy score").tolist() == [30, 50, 90]
    assert results.scores("b", "greedy score").tolist() == [3, 5, 9]


def test_a_curve_is_nan_where_a_run_has_nothing_to_tell_and_shares_its_grid_with_all_arms():
    results = results_of(
        ("a", 3, "score", 50, 1), ("a", 3, "score", 100, 2), ("a", 9, "score", 100, 4),
        ("b", 5, "score", 100, 7), ("b", 5, "q_value", 60, 0.5),
    )  # fmt: skip
    nan = np.nan
    grid, curve = results.curve("a")
    assert grid.tolist() == [50, 100]
    np.testing.assert_array_equal(curve, [[1, nan, nan], [2, nan, 4]])
    grid, curve = results.curve("b")
    assert grid.tolist() == [50, 100]
    np.testing.assert_array_equal(curve, [[nan, nan, nan], [nan, 7, nan]])
    with pytest.warns(RuntimeWarning, match="empty slice"):
        np.testing.assert_array_equal(results.scores("a"), [1.5, nan, 4])


def test_the_declared_metric_is_the_one_that_counts_unless_another_is_asked_for():
    rows = [("a", seed, "score", at, at * seed) for at in (50, 100) for seed in (3, 5, 9)]
    rows += [("a", seed, "greedy", 100, -seed) for seed in (3, 5, 9)]
    training_scores, greedy_scores = [225, 375, 675], [-3, -5, -9]
    declared = results_of(*rows)
    assert declared.scores("a").tolist() == training_scores
    assert declared.scores("a", "greedy score").tolist() == greedy_scores
    declared = results_of(*rows, metric="greedy score")
    assert declared.scores("a").tolist() == greedy_scores
    assert declared.scores("a", "score over training").tolist() == training_scores
    assert declared.scores("a", "final score").tolist() == [300, 500, 900]


def test_the_report_has_every_arm_and_every_comparison_by_the_rule(finished):
    results = finished[1]
    heading, *arms, title, comparison = report(results).splitlines()
    assert heading == "score over training, 4 runs an arm, 95 % intervals"
    scores = {arm: results.scores(arm) for arm in STUDY.arms}
    for arm, line in zip(STUDY.arms, arms, strict=True):
        words = " ".join(line.split())
        assert words.startswith(f"{arm} mean ")
        assert f"mean {t_interval(scores[arm]):.1f}" in words
        assert f"median {np.median(scores[arm]):.1f} " in words
        greedy = results.scores(arm, "greedy score")
        assert f"failed {(greedy < 12).mean():.0%} [" in words
    assert "t intervals at confidence 1 − 0.05/1; shown:" in title
    (one,) = compare([(scores["per"], scores["uniform"])])
    verdict = "shown" if one.shown else "not shown"
    assert " ".join(comparison.split()) == f"per − uniform {one.difference:+.1f} {verdict}"


# Damaged or missing


def with_facts(folder, change):
    """Change the heading of a finished study."""
    path = folder / "small.csv.gz"
    first, rest = gzip.decompress(path.read_bytes()).decode().split("\n", 1)
    facts = json.loads(first.removeprefix("# "))
    change(facts)
    path.write_bytes(gzip.compress(f"# {json.dumps(facts)}\n{rest}".encode()))


@pytest.mark.parametrize("name", ["part.csv", "study.csv.gz"])
def test_a_file_cut_short_anywhere_is_refused(name, tmp_path):
    path, rows = tmp_path / name, [("a", "0", "score", "20", "-1e-300"), ("β", "1", "q", "2", "12")]
    write_table(path, {"study": "β"}, COLUMNS, rows)
    assert read_results(path) == ({"study": "β", "rows": 2}, [list(row) for row in rows])
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=f"^path: .*{name}' holds no results "):
            read_results(path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="^path: no file '"):
        read_results(path)


@pytest.mark.parametrize(
    "text, said",
    [
        ('# {"rows": 0}\narm,seed,at,measure,value\n', "the columns are arm,seed,at"),
        ('# {"rows": 2}\narm,seed,measure,at,value\na,1,score,2,3\n', "it must have 2 whole rows"),
        ('# {"rows": 1}\narm,seed,measure,at,value\na,x,score,2,3\n', "'x'"),
        ('# {"rows": 1}\narm,seed,measure,at,value\na,1,score,1e3,3\n', "'1e3'"),
        ('# {"rows": 1}\narm,seed,measure,at,value\na,1,score,2,\n', "could not convert"),
        ('# {"rows": 1}\narm,seed,measure,at,value\na,1,score,2\n', "not enough values"),
        ("# {}\narm,seed,measure,at,value\n", "no rows"),
        ("# 7\narm,seed,measure,at,value\n", "int"),
        ("# " + "[" * 100_000 + "\narm,seed,measure,at,value\n", "recursion"),
    ],
)
def test_what_is_no_table_of_results_is_refused(text, said, tmp_path):
    (tmp_path / "part.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"holds no results .*{said}"):
        read_results(tmp_path / "part.csv")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda facts: facts.update(comparisons=[["per", "other"]]), "comparisons: must be one of"),
        (lambda facts: facts.update(comparisons=[["per"]]), "not enough values"),
        (lambda facts: facts.update(metric="luck"), "metric: must be one of"),
        (lambda facts: facts["stacks"][0].pop("arm"), "'arm'"),
        (lambda facts: facts.update(stacks=7), "int"),
    ],
)
def test_a_heading_that_makes_no_sense_is_refused(change, said, copied):
    with_facts(copied, change)
    with pytest.raises(ValueError, match=f"small.csv.gz' holds no results .*{said}"):
        load_study("small", copied)


def test_an_unknown_study_is_told_which_there_are_and_a_reader_without_any_where(
    copied, monkeypatch
):
    with pytest.raises(ValueError, match="^name: must be one of 'small', got 'smal'$"):
        load_study("smal", copied)
    monkeypatch.chdir(copied)
    where = re.escape(repr(str(copied / "results")))
    with pytest.raises(
        FileNotFoundError, match=f"^folder: must hold .* got {where}; .* repository"
    ):
        load_study("small")
    (copied / "results").mkdir()  # as beside a notebook
    (copied / "small.csv.gz").rename(copied / "results" / "small.csv.gz")
    assert load_study("small").seeds == [0, 1, 2, 3]


# The data of the series


def test_a_setting_that_nobody_knows_any_more_is_still_shown(copied):
    new = {"flavour": "mint", "alpha": 7}
    with_facts(copied, lambda facts: [part["settings"].update(new) for part in facts["stacks"]])
    results = load_study("small", copied)
    for settings in results.arms.values():
        assert (settings["flavour"], settings["alpha"]) == ("mint", 7)
    assert report(results)


def test_every_file_of_results_has_a_row_in_the_table():
    folder = NOTEBOOKS / "results"
    table = (folder / "RESULTS.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| ([\w-]+) \|", table, re.MULTILINE)) - {"study"}
    files = {path.name.partition(".")[0] for path in folder.iterdir()}
    assert rows == files - {"RESULTS", "comparisons"}
