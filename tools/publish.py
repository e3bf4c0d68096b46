"""Run notebooks from top to bottom, in full, and write them as they are published.

python tools/publish.py NOTEBOOK...      run, tidy, stamp and write; an error changes no file
python tools/publish.py --normalize ...  run nothing: tidy ids, metadata and outputs
python tools/publish.py --check ...      change nothing: name those whose outputs are of other code

Without a notebook's name, all of the series.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import nbformat
import stamps
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from notebook_files import NOTEBOOKS, normalise, read, series, write


def publish(path):
    """Run a notebook in a fresh kernel, in full mode, and write it with its outputs and stamp."""
    notebook = normalise(read(path), path.name)
    environment = {key: value for key, value in os.environ.items() if key != "PER_TUTORIAL_FAST"}
    resources = {"metadata": {"path": str(NOTEBOOKS)}}
    client = NotebookClient(notebook, resources=resources, timeout=None, record_timing=False)
    start = time.perf_counter()
    client.execute(env=environment)
    stamp = stamps.make(notebook, time.perf_counter() - start)
    notebook.metadata.per_tutorial = nbformat.from_dict(stamp)
    write(normalise(notebook, path.name), path)
    print(f"{path.name}: {stamp['seconds']:.0f} s")


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
        stale = [f"notebooks/{path.name}" for path in paths if not stamps.is_current(read(path))]
        sys.exit(f"their code has changed: make publish NB='{' '.join(stale)}'" if stale else 0)
    for path in paths:
        try:
            write(normalise(read(path), path.name), path) if options.normalize else publish(path)
        except CellExecutionError as error:
            sys.exit(f"{path.name} is unchanged, a cell failed:\n{error}")


if __name__ == "__main__":
    main()
