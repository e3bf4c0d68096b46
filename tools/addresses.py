"""Carry the repository's address from pyproject.toml to every place that shows it.

python tools/addresses.py          name the files that disagree with pyproject.toml
python tools/addresses.py --write  put them right

The places: the Colab badges of the README and of each notebook, the notebooks' set-up cells, the
`git clone` and `git+` lines of the pages, and CITATION.cff.
"""

import argparse
import re
import sys
import tomllib

import nbformat
from notebook_files import ROOT, code_cells, read, series, write

PAGES = ("README.md", "CONTRIBUTING.md", "CITATION.cff")
BADGE = "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"

SETUP_CELL = """\
# On Colab this installs the tutorial's package. Where the package is already there, nothing happens;
# what else is installed keeps its version.
import importlib.util

if importlib.util.find_spec("per_tutorial") is None:
    %pip install --quiet "per_tutorial @ git+{address}\""""


def address():
    """The repository's address: `https://github.com/<owner>/<repository>`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project["urls"]["Repository"]


def setup_cell():
    """The source of every notebook's first code cell."""
    return SETUP_CELL.format(address=address())


def colab_badge(name):
    """The Markdown of the badge that opens the notebook of this file name on Colab."""
    repository = address().removeprefix("https://github.com/")
    host = "https://colab.research.google.com/github"
    return f"{BADGE}({host}/{repository}/blob/main/notebooks/{name})"


def corrected_text(text):
    """A page with every mention of the repository's address made right."""
    badge = re.escape(BADGE) + r"\([^)]*/notebooks/([\w.]+)\)"
    text = re.sub(badge, lambda found: colab_badge(found[1]), text)
    before = r"(git clone |git\+|^repository-code: )https://github\.com/[\w.-]+/[\w.-]+"
    return re.sub(before, rf"\g<1>{address()}", text, flags=re.MULTILINE)


def correct_notebook(notebook, name):
    """Give a notebook, in place, its badge under the title and its set-up cell."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = corrected_text(cell.source)
    opening = notebook.cells[0]
    if colab_badge(name) not in opening.source:
        title, _, rest = opening.source.partition("\n")
        opening.source = f"{title}\n\n{colab_badge(name)}\n{rest}".rstrip()
    if not any(cell.id == "setup" for cell in notebook.cells):
        place = notebook.cells.index(code_cells(notebook)[0])
        notebook.cells.insert(place, nbformat.v4.new_code_cell(id="setup"))
    next(cell for cell in notebook.cells if cell.id == "setup").source = setup_cell()


def disagreeing(correct=False):
    """The names of the files whose addresses differ from pyproject.toml's; `correct` mends them."""
    names = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        if corrected_text(text) != text:
            names.append(page)
            if correct:
                (ROOT / page).write_text(corrected_text(text))
    for path in series():
        notebook = read(path)
        correct_notebook(notebook, path.name)
        if notebook != read(path):
            names.append(path.name)
            if correct:
                write(notebook, path)
    return names


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put right what disagrees")
    options = parser.parse_args()
    names = disagreeing(correct=options.write)
    if names and not options.write:
        sys.exit(f"another address than pyproject.toml's: {', '.join(names)}")
    print(*(f"corrected {name}" for name in names), sep="\n", end="\n" if names else "")


if __name__ == "__main__":
    main()
