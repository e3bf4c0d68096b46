"""Run notebooks from top to bottom, in full, and write them as they are published.

python tools/publish.py NOTEBOOK...      run, tidy, stamp and write; an error changes no file
python tools/publish.py --normalize ...  run nothing: tidy ids, metadata and outputs
python tools/publish.py --check ...      change nothing: name those whose outputs are of other code

Without a notebook's name, all of the series. A stamp says of which code of its own, commit and
versions a page's outputs are. A page is run again when its own code has changed, and every page
before a release. A change of the package alone leaves the stamp current.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from notebook_files import NOTEBOOKS, ROOT, code_cells, normalise, read, series, write

from per_tutorial import __version__
from per_tutorial.common.provenance import versions

VIDEOS = ROOT / "videos"


def publish(path):
    """Run a notebook in a fresh kernel, in full mode, and write it with its outputs and stamp.

    Its films replace those in `videos/`, if it gets to its end.
    """
    notebook = normalise(read(path), path.name)
    environment = {key: value for key, value in os.environ.items() if key != "PER_TUTORIAL_FAST"}
    resources = {"metadata": {"path": str(NOTEBOOKS)}}
    client = NotebookClient(notebook, resources=resources, timeout=None, record_timing=False)
    with tempfile.TemporaryDirectory() as films:
        start = time.perf_counter()
        client.execute(env=environment | {"PER_TUTORIAL_VIDEOS": films})
        stamp = stamp_of(notebook, time.perf_counter() - start)
        for film in Path(films).iterdir():
            shutil.copy(film, VIDEOS)
    notebook.metadata.per_tutorial = nbformat.from_dict(stamp)
    write(normalise(notebook, path.name), path)
    print(f"{path.name}: {stamp['seconds']:.0f} s")


def stamp_of(notebook, seconds):
    """The stamp of a run that has just ended, after `seconds`, in this environment."""
    return {
        "code": code_hash(notebook),
        "commit": commit(),
        "per_tutorial": __version__,
        "seconds": round(seconds, 1),
        **versions("torch", "numpy", "gymnasium", "numba"),
    }


def is_current(notebook):
    """Whether the notebook's code is that of its outputs."""
    return notebook.metadata.get("per_tutorial", {}).get("code") == code_hash(notebook)


def code_hash(notebook):
    """The SHA-256 of the code cells, but for the set-up cell: that one computes nothing."""
    sources = [cell.source for cell in code_cells(notebook) if cell.id != "setup"]
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()


def commit():
    """The commit that is checked out, with a + if files of the package differ from it."""
    head = ["git", "rev-parse", "--short=7", "HEAD"]
    changed = ["git", "status", "--porcelain", "--", "per_tutorial"]
    name, changes = (subprocess.check_output(each, cwd=ROOT, text=True) for each in (head, changed))
    return name.strip() + "+" * bool(changes)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--normalize", action="store_true", help="tidy only, run nothing")
    mode.add_argument("--check", action="store_true", help="name the stale ones, change nothing")
    options = parser.parse_args()
    paths = options.notebooks or series()
    if options.check:
        stale = [f"notebooks/{path.name}" for path in paths if not is_current(read(path))]
        sys.exit(f"their code has changed: make publish NB='{' '.join(stale)}'" if stale else 0)
    for path in paths:
        try:
            write(normalise(read(path), path.name), path) if options.normalize else publish(path)
        except CellExecutionError as error:
            sys.exit(f"{path.name} is unchanged, a cell failed:\n{error}")


if __name__ == "__main__":
    main()
