"""Every number in the prose is one that a cell prints, or has a source in tests/data/numbers.toml.

What counts as a number, and what is passed over (formulas, code, references, counts up to ten without a
unit), is told in tests/support/prose_numbers.py. A number with three significant digits may be printed
anywhere in the notebook, or be a constant of its code. One or two digits would be found anywhere: they
must come from a cell at most four away, or repeat a number that does.

How much is that worth? Seven numbers in ten are looked up, the others are listed. Of those looked up,
more than eight in ten have a source within four cells. If the last digit of a number is changed, the
test notices it more than three times out of four, and nine times out of ten if the number has three
significant digits: else the changed number happens to stand in a cell near, too. These shares are held
below. Not noticed is a right number in a wrong sentence.
"""

import copy
import functools
import re
import tomllib

import nbformat
import numpy as np
import pytest
from notebook_files import ROOT, read, series
from prose_numbers import (
    NEAR,
    SUPERSCRIPTS,
    Sources,
    claims,
    covered_by,
    numbers_in,
    page,
    printed_numbers,
    problems,
)
from results_tables import parts

from per_tutorial.experiments.statistics.estimates import (
    failure_rate,
    paired_difference,
    verdict,
)
from per_tutorial.experiments.statistics.families import agreement
from per_tutorial.experiments.studies.results import load_study

LISTED = tomllib.loads((ROOT / "tests" / "data" / "numbers.toml").read_text(encoding="utf-8"))
PATHS = series()
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_number_in_the_prose_has_a_source(path):
    assert problems(read(path), LISTED.get(path.stem, {})) == []


def test_sources_are_listed_for_pages_that_there_are():
    pages = {path.stem for path in PATHS} | {"README", "results"}
    assert set(LISTED) <= pages


# What is found ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prose, expected",
    [
        ("after 20,000 steps", [20_000]),
        ("its error is 1.60, the other's −0.5", [1.6, -0.5]),
        ("by 3.9 [2.0, 5.8] and 12.5 %", [3.9, 2.0, 5.8, 0.125]),
        ("73 to 83 % fail, or 38–47 %", [0.73, 0.83, 0.38, 0.47]),
        ("7 % and 3 × as often", [0.07, 3]),
        ("1.5 million frames in 7 GB", [1_500_000, 7]),
        ("2¹⁷ transitions, 10⁴, 3·10⁻², 10^-6", [2**17, 10**4, 0.03, 1e-6]),
        ("the first 12 of 16, and 1e-3", [12, 16, 1e-3]),
        ("[01 · A](01_a.ipynb) takes 12 s, if a < 13 and b > 14", [12, 13, 14]),
        ("84 × 84 pixels, 512-256-64 units", [84, 84, 512, 256, 64]),
    ],
)
def test_numbers_are_found_as_they_are_written(prose, expected):
    assert [claim.value for claim in numbers_in(prose)] == pytest.approx(expected)


@pytest.mark.parametrize(
    "prose",
    [
        "two actions, 3 states and 10 runs",
        "see section 14, sections 11 and 12, notebook 03, figure 12, Mistake 15",
        "## 12. A heading",
        "12. An item\n    13. another",
        "**15.** An exercise",
        "Schaul et al., 2016, arXiv:1511.05952, and [2024](https://arxiv.org/abs/2407.09702)",
        "`x = 1234`, $y = 1234$, $$z =\n1234$$, ![1234](1234.png)",
        "```python\nx = 1234\n```",
        "float32, s15, version 2.13, 0.1.0, issue #2927",
        "[03 · Prioritised replay](03_per_dqn.ipynb)",
        "<details open=12>",
    ],
)
def test_what_claims_nothing_is_passed_over(prose):
    assert numbers_in(prose) == ()


def tiny(prose, printed, code="x = 0"):
    """A notebook with a cell that prints, a cell of prose, and the last cell, which never counts."""
    new = nbformat.v4
    cell = new.new_code_cell(code, outputs=[new.new_output("stream", name="stdout", text=printed)])
    return new.new_notebook(
        cells=[cell, new.new_markdown_cell(prose), new.new_code_cell("stamp()")]
    )


@pytest.mark.parametrize(
    "printed, right, wrong",
    [
        ("mean 1.5978", "It is 1.6.", "It is 1.5."),
        ("mean 1.5978", "It is 1.598.", "It is 1.599."),
        ("mean 1.6", "It is 1.60.", "It is 1.61."),
        ("share 0.0031", "It is 0.3 %.", "It is 0.4 %."),
        ("failed 83% [66%, 93%]", "83 % fail.", "84 % fail."),
        ("12 of 30", "It is 12.", "It is 12 %."),
        ("gain -3.2", "It falls by 3.2.", "It falls by 3.3."),
        ("gain 3.2", "It changes by 3.2.", "It changes by −3.2."),
        ("steps 5350", "After 5,350 steps.", "After 5,450 steps."),
        ("steps 4,813", "After about 4,800 steps.", "After 4,800 steps."),
        ("size 1.234e-05", "It is 1.2e-05.", "It is 1.3e-05."),
        ("rate 2e-1", "It is 0.2.", "It is 0.21."),
    ],
)
def test_prose_may_round_what_is_printed(printed, right, wrong):
    assert problems(tiny(right, printed), {}) == []
    assert len(problems(tiny(wrong, printed), {})) == 1


def test_settings_count_as_they_are_written():
    code = "config = Config(alpha=0.7, steps=20_000, size=2**17)"
    right = "With α = 0.7, in 20,000 steps, of 131,072 each."
    assert problems(tiny(right, "done", code), {}) == []
    assert len(problems(tiny("With α = 0.75.", "done", "alpha = 0.7485"), {})) == 1


def test_what_is_far_away_counts_only_if_it_says_much():
    far = tiny("It is 32, not 5,350.", "32 and 5350")
    far.cells[1:1] = [nbformat.v4.new_markdown_cell("More.") for _ in range(NEAR)]
    (told,) = problems(far, {})
    assert "32 (cell 5)" in told


def test_pictures_and_videos_print_nothing():
    shown = {"image/png": "", "text/plain": "[a curve that ends at 123]"}
    notebook = tiny("It is 123.", "nothing")
    notebook.cells[0].outputs.append(nbformat.v4.new_output("display_data", data=shown))
    assert len(problems(notebook, {})) == 1
    table = "<style>td {width: 99px}</style><table><tr><td>123</td></tr></table>"
    notebook.cells[0].outputs.append(nbformat.v4.new_output("display_data", {"text/html": table}))
    assert problems(notebook, {}) == []


# What is listed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, complaint",
    [
        ("arithmetic: 2**7 - 5", None),
        ("arithmetic: 2**7 - 6", "not there"),
        ("setting batch_size", "not there"),
        ("cell nowhere", "no cell"),
        ("results pong.csv.gz", "not there"),
        ("results nothing.csv: its rows", "has no nothing.csv"),
        ("link http:/somewhere", "no address"),
        ("link https://arxiv.org/abs/1511.05952", None),
        ("paper section 3.3: its text", None),
        ("definition:", "say more"),
        ("I know it", "begins with none"),
    ],
)
def test_a_listed_source_must_hold_the_number(source, complaint):
    told = problems(tiny("It is 123 here.", "nothing"), {"is 123 here": source})
    assert told == [] if complaint is None else complaint in told[0]


def test_the_reading_time_is_the_measured_one():
    opening = "**Reading time:** about {} minutes, without exercises. {}"
    words = "word " * 2_400
    assert problems(page(opening.format(10, words)), {}) == []
    assert "is 10 minutes, not 15" in problems(page(opening.format(15, words)), {})[0]


def test_a_snippet_that_is_gone_is_told():
    told = problems(tiny("It is 124 here.", "nothing"), {"is 123 here": "arithmetic: 123"})
    assert len(told) == 2  # the snippet, and the number that it no longer covers


# How much would be noticed ----------------------------------------------------------------------


def with_last_digit_changed(notebook, claim):
    """A copy of the notebook in which the claim's last digit, zeros left out, is another."""
    changed = copy.copy(notebook)
    changed.cells = list(notebook.cells)
    source = notebook.cells[claim.cell].source
    number = source[claim.start : claim.end]
    digits = [i for i, letter in enumerate(number) if letter.isdigit()]
    place = max((i for i in digits if number[i] not in "0⁰"), default=digits[-1])
    digit = str(int(number[place].translate(SUPERSCRIPTS)) % 9 + 1)
    number = number[:place] + digit + number[place + 1 :]
    source = source[: claim.start] + number + source[claim.end :]
    changed.cells[claim.cell] = nbformat.v4.new_markdown_cell(source)
    return changed


def in_order():
    """(notebook, its listed sources, its own) of each notebook that the first test passes."""
    for path in PATHS:
        notebook, listed = read(path), LISTED.get(path.stem, {})
        sources = Sources.of_notebook(notebook)
        if not problems(notebook, listed, sources):
            yield notebook, listed, sources


def test_a_changed_number_is_noticed_in_three_cases_of_four():
    noticed, telling = [], []
    for notebook, listed, sources in in_order():
        for claim in claims(notebook):
            changed = with_last_digit_changed(notebook, claim)
            noticed.append(problems(changed, listed, sources) != [])
            if claim.digits >= 3:
                telling.append(noticed[-1])
    assert len(noticed) > 200
    assert sum(noticed) / len(noticed) > 0.75
    assert sum(telling) / len(telling) > 0.85


def test_most_numbers_have_their_source_near():
    distances = []
    for notebook, listed, sources in in_order():
        found = claims(notebook)
        at_listed = {claim for snippet in listed for claim in covered_by(snippet, notebook, found)}
        distances += [sources.distance(claim) for claim in found if claim not in at_listed]
    near = sum(distance is not None and distance <= NEAR for distance in distances)
    assert near / len(distances) > 0.8


# Other pages ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("world", ["MountainCar", "CartPole", "Acrobot"])
def test_the_table_of_results_is_what_the_studies_found(world):
    (row,) = re.findall(rf"^\| {world}.*?\|(.*)$", RESULTS, re.MULTILINE)
    shown = [float(number.replace("−", "-")) for number in re.findall(r"[−+]?\d+", row)]
    assert shown == [round(value) for value in measured(world.lower())]


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
    assert shown == ("< 0.001" if judged.p < 0.001 else f"{judged.p:.3f}")


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


def test_the_readme_says_what_came_out_in_half_a_million_frames():
    readme = " ".join(README.replace("−", "-").split())
    for game, said in (
        ("breakout", "PER broke {:.2f} bricks an episode, and uniform replay {:.2f}: {}."),
        (
            "space-invaders",
            "PER was worse: {:.2f} points an episode, and uniform replay {:.2f}, {}.",
        ),
    ):
        results = load_study(f"long-{game}")
        per, uniform = results.scores("per"), results.scores("uniform")
        assert verdict(per, uniform) == "clear"
        value, low, high = paired_difference(per, uniform)
        difference = f"{value:+.2f} [{low:.2f}, {high:.2f}]"
        assert said.format(per.mean(), uniform.mean(), difference) in readme


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


def test_each_number_of_the_results_has_a_source():
    rows = ("| MountainCar", "| CartPole, up", "| Acrobot", "| DQN, ", "| SAC, ", "| TD3, ")
    rows += ("| the same for both", "| as published")
    held = ("| 8, ", "| 10, ", "| 12, ", "| ReaPER (")  # by test_results_tables.py, too
    table = "\n".join(
        line for line in RESULTS.splitlines() if line.startswith(rows + held) or "→" in line
    )
    pong = (ROOT / "per_tutorial" / "results" / "pong.md").read_text(encoding="utf-8")
    _, of_studies, _ = parts(RESULTS)  # test_results_tables.py holds them
    tested_above = table + of_studies + RESULTS[RESULTS.index("The scores of the final agents") :]
    sources = Sources((0, one) for one in printed_numbers(tested_above + pong))
    assert problems(page(RESULTS), LISTED["results"], sources) == []


def test_the_readme_says_what_the_results_say():
    speeds = re.search(r"## Three numbers\n.*?side by side:.*?times\.", README, re.DOTALL)[0]
    others = README.replace(speeds, "")  # test_readme.py holds the speeds
    sources = Sources((0, one) for one in printed_numbers(RESULTS))
    assert problems(page(others), LISTED["README"], sources) == []
    *_, uniform, per = (round(value) for value in measured("mountaincar"))
    sentence = (
        f"On MountainCar, {uniform} % of the runs with uniform replay failed, and {per} % with PER."
    )
    assert sentence in " ".join(README.split())
