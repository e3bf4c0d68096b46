"""The repository's own files, as git knows them."""

import subprocess

from notebook_files import ROOT


def tracked_files():
    """The names of the files that git tracks, or would with the next commit; some may be
    deleted.
    """
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    return sorted(set(filter(None, names.split("\0"))))


def tracked_texts():
    """(name, text) of each such file that holds text."""
    for name in tracked_files():
        try:
            yield name, (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):  # a video; a file deleted but not committed
            continue
