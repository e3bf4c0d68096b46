"""Build the site from the committed notebooks, which are never executed for it.

python site/build.py [FOLDER]   by default build/site

Sphinx reads a copy in FOLDER-source: the README as the first page, the notebooks, docs/, and the
pages of this folder.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

SITE = Path(__file__).resolve().parent
ROOT = SITE.parent
# Where sliders need a kernel, the site has a page that needs none: number of the notebook → it.
EXPLORABLES = {"01": "sum-tree", "03": "alpha-beta"}

MENU = """
```{toctree}
:hidden:
:glob:
:caption: The pages
notebooks/*
explorables
```

```{toctree}
:hidden:
:glob:
:caption: The package
docs/*
api
```
"""


def main():
    """Build into the folder that the command line names; the exit status is Sphinx's."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve()
    source = folder.with_name(f"{folder.name}-source")
    for old in (source, folder):
        shutil.rmtree(old, ignore_errors=True)
    stage(source)
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--quiet"]
    command += ["--fail-on-warning", "--keep-going", "--doctree-dir", source / "_doctrees"]
    environment = {"PYTHONPATH": str(ROOT), **os.environ}
    status = subprocess.run([*command, source, folder], env=environment).returncode
    if status == 0:
        print(f"{folder}. To look at it: python -m http.server -d {folder}")
    sys.exit(status)


def stage(source):
    """Lay out all that Sphinx reads."""
    shutil.copytree(SITE, source, ignore=shutil.ignore_patterns("__pycache__", "explorables"))
    shutil.copytree(SITE / "explorables", source / "_extra" / "explorables")
    shutil.copytree(ROOT / "docs", source / "docs")
    (source / "notebooks").mkdir()
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        notebook = prepared(json.loads(path.read_text("utf-8")), EXPLORABLES.get(path.name[:2]))
        (source / "notebooks" / path.name).write_text(json.dumps(notebook), "utf-8")
    for page in (source / "notebooks").glob("*.ipynb"):
        notebook = json.loads(page.read_text("utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = reachable("".join(cell["source"]), Path("notebooks"), source)
        page.write_text(json.dumps(notebook), "utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    (source / "index.md").write_text(readme + MENU, "utf-8")
    for page in (source / "index.md", *(source / "docs").glob("*.md")):
        text = page.read_text("utf-8")
        page.write_text(reachable(text, page.relative_to(source).parent, source), "utf-8")


def prepared(notebook, explorable):
    """A notebook as the site shows it.

    Folded cells open by their own title, pictures have their alternative texts, and an explorable
    stands before the first sliders, which need a kernel.
    """
    cells = []
    for cell in notebook["cells"]:
        code = "".join(cell["source"])
        if (
            explorable
            and cell["cell_type"] == "code"
            and re.search(r"^\s*(\w+ = )?explore\(", code, re.M)
        ):
            frame = (
                f'<iframe class="explorable" src="../explorables/{explorable}/index.html" '
                'title="Try it without a kernel"></iframe>'
            )
            shown = {"cell_type": "markdown", "id": "explorable", "metadata": {}, "source": frame}
            cells.append(shown)
            explorable = None
        if cell["cell_type"] == "code":
            settings = cell["metadata"]["mystnb"] = {}
            title = re.match(r"# @title (.+)", code)
            if title:
                settings["code_prompt_show"] = settings["code_prompt_hide"] = title[1]
            for output in cell["outputs"]:
                data = output.get("data", {})
                if "image/png" in data and "text/plain" in data:
                    settings["image"] = {"alt": "".join(data["text/plain"]).strip("[]\n ")}
        cells.append(cell)
    return {**notebook, "cells": cells}


def reachable(text, folder, source):
    """Markdown whose links to files that the site hasn't got lead to the repository.

    Args:
        folder: of the page, seen from the staged folder and from the repository alike.
        source: the staged folder.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    def lead(link):
        path = os.path.normpath(folder / link[1])
        if (source / path).is_file() or not (ROOT / path).exists():
            return link[0]
        return f"]({project['urls']['Repository']}/blob/main/{path}{link[2]})"

    return re.sub(r"\]\(([^)#:]+)(#[^)]*|)\)", lead, text)


if __name__ == "__main__":
    main()
