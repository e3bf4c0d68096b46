"""The page about other libraries says what their examinations found."""

import importlib.util
import json
import re

import pytest
from notebook_files import ROOT

from per_tutorial.conformance import CHECKS, find_adapter

RESULTS = json.loads((ROOT / "docs" / "examined.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "examined.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools/examined/__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_the_page_is_that_of_the_results(tool):
    _, _, rest = PAGE.partition(f"{tool.START}\n")
    table, found, _ = rest.partition(f"\n{tool.END}")
    assert found and table == tool.table(RESULTS)
    assert set(RESULTS) <= set(tool.EXAMINED) and len(RESULTS) >= 9
    for name, result in RESULTS.items():
        assert set(result["results"]) == set(CHECKS), name
    for ours in ("proportional", "rank", "uniform"):
        assert "failed" not in {verdict for verdict, _ in RESULTS[ours]["results"].values()}


def test_every_failure_is_explained_and_every_script_is_there():
    explained = set(re.findall(r"\*([a-z-]+)\*", PAGE))
    failed = {
        n for one in RESULTS.values() for n, (v, _) in one["results"].items() if v == "failed"
    }
    assert failed <= explained
    scripts = set(re.findall(r"\(examined/(\w+\.py)\)", PAGE))
    assert scripts == {path.name for path in (ROOT / "docs" / "examined").glob("*.py")}


def test_its_python_runs_as_it_stands(tmp_path, monkeypatch):
    mine, suite = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    (tmp_path / "mine.py").write_text(mine, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    exec(suite, {})


def test_every_name_has_an_adapter_that_can_be_loaded_without_its_library(tool):
    for name, place in tool.EXAMINED.items():
        assert find_adapter(place).name, name
    files = {path.name for path in (ROOT / "tools/examined/adapters").glob("*.py")}
    assert {place.partition(":")[0] for place in tool.OTHERS.values()} == files
