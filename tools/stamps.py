"""Stamps: of which code of its own, commit and versions a page's saved outputs are.

A page is run again when its own code has changed, and every page before a release. A change of the
package alone leaves the stamp current; its commit says which package made the outputs.
"""

import hashlib
import subprocess

from notebook_files import ROOT, code_cells

from per_tutorial import __version__
from per_tutorial.common.provenance import versions


def make(notebook, seconds):
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
