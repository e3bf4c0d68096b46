"""`tools/prose_numbers.py`: which numbers it finds in a page, and which source it accepts."""

import tomllib

import nbformat
import pytest
from prose_numbers import ROOT, numbers_in, page, problems

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
    """A notebook with a cell that prints, a cell of prose, and a last one, which never counts."""
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
    words = "word " * 1_300
    assert problems(page(opening.format(10, words)), {}) == []
    assert "is 10 minutes, not 15" in problems(page(opening.format(15, words)), {})[0]


def test_a_snippet_that_is_gone_is_told():
    told = problems(tiny("It is 124 here.", "nothing"), {"is 123 here": "arithmetic: 123"})
    assert len(told) == 2  # the snippet, and the number that it no longer covers


@pytest.mark.parametrize("table, file", [("README", "README.md"), ("results", "docs/results.md")])
def test_what_is_quoted_of_a_page_stands_in_it(table, file):
    """The tool reads notebooks only."""
    text = (ROOT / file).read_text(encoding="utf-8")
    quoted = tomllib.loads((ROOT / "tests/data/numbers.toml").read_text(encoding="utf-8"))[table]
    assert [snippet for snippet in quoted if snippet not in text] == []
