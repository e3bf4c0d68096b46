"""The page about other libraries says what their examinations found."""

import importlib.util
import json
import re

import pytest
from notebook_files import ROOT

from per_tutorial.conformance import QUESTIONS, Verdict, find_adapter

RESULTS = json.loads((ROOT / "docs" / "examined.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "examined.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools/examined/__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Questions that came after some libraries were examined: their columns have a "–" there.
LATER: set[str] = set()


def test_at_least_eight_implementations_of_others_were_examined(tool):
    assert set(RESULTS) <= set(tool.EXAMINED)
    assert len(set(RESULTS) - {"proportional", "rank", "uniform"}) >= 8
    for name, result in RESULTS.items():
        assert set(result["answers"]) <= set(QUESTIONS), name
        assert set(QUESTIONS) - set(result["answers"]) <= LATER, name
        assert {verdict for verdict, _ in result["answers"].values()} <= {v.value for v in Verdict}


def test_the_table_of_the_page_is_that_of_the_results(tool):
    _, _, rest = PAGE.partition(f"{tool.START}\n")
    table, found, _ = rest.partition(f"\n{tool.END}")
    assert found and table == tool.table(RESULTS)


def test_every_failure_is_explained_and_every_script_is_there():
    explained = set(re.findall(r"\*([a-z-]+)\*", PAGE))
    failures = {
        question
        for result in RESULTS.values()
        for question, (verdict, _) in result["answers"].items()
        if verdict == Verdict.FAILS.value
    }
    assert failures <= explained
    scripts = set(re.findall(r"\(examined/(\w+\.py)\)", PAGE))
    assert scripts == {path.name for path in (ROOT / "docs" / "examined").glob("*.py")}


def test_the_numbers_of_a_report_become_rows(tool):
    one = {
        "answers": {"reach": ["fails", "…"]},
        "versions": {"python": "3", "numpy": "2", "x": "1"},
    }
    lines = tool.table({"cpprb": one}).splitlines()
    assert lines[0] == "| question | cpprb |"
    assert "| reach | **no** |" in lines and lines[-1] == "- cpprb: x 1 (Python 3, NumPy 2)"
    assert lines.index("| **robustness** | |") == lines.index("| stale-updates | – |") - 1


def test_every_name_has_an_adapter_that_can_be_loaded_without_its_library(tool):
    for name, place in tool.EXAMINED.items():
        assert find_adapter(place).name, name
    scripts = {place.rpartition("/")[2].partition(":")[0] for place in tool.EXAMINED.values()}
    files = {path.name for path in (ROOT / "tools/examined/adapters").glob("*.py")}
    assert scripts - {"proportional", "rank", "uniform"} == files
