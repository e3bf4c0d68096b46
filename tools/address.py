"""Write where the repository is, and its branch or tag, to every place that shows them.

python tools/address.py OWNER/NAME [BRANCH]

The repository is on GitHub: Colab opens no other files. BRANCH is what the pages' set-up cells
clone and the badges open: by default `main`; in a release, its tag. The places are the pages,
README, docs, the site, CITATION.cff and pyproject.toml, which holds the address that they show now.
A workflow calls this at the first push.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GITHUB = "https://github.com/"
COLAB = "https://colab.research.google.com/github"
PLACES = (
    *("*.md", "docs/*.md", "site/*.md", "notebooks/*.ipynb", "CITATION.cff", "pyproject.toml"),
    "per_tutorial/common/lazy.py",  # what to install if something is missing
)


def shown(text, old, new, branch):
    """A file's text with the repository `new` in the place of `old`, and with this branch."""
    badge = rf"(\[!\[Open in Colab\]\([^)]*\)\]\({COLAB}/)[^)]+(/notebooks/[\w.]+\))"
    text = re.sub(badge, rf"\g<1>{new}/blob/{branch}\g<2>", text)
    for line, value in (("REPOSITORY", new), ("BRANCH", branch)):  # of a cell, so in JSON
        text = re.sub(rf'"{line} = \\"[^"]*\\"', rf'"{line} = \\"{value}\\"', text)
    return text.replace(site(old), site(new)).replace(GITHUB + old, GITHUB + new)


def site(repository):
    """Where the repository's site is: on GitHub Pages."""
    owner, _, name = repository.partition("/")
    return f"https://{owner.lower()}.github.io/{name}/"


def main(new, branch="main"):
    """Write this repository and branch everywhere."""
    if not (re.fullmatch(r"[\w.-]+/[\w.-]+", new) and re.fullmatch(r"[\w./-]+", branch)):
        sys.exit(f"address: must be like OWNER/NAME [BRANCH], got {new!r} {branch!r}")
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    old = pyproject["project"]["urls"]["Repository"].removeprefix(GITHUB)
    for path in (path for place in PLACES for path in sorted(ROOT.glob(place))):
        text = path.read_text(encoding="utf-8")
        if (written := shown(text, old, new, branch)) != text:
            path.write_text(written, encoding="utf-8", newline="\n")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) in (2, 3) else sys.exit(__doc__)
