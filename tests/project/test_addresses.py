"""The repository's address, the release and the version, wherever they are shown."""

import re
import subprocess
import sys

import addresses
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from notebook_files import ROOT
from tracked import tracked_texts

REAL = "https://github.com/someone/else"
PYTHON_FILES = {"tools/addresses.py", "tests/project/test_addresses.py"}


@pytest.fixture
def real(monkeypatch):
    """A repository that exists, and version 1.2.0, which was released from it."""
    monkeypatch.setattr(addresses, "address", lambda: REAL)
    monkeypatch.setattr(addresses, "release", lambda: "v1.2.0")
    monkeypatch.setattr(addresses, "version", lambda: "1.2.0")


# Today's files ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_address_is_the_same_everywhere():
    assert addresses.disagreeing() == []


def test_the_address_stands_only_where_the_tool_corrects_it():
    managed = {"pyproject.toml", *(p.relative_to(ROOT).as_posix() for p in addresses.pages())}
    holders = {name for name, text in tracked_texts() if addresses.repository() in text}
    assert "pyproject.toml" in holders
    wrong = {name for name in holders - managed - PYTHON_FILES if not name.startswith("notebooks/")}
    assert wrong == set()


def test_no_page_mentions_the_address_in_a_way_that_the_tool_does_not_know(real):
    for page in addresses.pages():
        corrected = addresses.corrected_text(page.read_text(encoding="utf-8"))
        assert addresses.NOBODY not in re.sub(r"`[^`\n]*`", "", corrected), page


def test_one_version():
    import per_tutorial

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert addresses.project()["project"]["dynamic"] == ["version"]
    assert addresses.version() == per_tutorial.__version__ == str(citation["version"])


# Addresses --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/some-one/els.e",
        "https://github.com/some-one/els.e.git",
        "https://github.com/some-one/els.e/",
        "https://user:token@github.com/some-one/els.e.git",
        "git@github.com:some-one/els.e.git\n",
        "ssh://git@github.com/some-one/els.e.git",
    ],
)
def test_an_address_is_read_in_every_form_that_git_knows(text):
    assert addresses.parsed_address(text) == "https://github.com/some-one/els.e"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "../clone",
        "https://gitlab.com/someone/else",
        "https://github.com/someone",
        "https://github.com/some_one/else",
        "https://github.com/-someone/else",
        "https://github.com/someone/else/tree/main",
        "https://github.com.example.org/someone/else",
        "https://example.org/https://github.com/someone/else",
        'https://github.com/someone/else"; import os',
    ],
)
def test_what_is_no_repository_on_github_is_refused(text):
    with pytest.raises(
        ValueError, match="^address: must be like https://github.com/OWNER/NAME, got"
    ):
        addresses.parsed_address(text)


def test_the_origin_of_a_clone(tmp_path, monkeypatch):
    monkeypatch.setattr(addresses, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    def git(*arguments):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)

    assert addresses.origin() is None  # no repository at all
    git("init", "--quiet")
    assert addresses.origin() is None
    git("remote", "add", "origin", str(tmp_path / "elsewhere"))
    assert addresses.origin() is None
    git("remote", "set-url", "origin", "git@github.com:someone/else.git")
    assert addresses.origin() == REAL


def test_until_it_is_set_the_address_is_one_that_nobody_can_have(monkeypatch):
    nobody = f"https://github.com/{addresses.NOBODY}/anything"
    monkeypatch.setattr(addresses, "address", lambda: nobody)
    assert not addresses.is_set()
    assert not re.fullmatch(r"[a-zA-Z\d-]+", addresses.NOBODY)  # GitHub's rule for names
    assert addresses.parsed_address(nobody) == nobody  # so that it can be unset again


def test_setting_the_address_changes_nothing_else(tmp_path, monkeypatch):
    before = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(before, encoding="utf-8")
    monkeypatch.setattr(addresses, "ROOT", tmp_path)
    old = addresses.address()
    addresses.set_address(REAL)
    assert addresses.address() == REAL
    after = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    assert old not in after and after.replace(REAL, old) == before


def test_a_workflow_in_another_repository_is_told_what_to_do(real, monkeypatch, capsys):
    assert addresses.wrong_place("Someone/else") is None  # GitHub doesn't tell capitals apart
    monkeypatch.setattr(sys, "argv", ["addresses.py", "--in", "fork/else"])
    with pytest.raises(SystemExit) as caught:
        addresses.main()
    assert "make addresses ADDRESS=https://github.com/fork/else" in caught.value.code


# What is written --------------------------------------------------------------------------------


def test_a_change_of_address_reaches_every_mention(monkeypatch):
    old = addresses.address()
    badge = addresses.colab_badge("01_segment_tree.ipynb")
    lines = [
        badge,
        f"git clone {old}",
        f"pip install 'x[a] @ git+{old}'",
        f"pip install 'x @ git+{old}@v0.0.1'  # twice",
        f"[the site]({addresses.site()}which.html)",
        f"[1.2.0]: {old}/compare/v1.1.0...v1.2.0",
        f"repository-code: {old}",
    ]
    monkeypatch.setattr(addresses, "address", lambda: REAL)
    monkeypatch.setattr(addresses, "release", lambda: "v1.2.0")
    corrected = addresses.corrected_text("\n".join(lines)).splitlines()
    colab = "https://colab.research.google.com/github/someone/else/blob/v1.2.0/notebooks"
    assert corrected == [
        f"{addresses.BADGE}({colab}/01_segment_tree.ipynb)",
        f"git clone {REAL}",
        f"pip install 'x[a] @ git+{REAL}@v1.2.0'",
        f"pip install 'x @ git+{REAL}@v1.2.0'  # twice",
        "[the site](https://someone.github.io/else/which.html)",
        f"[1.2.0]: {REAL}/compare/v1.1.0...v1.2.0",
        f"repository-code: {REAL}",
    ]
    assert addresses.corrected_text("\n".join(corrected)).splitlines() == corrected


def test_other_addresses_stay(real):
    text = "See https://github.com/openai/baselines and https://arxiv.org/abs/1511.05952."
    assert addresses.corrected_text(text) == text


def test_a_notebook_gets_its_badge_and_its_set_up_cell(real):
    notebook = new_notebook(cells=[new_markdown_cell("# Title\n\nText."), new_code_cell("1 + 1")])
    for _ in range(2):  # the second time nothing changes
        addresses.correct_notebook(notebook, "01_segment_tree.ipynb")
        badge = addresses.colab_badge("01_segment_tree.ipynb")
        assert notebook.cells[0].source == f"# Title\n\n{badge}\n\nText."
        assert [cell.get("id") for cell in notebook.cells[1:2]] == ["setup"]
        assert len(notebook.cells) == 3


def test_the_newest_release_that_is_not_yanked_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(addresses, "ROOT", tmp_path)

    def release_of(*headings):
        text = "# Changelog\n\n" + "\n\nText.\n\n".join(headings) + "\n"
        (tmp_path / "CHANGELOG.md").write_text(text, encoding="utf-8")
        return addresses.release()

    assert release_of("## [Unreleased]") is None
    assert release_of("## [Unreleased]", "## [0.1.0] - 2026-11-21 [YANKED]") is None
    assert (
        release_of("## [0.3.0]", "## [0.2.0] - 2026-12-01", "## [0.1.0] - 2026-11-21") == "v0.2.0"
    )
    assert release_of("## [0.3.0rc1] - 2026-12-09", "## [0.2.0] - 2026-12-01") == "v0.3.0rc1"


# The set-up cell --------------------------------------------------------------------------------


def run_setup_cell(source, there, monkeypatch):
    """What the cell installs, with the package there or not; it runs as IPython runs it."""
    from IPython.core.inputtransformer2 import TransformerManager

    installed = []

    class Shell:
        def run_line_magic(self, name, line):
            installed.append((name, line))

    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if there else None)
    code = TransformerManager().transform_cell(source)
    exec(code, {"get_ipython": Shell})
    return installed


def test_the_set_up_cell_installs_a_release_with_what_the_notebooks_need(real, monkeypatch):
    assert "notebooks" in addresses.project()["project"]["optional-dependencies"]
    cell = addresses.setup_cell()
    what = "per_tutorial[notebooks] @ git+https://github.com/someone/else@v1.2.0"
    installed = [("pip", f'install --quiet "{what}"')]
    assert run_setup_cell(cell, False, monkeypatch) == installed
    assert run_setup_cell(cell, True, monkeypatch) == []
    assert "newer" not in cell
    monkeypatch.setattr(addresses, "version", lambda: "1.3.0.dev0")
    newer = addresses.setup_cell()
    assert "the last release, v1.2.0. This notebook is newer" in newer
    assert run_setup_cell(newer, False, monkeypatch) == installed


@pytest.mark.parametrize("missing", ["address", "release"])
def test_where_nothing_can_be_installed_the_set_up_cell_says_what_to_do(real, missing, monkeypatch):
    if missing == "address":
        monkeypatch.setattr(
            addresses, "address", lambda: f"https://github.com/{addresses.NOBODY}/x"
        )
    else:
        monkeypatch.setattr(addresses, "release", lambda: None)
    source = addresses.setup_cell()
    assert "pip install" not in source
    assert run_setup_cell(source, True, monkeypatch) == []
    with pytest.raises(ModuleNotFoundError, match="type `make lab`"):
        run_setup_cell(source, False, monkeypatch)


@pytest.mark.parametrize("state", ["real", "no release", "newer", "no address"])
def test_the_lines_of_the_set_up_cell_are_not_too_long(real, state, monkeypatch):
    if state == "no release":
        monkeypatch.setattr(addresses, "release", lambda: None)
    if state == "newer":
        monkeypatch.setattr(addresses, "version", lambda: "1.3.0.dev0")
    if state == "no address":
        monkeypatch.setattr(
            addresses, "address", lambda: f"https://github.com/{addresses.NOBODY}/x"
        )
    lines = addresses.setup_cell().splitlines()
    assert max(map(len, lines)) <= 110
