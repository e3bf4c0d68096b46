"""Build the site from the committed notebooks, which are never executed for it.

python site/build.py [FOLDER]   by default build/site

Sphinx reads a copy of everything in build/site-source: the pages of this folder, the notebooks with
small changes for the screen (see `prepared`), docs/ with its measurements gathered on two pages
(`measurements.py`), and the pages that `generated.py` writes.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SITE = Path(__file__).resolve().parent
ROOT = SITE.parent
sys.path[:0] = [str(ROOT), str(SITE)]

import measurements  # noqa: E402
from explorable_pages import FOLDER, SLIDERS, frame  # noqa: E402
from generated import studies, write_pages  # noqa: E402

# An entry of Font Awesome's table: "name":[width,height,[aliases],"code point","path"],
ICON = (
    r'"?(?P<name>[\w-]+)"?:\[\d+,\d+,\[(?P<aliases>[^\]]*)\],'
    r'"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?'
)


def main():
    """Build into the folder that the command line names; the exit status is Sphinx's."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site")
    folder = parser.parse_args().folder.resolve()
    source = folder.with_name(f"{folder.name}-source")
    for old in (source, folder):
        shutil.rmtree(old, ignore_errors=True)
    stage(source)
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--quiet"]
    command += ["--fail-on-warning", "--keep-going", "--doctree-dir", source / "_doctrees"]
    environment = {"PYTHONPATH": str(ROOT), **os.environ}
    status = subprocess.run([*command, source, folder], env=environment).returncode
    if status == 0:
        # What a visitor downloads is the notebook itself, not our copy.
        for path in notebooks():
            shutil.copy(path, folder / "_sources" / "notebooks")
        slim(folder)
        megabytes = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6
        print(f"{folder}: {megabytes:.1f} MB. To look at it: python -m http.server -d {folder}")
    sys.exit(status)


def notebooks():
    """The paths of the series' notebooks, in reading order."""
    return sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def stage(source):
    """Lay out all that Sphinx reads."""
    hidden = shutil.ignore_patterns("__pycache__", "explorables", "*.py")
    shutil.copytree(SITE, source, ignore=hidden)
    for module in ("conf.py", "rendering.py"):
        shutil.copy(SITE / module, source)
    (source / "_extra").mkdir()
    shutil.copytree(FOLDER, source / "_extra" / "explorables")
    docs = source / "docs"
    shutil.copytree(ROOT / "docs", docs)
    for picture in docs.glob("sum_tree.*"):
        shutil.copy(picture, source / "_static")
    gone = measurements.gather(docs)
    with (docs / "results.md").open("a", encoding="utf-8") as results:
        results.write(f"\n{studies(measurements.folded)}")
    for page in (docs / "results.md", docs / "speed.md"):
        text = page.read_text("utf-8")
        page.write_text(measurements.fold_long_tables(text), "utf-8")
    (source / "notebooks").mkdir()
    for path in notebooks():
        text = json.dumps(prepared(json.loads(path.read_text("utf-8")), path.stem))
        (source / "notebooks" / path.name).write_text(text, "utf-8")
    for page in (*docs.glob("*.md"), *source.glob("*.md"), *source.glob("notebooks/*.ipynb")):
        page.write_text(measurements.redirected(page.read_text("utf-8"), gone), "utf-8")
    write_pages(source)


def prepared(notebook, name):
    """A notebook as the site shows it.

    Folded cells carry their own title, and before sliders, which need a kernel, comes the page that
    needs none.
    """
    cells = []
    for cell in notebook["cells"]:
        explorable = SLIDERS.get((name, cell.get("id")))
        if explorable:
            source = frame(explorable, root="../")
            cells.append({"cell_type": "markdown", "metadata": {}, "source": source})
        if cell["cell_type"] == "code":
            fold(cell)
        cells.append(cell)
    return {**notebook, "cells": cells}


def fold(cell):
    """Give a folded cell the title in its first line to be opened by."""
    first, _, rest = "".join(cell["source"]).partition("\n")
    title = first.removeprefix("# @title ")
    if title != first:
        cell["source"] = rest
    else:
        title = "Code"
    cell["metadata"]["mystnb"] = {"code_prompt_show": title, "code_prompt_hide": title}


def slim(folder):
    """Leave out what no visitor needs: source maps, templates, translations, unused icons.

    The theme loads all 2,000 icons on every page, which is more than everything else together.
    """
    for unneeded in [*folder.rglob("*.map"), *(folder / "_static").glob("*.html")]:
        unneeded.unlink()
    shutil.rmtree(folder / "_static" / "locales")
    scripts = folder / "_static" / "scripts"
    pages = [*folder.rglob("*.html"), *scripts.glob("*theme.js")]
    used = {name for page in pages for name in re.findall(r"fa-([\w-]+)", page.read_text("utf-8"))}

    def kept(icon):
        """The icon's entry in the table, or nothing."""
        names = {icon["name"], *re.findall(r'"([\w-]+)"', icon["aliases"])}
        return icon[0] if names & used else ""

    icons = scripts / "fontawesome.js"
    text, found = re.subn(ICON, kept, icons.read_text("utf-8"))
    if found < 1000:
        raise RuntimeError(f"{icons}: its table of icons has another form than this build knows")
    icons.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
