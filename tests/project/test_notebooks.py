"""The notebooks as they are published: form, saved outputs, stamps, and where exercises stand.

That their cells run is tested beside this file: `make test` runs each in fast mode, through nbval.
"""

import re

import nbformat
import publish
import pytest
from notebook_files import code_cells, normalise, read, series

PATHS = series()
LONGEST_CELL = 40  # lines: what fits a screen
LARGEST_FILE = 2_000_000  # bytes: GitHub shows larger ones as text, or not at all


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return read(path)


def outputs(notebook):
    """(cell id, output) of each saved output."""
    return [(cell.id, output) for cell in code_cells(notebook) for output in cell.outputs]


# Form -------------------------------------------------------------------------------------------


def test_is_written_as_the_tools_write_it(notebook, path):
    # The allowed metadata only, no widgets, no history of progress bars.
    nbformat.validate(notebook)
    unchanged = normalise(read(path), path.name) == notebook
    assert unchanged, f"python tools/publish.py --normalize notebooks/{path.name}"


def test_cells_fit_a_screen_and_the_file_is_small(notebook, path):
    assert path.stat().st_size < LARGEST_FILE
    lines = {cell.id: cell.source.count("\n") + 1 for cell in notebook.cells}
    assert {cell_id: n for cell_id, n in lines.items() if n > LONGEST_CELL} == {}


def test_begins_with_setup_and_imports_and_ends_with_stamp(notebook, path):
    first, second, *_, last = code_cells(notebook)
    assert first.id == "setup"
    assert "imports" in second.metadata.get("tags", [])
    assert notebook.cells[-1] is last
    assert last.source.endswith("stamp()")


# Saved outputs ----------------------------------------------------------------------------------


def test_was_run_from_top_to_bottom_without_errors(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    assert [cell for cell, output in outputs(notebook) if output.output_type == "error"] == []


def test_pictures_have_alternative_text(notebook):
    pictures = 0
    for cell_id, output in outputs(notebook):
        for kind in (kind for kind in output.get("data", {}) if kind.startswith("image/")):
            pictures += 1
            assert output.metadata.get(kind, {}).get("alt", "").strip(), cell_id
        for image in re.findall(r"<img[^>]*>", output.get("data", {}).get("text/html", "")):
            pictures += 1
            assert re.search(r"""alt=["'][^"']""", image), cell_id
    assert pictures > 0
    for cell in notebook.cells:
        assert cell.cell_type == "code" or "![](" not in cell.source, cell.id


def test_formulas_have_no_colours(notebook):
    """None has a contrast of 4.5 both with white and with the grounds of dark themes."""
    assert [cell.id for cell in notebook.cells if "color{" in cell.source] == []


def test_checked_cells_have_something_to_check(notebook):
    checked = [cell for cell in code_cells(notebook) if "NBVAL_CHECK_OUTPUT" in cell.source]
    # nbval passes over a cell without a count, silently.
    assert [cell.id for cell in checked if not (cell.execution_count and cell.outputs)] == []


def test_outputs_are_of_the_code(notebook, path):
    assert publish.is_current(notebook), f"make publish NB=notebooks/{path.name}"


# Exercises: a cell `exercise-K` with a stub and its check, then a cell `solution-K` -------------


def test_each_notebook_has_exercises_and_their_solutions(notebook, path):
    ids = [cell.id for cell in notebook.cells]
    numbers = re.findall(r"^exercise-(\d+)$", "\n".join(ids), re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert len(numbers) >= 2
    sources = "\n".join(cell.source for cell in code_cells(notebook))
    checked = re.findall(r'^check\("(\d\d\.\d+)"', sources, re.MULTILINE)
    assert checked == [f"{path.name[:2]}.{number}" for number in numbers]
    for number in numbers:
        assert ids[ids.index(f"exercise-{number}") + 1] == f"solution-{number}"
