"""The examples in docstrings and on the site's own pages: all of them run."""

import doctest
import pydoc
import re

import pytest
from notebook_files import ROOT

import per_tutorial

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "per_tutorial").rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)
PUBLIC = sorted(set(per_tutorial.__all__) - {"__version__"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if ".conformance." in name else [])
        for name in MODULES
    ],
)
def test_examples_in_docstrings_run(name):
    module = pytest.importorskip(name, exc_type=ImportError)
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.attempted and not found.failed


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_examples(name):
    assert ">>>" in getattr(per_tutorial, name).__doc__


@pytest.mark.parametrize("name", ["PrioritizedReplayBuffer", "DQNLearner", "History"])
def test_help_shows_types_by_name(name):
    shown = pydoc.render_doc(getattr(per_tutorial, name))
    assert "ArrayLike" in shown and "_NestedSequence" not in shown


@pytest.mark.parametrize("page", sorted((ROOT / "site").glob("*.md")), ids=lambda page: page.name)
def test_the_code_on_pages_runs(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
        exec(compile(block, page.name, "exec"), names)  # later blocks go on from earlier ones
