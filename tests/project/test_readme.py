"""The README has a row for each notebook, its Python runs, and links lead somewhere."""

import re

import pytest
from notebook_files import ROOT, read, series

GUIDES = (ROOT / "README.md", ROOT / "docs" / "using.md")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]


def test_each_notebook_has_a_row_with_its_badge():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\d\d) · .+?\]\(notebooks/(.+?)\).*(\[!\[.*\)) \|$", readme, re.M)
    assert [name for _, name, _ in rows] == [path.name for path in series()]
    for number, name, badge in rows:
        opening = read(ROOT / "notebooks" / name).cells[0].source
        assert opening.startswith(f"# {number} · ") and badge in opening


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?![a-z]+:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_its_python_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    for block in blocks:  # each by itself, with shorter trainings
        short = re.sub(r"\b[235]0?_000\b", "1_000", block)
        exec(short.replace("range(10)", "range(2)"), {})
