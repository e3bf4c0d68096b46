"""The repository's address: the pages' set-up cell, which clones it, and the tool that writes it.

The remote is a repository on this machine, where git is told to look in place of GitHub. A stand-in
for pip makes the modules that a page needs.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from notebook_files import ROOT, code_cells, read, series
from tracked import tracked_files

CELLS = [cell for path in series() for cell in code_cells(read(path))[:1]]
CELL = CELLS[0].source
LAZY = "per_tutorial/common/lazy.py"
NEEDS = re.search(r'NEEDS = "per_tutorial (.*)"', CELL)[1].split()
PIP = f"""
import pathlib, sys
modules = pathlib.Path(__file__).parent
(modules / "pip.txt").write_text(" ".join(sys.argv[1:]))
for name in {NEEDS}: (modules / name).with_suffix(".py").touch()
"""
SAY = "\nimport per_tutorial; print(os.path.relpath(os.getcwd(), ROOT), per_tutorial.branch)"


def filled(repository, branch="main"):
    """The set-up cell with these two lines."""
    cell = re.sub('REPOSITORY = ".*?"', f'REPOSITORY = "{repository}"', CELL)
    return re.sub('BRANCH = ".*?"', f'BRANCH = "{branch}"', cell)


def git(folder, *words):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def runtime(tmp_path):
    """A fresh Python in the folder `content`; returns a function that runs code there."""
    remote = tmp_path / "github" / "someone" / "else"
    for folder in (remote / "per_tutorial", remote / "notebooks", tmp_path / "modules"):
        folder.mkdir(parents=True)
    (tmp_path / "content").mkdir()
    local = (tmp_path / "github").as_uri()
    (tmp_path / "modules" / "pip.py").write_text(PIP, encoding="utf-8")
    (remote / "notebooks" / "00.ipynb").touch()
    git(remote, "init", "--quiet", "--initial-branch=main")
    for branch in ("main", "a/branch"):
        git(remote, "checkout", "-B", branch)
        text = f"branch = {branch!r}\n"
        (remote / "per_tutorial" / "__init__.py").write_text(text, encoding="utf-8")
        git(remote, "add", ".")
        git(remote, "commit", "--message", branch)

    def run(code, there=(), github=None, python=("-S",)):
        for name in there:
            text = "branch = None\n"
            (tmp_path / "modules" / f"{name}.py").write_text(text, encoding="utf-8")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(tmp_path / "modules"),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{github or local}/.insteadOf",
            "GIT_CONFIG_VALUE_0": "https://github.com/",
        }
        return subprocess.run(
            [sys.executable, *python, "-c", code + SAY.replace("ROOT", repr(str(tmp_path)))],
            cwd=tmp_path / "content",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    return run


# The set-up cell ---------------------------------------------------------------------------------


def test_it_is_the_same_in_every_page_and_folded():
    assert {(cell.id, cell.source) for cell in CELLS} == {("setup", CELL)}
    assert all(cell.metadata.jupyter.source_hidden for cell in CELLS)  # JupyterLab
    assert all(cell.metadata.cellView == "form" for cell in CELLS)  # Colab


@pytest.mark.slow
@pytest.mark.parametrize("there", [(), ("per_tutorial",)], ids=["fresh", "without its needs"])
@pytest.mark.parametrize("branch", ["main", "a/branch"])
def test_where_something_is_missing_it_clones_and_installs(runtime, tmp_path, branch, there):
    ran = runtime(filled("someone/else", branch), there)
    assert ran.stdout.split() == ["content/per-tutorial/notebooks", branch], ran.stderr
    asked = (tmp_path / "modules" / "pip.txt").read_text(encoding="utf-8")
    assert asked == "install --quiet --editable ./per-tutorial[notebooks]"
    clone = tmp_path / "content" / "per-tutorial"
    assert (clone / ".git" / "shallow").exists()
    again = runtime(f"import sys; sys.path.append({str(clone)!r})\n" + filled("nobody/else"))
    assert again.stdout.split()[0] == "content/per-tutorial/notebooks"  # the kernel was restarted


def test_where_everything_is_there_it_does_nothing(runtime, tmp_path):
    ran = runtime(CELL, ["per_tutorial", *NEEDS])
    assert ran.stdout.split() == ["content", "None"], ran.stderr
    assert list((tmp_path / "content").iterdir()) == []


ASKED = "Is there a network, and is {} public, with a branch {!r}\\?"


@pytest.mark.slow
@pytest.mark.parametrize(
    "repository, branch, github, said",
    [
        ("", "main", None, "REPOSITORY is empty: type OWNER/NAME, .*"),
        ("/no/folder", "main", None, "fatal: .*" + ASKED.format("/no/folder", "main")),
        ("someone/else", "gone", None, ".*" + ASKED.format("https://.*/someone/else", "gone")),
        ("someone/else", "main", "https://127.0.0.1:9", ".* unable to access .*" + ASKED[:20]),
    ],
)
def test_where_it_cannot_clone_it_says_why_in_place_of_a_traceback(
    runtime, repository, branch, github, said
):
    cell = filled(repository, branch).replace("torch", "absent")  # all else is there
    ran = runtime(cell, github=github, python=["-m", "IPython", "--colors=NoColor"])
    assert re.match(said, ran.stdout, re.DOTALL) and ran.returncode == 1
    assert "Traceback" not in ran.stdout + ran.stderr and "%tb" not in ran.stdout + ran.stderr


# The tool ----------------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path):
    """A copy of the repository without its package."""
    for name in tracked_files():
        left_out = name.startswith(("per_tutorial/", "tests/", "videos/")) and name != LAZY
        if (ROOT / name).is_file() and not left_out:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def write(folder, *words):
    command = [sys.executable, folder / "tools" / "address.py", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_an_address_reaches_every_place(copy):
    write(copy, "someone/else", "a/branch")
    pages = [*copy.rglob("*.md"), copy / "CITATION.cff", copy / "pyproject.toml", copy / LAZY]
    everything = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert "your_name_here" not in re.sub("`.*?`", "", everything)
    for url in ("https://github.com/someone/else", "https://someone.github.io/else/"):
        assert url in everything
    readme = (copy / "README.md").read_text(encoding="utf-8")
    for path in sorted((copy / "notebooks").glob("*.ipynb")):
        page = read(path)
        assert code_cells(page)[0].source == filled("someone/else", "a/branch")
        colab = "https://colab.research.google.com/github/someone/else/blob/a/branch/notebooks"
        assert f"({colab}/{path.name})" in page.cells[0].source
        assert f"({colab}/{path.name})" in readme
        assert "your_name_here" not in path.read_text(encoding="utf-8")
    assert write(copy, "someone/else", "a/branch") == ""
    assert "README.md" in write(copy, "someone/else")  # back to main


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="a step of a workflow on Linux")
def test_the_workflow_writes_it_once_and_never_in_a_fork(copy, monkeypatch):
    workflow = (copy / ".github" / "workflows" / "address.yml").read_text(encoding="utf-8")
    (job,) = yaml.safe_load(workflow)["jobs"].values()
    assert job["permissions"] == {"contents": "write"}
    assert "!github.event.repository.fork" in job["if"]
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/else")
    monkeypatch.setenv("GITHUB_REF_NAME", "main")
    write(copy, "your_name_here/per-tutorial")
    git(copy, "init", "--quiet", "--initial-branch=main")
    git(copy, "add", ".")
    git(copy, "commit", "--message", "The first push")
    remote = copy.with_name("remote")
    git(copy, "clone", "--bare", ".", remote)
    git(copy, "remote", "add", "origin", remote)
    git(copy, "push", "--set-upstream", "origin", "main")
    for commits in (2, 2):
        subprocess.run(["bash", "-e", "-c", job["steps"][-1]["run"]], cwd=copy, check=True)
        pushed = ["git", "log", "--oneline", "main"]
        assert len(subprocess.check_output(pushed, cwd=remote).splitlines()) == commits
    assert write(copy, "someone/else") == ""
