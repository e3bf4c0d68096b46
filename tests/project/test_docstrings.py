"""The examples in docstrings and on the site's own pages: all of them run."""

import doctest
import importlib
import inspect
import re
import sys

import pytest
from notebook_files import ROOT

SITE = ROOT / "site"
sys.path.insert(0, str(SITE))

import generated  # noqa: E402

NAMES = generated.public_names()
MUST_HAVE_ONE = (
    "per_tutorial",
    "per_tutorial.replay",
    "per_tutorial.conformance",
    "per_tutorial.integrations.sb3",
)
# Public classes of modules without `__all__`, which the reference does not list.
UNLISTED = (
    ("per_tutorial.integrations.tianshou", "PrioritizedReplayBuffer"),
    ("per_tutorial.integrations.tianshou", "PrioritizedVectorReplayBuffer"),
    ("per_tutorial.integrations.torchrl", "PrioritizedSampler"),
)


def run_examples(text, name, globs):
    """Run the `>>>` lines of a text; returns how many there are."""
    test = doctest.DocTestParser().get_doctest(text, globs, name, None, 0)
    report = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert not result.failed, "".join(report)
    return result.attempted


@pytest.mark.slow
@pytest.mark.parametrize(("place", "name"), NAMES, ids=[f"{p}.{n}" for p, n in NAMES])
def test_public_names_have_examples_that_run(place, name):
    value = generated.value_of(place, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        text, globs = value.__doc__ or "", {**vars(importlib.import_module(value.__module__))}
    else:
        text, globs = "\n".join(generated.comment_of(place, name)), {name: value}
    count = run_examples(text, name, globs)
    assert count or place not in MUST_HAVE_ONE, "its docstring has no `>>>`"


@pytest.mark.parametrize(("place", "name"), UNLISTED, ids=[f"{p}.{n}" for p, n in UNLISTED])
@pytest.mark.slow
def test_unlisted_classes_have_examples_that_run(place, name):
    module = pytest.importorskip(place, exc_type=ImportError)
    assert run_examples(getattr(module, name).__doc__, name, {**vars(module)})


@pytest.mark.parametrize("page", sorted(SITE.glob("*.md")), ids=lambda page: page.name)
def test_the_code_on_pages_runs(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
        exec(compile(block, page.name, "exec"), names)  # later blocks go on from earlier ones


def test_an_example_that_fails_is_noticed():
    with pytest.raises(AssertionError, match="Expected:"):
        run_examples(">>> 1 + 1\n3\n", "sum", {})
