"""The one form in which the series' notebooks are written to disk, and what that form allows."""

import os
import re
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}
CELL_METADATA = {"tags"}
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

    Outputs and execution counts are kept as they came: only a full run makes new ones.
    """
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(notebook_metadata(notebook, name))
    name_cells(notebook.cells)
    for cell in notebook.cells:
        kept = {key: value for key, value in cell.metadata.items() if key in CELL_METADATA}
        if FOLDED in kept.get("tags", []):
            kept |= {"jupyter": {"source_hidden": True}, "cellView": "form"}  # JupyterLab, Colab
        cell.metadata = nbformat.from_dict(kept)
    for cell in code_cells(notebook):
        cell.outputs = tidy_outputs(cell.outputs)
    return notebook


def notebook_metadata(notebook, name):
    """All that a published notebook's metadata may hold: the kernel, the GPU wish and the stamp."""
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    if name.startswith("05"):  # the Atari notebook: hours without a GPU
        metadata["accelerator"] = "GPU"
    if "per_tutorial" in notebook.metadata:
        metadata["per_tutorial"] = notebook.metadata.per_tutorial
    return metadata


def is_readable(cell_id):
    """Whether an id is made of words, as against the random ones that editors give."""
    words = re.fullmatch(r"[a-z]+\d*(-([a-z]+\d*|\d+))*", cell_id)
    return bool(words) and not re.fullmatch(r"[0-9a-f]{8}", cell_id)


def name_cells(cells):
    """Keep readable ids; make others from the nearest heading or the cell's first words."""
    reserved = {cell.id for cell in cells if is_readable(cell.id)}
    used = set()
    heading = ""
    for cell in cells:
        found = re.search(r"^#+ (.+)$", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and found:
            heading = found[1]
        if cell.id not in reserved or cell.id in used:
            cell.id = free_id(slug(heading or cell.source), reserved | used)
        used.add(cell.id)


def slug(text):
    """The first five words as an id: '2. Drawing by *priority*' is drawing-by-priority."""
    words = re.findall(r"[a-z]+\d*|\d+", text.lower())
    while words and words[0].isdigit():
        words.pop(0)
    return "-".join(words[:5])[:50] or "cell"


def free_id(stem, taken):
    """`stem`, or the first of stem-2, stem-3, … that is not taken."""
    candidate, count = stem, 1
    while candidate in taken:
        count += 1
        candidate = f"{stem}-{count}"
    return candidate


def tidy_outputs(outputs):
    """Drop live widgets, and leave of every progress bar what it showed last."""
    tidy = []
    streams = {}
    for output in outputs:
        if output.output_type == "stream":
            # stderr carries the progress bars, which a cell's other outputs cut into pieces.
            # Of stdout only neighbours belong together: its place among the others has a meaning.
            earlier = streams.get(output.name)
            if earlier is not None and (output.name == "stderr" or earlier is tidy[-1]):
                earlier.text += output.text
                continue
            streams[output.name] = output
        elif WIDGET_VIEW in output.get("data", {}):
            continue
        tidy.append(output)
    for output in tidy:
        if output.output_type == "stream":
            output.text = last_state(output.text)
    return [output for output in tidy if output.get("text", "shown").strip()]


def last_state(text):
    """What a terminal shows in the end: a carriage return starts its line anew."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
