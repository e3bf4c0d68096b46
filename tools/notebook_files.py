"""The one form in which the series' notebooks are written to disk."""

import os
from pathlib import Path

import nbformat
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
FOLDED = "hide-input"  # the tag of cells that only draw; the site folds them by this tag alone


def series():
    """The paths of the series' notebooks, in reading order."""
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def read(path):
    """The notebook at `path`, raised to the newest nbformat."""
    return nbformat.read(path, as_version=4)


def write(notebook, path):
    """Write all of the notebook or nothing: the old file stays until the new one is complete."""
    part = Path(path).with_suffix(".part")
    nbformat.write(notebook, part)
    os.replace(part, path)


def code_cells(notebook):
    """The notebook's code cells, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def normalise(notebook, name):
    """Bring a notebook into its published form, in place; `name` is its file name.

    Its metadata are the kernel, the wish for a GPU and the stamp, those of a cell its tags and what
    folds it. Live widgets go, and of a progress bar only what it showed last is kept.
    """
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    if name.startswith("05"):  # the Atari notebook: hours without a GPU
        metadata["accelerator"] = "GPU"
    if "per_tutorial" in notebook.metadata:
        metadata["per_tutorial"] = notebook.metadata.per_tutorial
    notebook.metadata = nbformat.from_dict(metadata)
    CoalesceStreamsPreprocessor().preprocess(notebook, {})
    for cell in notebook.cells:
        kept = {"tags": cell.metadata.tags} if "tags" in cell.metadata else {}
        if FOLDED in kept.get("tags", []):
            kept |= {"jupyter": {"source_hidden": True}, "cellView": "form"}  # JupyterLab, Colab
        cell.metadata = nbformat.from_dict(kept)
    for cell in code_cells(notebook):
        outputs = [each for each in cell.outputs if WIDGET_VIEW not in each.get("data", {})]
        cell.outputs = [each for each in outputs if each.get("text", "shown").strip()]
    return notebook
