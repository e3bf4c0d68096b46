"""Packages whose names are imported when they are first used: editors and users see the
same names.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest

import per_tutorial

ROOT = Path(per_tutorial.__file__).parent


def lazy_packages():
    """{package: the syntax tree of its __init__.py} of every package that calls `lazy_names`."""
    trees = {}
    for path in sorted(ROOT.rglob("__init__.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
        if any(isinstance(called, ast.Name) and called.id == "lazy_names" for called in calls):
            trees[".".join(path.parent.relative_to(ROOT.parent).parts)] = tree
    return trees


PACKAGES = lazy_packages()


def table(tree):
    """What a package's `_HOMES` says: a list of (home, name)."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            homes = ast.literal_eval(node.value)
            return [(home, name) for home, names in homes.items() for name in names]
    raise AssertionError("there is no _HOMES")


def seen_by_type_checkers(tree, package):
    """What a package imports under `if TYPE_CHECKING`: a list of (home, name)."""
    found = []
    for block in tree.body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for node in block.body:
                assert isinstance(node, ast.ImportFrom) and node.level == 0, ast.unparse(node)
                home = node.module.removeprefix(f"{package}.")
                for alias in node.names:  # `import x as x`: the checkers' sign of a re-export
                    assert alias.asname == alias.name, ast.unparse(node)
                    found.append((home, alias.name))
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_the_names_of_the_table_which_hide_no_module(package):
    tree = PACKAGES[package]
    assert sorted(seen_by_type_checkers(tree, package)) == sorted(table(tree))
    names = [name for _, name in table(tree)]
    assert len(names) == len(set(names))
    folder = ROOT.parent.joinpath(*package.split("."))
    modules = {path.stem for path in folder.iterdir()}
    assert modules.isdisjoint(names)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_where_the_table_says(package):
    module = import_module(package)
    for home, name in table(PACKAGES[package]):
        assert getattr(module, name) is getattr(import_module(f"{package}.{home}"), name)
        assert name in module.__all__
        assert name in dir(module)


@pytest.fixture
def lazy_package(tmp_path, monkeypatch):
    """A package `lazily` whose name `value` is in its module `heavy`."""
    folder = tmp_path / "lazily"
    folder.mkdir()
    (folder / "heavy.py").write_text("value = object()\n", encoding="utf-8")
    (folder / "__init__.py").write_text(
        "from per_tutorial.common.lazy import lazy_names\n"
        "__all__, __getattr__, __dir__ = lazy_names(__name__, {'heavy': ('value',)})\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("lazily")
    for name in ("lazily", "lazily.heavy"):
        sys.modules.pop(name, None)


def test_a_name_is_imported_when_it_is_first_used(lazy_package):
    assert "lazily.heavy" not in sys.modules
    assert "value" in dir(lazy_package) and "value" not in vars(lazy_package)
    value = lazy_package.value
    assert value is sys.modules["lazily.heavy"].value is vars(lazy_package)["value"]


def test_a_missing_name_is_an_ordinary_attribute_error(lazy_package):
    with pytest.raises(AttributeError, match="module 'lazily' has no attribute 'other'"):
        _ = lazy_package.other
    with pytest.raises(ImportError, match="cannot import name 'other' from 'lazily'"):
        from lazily import other  # noqa: F401
