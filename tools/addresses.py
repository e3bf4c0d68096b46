"""Carry the repository's address, the release and the version to every place that shows them.

python tools/addresses.py                    name the files that are not as they should be
python tools/addresses.py --write [ADDRESS]  put them right, for this address or for git's `origin`
python tools/addresses.py --in OWNER/NAME    fail unless this is the repository of the address

The address stands in pyproject.toml. The places: the notebooks' Colab badges and set-up cells, and
on the pages the badges, the lines with `git clone` and `git+`, the links to the site and to
versions, and CITATION.cff.

What a set-up cell installs, and the notebook that a badge opens, are those of the last release,
which is the newest version in CHANGELOG.md that has a date and is not yanked. So the two fit each
other, whatever happens on `main`.
"""

import argparse
import re
import subprocess
import sys
import tomllib

import nbformat
from notebook_files import ROOT, code_cells, read, series, write

GITHUB = "https://github.com/"
NOBODY = "your_name_here"  # GitHub allows no underscore in a name, so nobody can register this one
BADGE = "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
ANY = r"[\w.-]+/[\w.-]*\w"  # a repository's owner and name

SETUP_CELL = """\
# On Colab or Kaggle this installs the tutorial's package and what its notebooks need. Where the
# package is already there, nothing happens; what else is installed keeps its version.{note}
import importlib.util

if importlib.util.find_spec("per_tutorial") is None:
    {install}"""

UNDER_DEVELOPMENT = """
# It is the last release, {release}. This notebook is newer than that, and may need more."""

NOT_INSTALLABLE = """raise ModuleNotFoundError(
        "{reason} "
        "To run this notebook, get the whole repository and type `make lab` in its folder."
    )"""
NO_ADDRESS = (
    "This copy of the series does not say where its package is (`make addresses` writes that)."
)
NO_RELEASE = "The package of this series has no release yet."


# What is right ----------------------------------------------------------------------------------


def project():
    """pyproject.toml, as a dict."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def address():
    """The repository's address: `https://github.com/<owner>/<name>`."""
    return project()["project"]["urls"]["Repository"]


def repository():
    """The repository as GitHub names it: `<owner>/<name>`."""
    return address().removeprefix(GITHUB)


def is_set():
    """Whether the address is a real one."""
    return not repository().startswith(f"{NOBODY}/")


def site():
    """The address of the site that the repository publishes, with a slash at its end."""
    owner, _, name = repository().partition("/")
    return f"https://{owner.lower()}.github.io/{name}/"


def version():
    """The package's version; it stands in per_tutorial/__init__.py and nowhere else."""
    text = (ROOT / "per_tutorial" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)[1]


def release():
    """The tag of the last release to install, such as `v0.2.0`; None if there is none."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^## \[(\d[\w.]*)\] - \d{4}-\d\d-\d\d *$", text, re.MULTILINE)
    return f"v{found[1]}" if found else None


def requirement(extra=None):
    """What pip installs: the last release from the repository, with this extra."""
    bracket = f"[{extra}]" if extra else ""
    tag = f"@{release()}" if release() else ""
    return f"per_tutorial{bracket} @ git+{address()}{tag}"


def setup_cell():
    """The source of the first code cell of every notebook."""
    note = ""
    if not is_set():
        install = NOT_INSTALLABLE.format(reason=NO_ADDRESS)
    elif release() is None:
        install = NOT_INSTALLABLE.format(reason=NO_RELEASE)
    else:
        install = f'%pip install --quiet "{requirement("notebooks")}"'
        if release() != f"v{version()}":
            note = UNDER_DEVELOPMENT.format(release=release())
    return SETUP_CELL.format(note=note, install=install)


def colab_badge(name):
    """The Markdown of the badge that opens the notebook of this file name on Colab."""
    host = "https://colab.research.google.com/github"
    return f"{BADGE}({host}/{repository()}/blob/{release() or 'main'}/notebooks/{name})"


def parsed_address(text):
    """`https://github.com/<owner>/<name>` of whatever form git knows it in.

    Raises:
        ValueError: it is no repository on GitHub.
    """
    owner, name = r"[a-z\d](?:[a-z\d-]{0,38})", r"[\w.-]+?"
    forms = rf"(?:(?:https|ssh)://(?:[^/@]+@)?github\.com/|git@github\.com:)({owner}/{name})(?:\.git)?/?"
    found = re.fullmatch(forms, text.strip(), re.IGNORECASE)
    if not found and not text.startswith(f"{GITHUB}{NOBODY}/"):
        raise ValueError(f"address: must be like {GITHUB}OWNER/NAME, got {text!r}")
    return GITHUB + found[1] if found else text


def origin():
    """The address of the repository this one was cloned from; None if that is not on GitHub."""
    command = ["git", "remote", "get-url", "origin"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    try:
        return parsed_address(answer.stdout)
    except ValueError:  # another host, a folder, or no origin at all
        return None


# Putting it right -------------------------------------------------------------------------------


def pages():
    """The files with text that mentions the address."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("site/*.md")]
    return [*sorted(found), ROOT / "CITATION.cff"]


def corrected_text(text):
    """A page, or a cell of text, with every mention of address, release and version made right."""
    badge = re.escape(BADGE) + r"\([^)]*/notebooks/([\w.]+)\)"
    text = re.sub(badge, lambda found: colab_badge(found[1]), text)
    installed = requirement().partition("git+")[2]
    text = re.sub(rf"git\+https://github\.com/{ANY}(@[\w.]*\w)?", f"git+{installed}", text)
    text = re.sub(rf"git clone https://github\.com/{ANY}", f"git clone {address()}", text)
    link = rf"^(\[[^]]+\]: )https://github\.com/{ANY}/(compare|releases|commits)/"
    text = re.sub(link, rf"\g<1>{address()}/\g<2>/", text, flags=re.MULTILINE)
    text = re.sub(r"https://[\w-]+\.github\.io/[\w.-]+/", site(), text)
    text = re.sub(
        r"^repository-code: .*", f"repository-code: {address()}", text, flags=re.MULTILINE
    )
    if text.startswith("cff-version:"):
        text = re.sub(r"^version: .*", f"version: {version()}", text, flags=re.MULTILINE)
    return text


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
    """The names of the files that are not as they should be; `correct` mends them."""
    names = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if corrected_text(text) != text:
            names.append(page.name)
            if correct:
                page.write_text(corrected_text(text), encoding="utf-8", newline="\n")
    for path in series():
        notebook = read(path)
        correct_notebook(notebook, path.name)
        if notebook != read(path):
            names.append(path.name)
            if correct:
                write(notebook, path)
    return names


def set_address(new):
    """Write another address into pyproject.toml."""
    path = ROOT / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(address(), new), encoding="utf-8", newline="\n")


def wrong_place(running_in):
    """What to do if the repository `<owner>/<name>` is not that of the address; None if it is."""
    if repository().lower() == running_in.lower():
        return None
    return (
        f"The notebooks and pages point to {address()}, and this is {GITHUB}{running_in}. Type "
        f"`make addresses ADDRESS={GITHUB}{running_in}`, and commit what that changes."
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help="put right what is wrong")
    mode.add_argument("--in", dest="running_in", metavar="OWNER/NAME", help="where a workflow runs")
    parser.add_argument("address", nargs="?", metavar="ADDRESS", help="default: git's origin")
    options = parser.parse_args()
    if options.running_in:
        sys.exit(wrong_place(options.running_in))
    if options.write:
        try:
            new = parsed_address(options.address) if options.address else origin()
        except ValueError as error:
            sys.exit(str(error))
        if new and new != address():
            set_address(new)
        print(f"The address is {address()}" + ("" if is_set() else ", which is not set yet"))
    names = disagreeing(correct=options.write)
    if names and not options.write:
        sys.exit(f"`make addresses` would change {', '.join(names)}")
    print(*(f"corrected {name}" for name in names), sep="\n", end="\n" if names else "")


if __name__ == "__main__":
    main()
