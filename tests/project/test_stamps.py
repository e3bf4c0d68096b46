"""Stamps: which modules stand behind a notebook, and which of their changes make it stale."""

import ast

import pytest
import stamps
from nbformat.v4 import new_code_cell, new_notebook

MODULES = {
    "__init__.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from per_tutorial.low.tree import Tree as Tree
        __version__ = "1"
        _HOMES = {"low.tree": ("Tree",), "high": ("play",)}
        __getattr__ = lazy_names(__name__, _HOMES)
    """,
    "low/__init__.py": """
        from per_tutorial.low.storage import Storage as Kept
        from .tree import Tree
        SIZES = (1, 2)
    """,
    "low/tree.py": "class Tree:\n    size: int = 1\n",
    "low/storage.py": "from . import numbers\nclass Storage: pass\n",
    "low/numbers.py": "def draw(a=0):\n    return 1\n",
    "high/__init__.py": '_HOMES = {"game": ("play",)}\n',
    "high/game.py": """
        import typing
        from typing import Any
        if typing.TYPE_CHECKING:
            from per_tutorial.low.storage import Storage
        def play() -> Any:
            from ..low import Kept
            return Kept()
    """,
    "apart.py": "x = 3\n",
}
EVERYTHING = {"", "low", "low.tree", "low.storage", "low.numbers", "high", "high.game", "apart"}
BEHIND_PLAY = {"high.game", "low.storage", "low.numbers"}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package in the place of ours. `package(file, text)` writes one of its files anew."""

    def write(file, text):
        lines = text.strip("\n").split("\n")
        indent = len(lines[0]) - len(lines[0].lstrip())
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(line[indent:] for line in lines) + "\n", encoding="utf-8")

    for file, text in MODULES.items():
        write(file, text)
    monkeypatch.setattr(stamps, "PACKAGE", tmp_path)
    return write


def notebook(source="from per_tutorial import play, Tree"):
    return new_notebook(cells=[new_code_cell(source, id="cell")])


# Which modules ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("from per_tutorial.low.tree import Tree", {"low.tree"}),
        ("from per_tutorial.low import tree as t", {"low.tree"}),
        ("import per_tutorial.low.storage as s", {"low.storage", "low.numbers"}),
        ("from per_tutorial import apart", {"apart"}),
        ("import per_tutorial", EVERYTHING),
        ("from per_tutorial import *", EVERYTHING),
        ("from per_tutorial import high", {"high"} | BEHIND_PLAY),
        ("%matplotlib inline\nimport numpy as np\nimport per_tutorial_of_another", set()),
    ],
)
def test_imports_are_followed(package, source, modules):
    assert stamps.modules_behind([source]) == modules


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("from per_tutorial import Tree", {"low.tree"}),
        ("from per_tutorial import play", BEHIND_PLAY),  # the table of a package in a table
        ("from per_tutorial.high import play as p", BEHIND_PLAY),
        ("from per_tutorial.low import Tree", {"low.tree"}),
        ("from per_tutorial.low import Kept", {"low.storage", "low.numbers"}),
    ],
)
def test_a_name_of_a_package_leads_to_the_module_that_holds_it(package, source, modules):
    assert stamps.modules_behind([source]) == modules


def test_what_a_package_holds_itself_leads_to_its_init_and_on(package):
    behind = stamps.modules_behind(["from per_tutorial.low import SIZES"])
    assert behind == {"low", "low.tree", "low.storage", "low.numbers"}


def test_the_version_stands_behind_nothing(package):
    assert stamps.modules_behind(["from per_tutorial import __version__"]) == set()


def test_imports_inside_functions_count_and_those_for_type_checkers_do_not(package):
    assert stamps.modules_behind(["def f():\n    from per_tutorial import apart"]) == {"apart"}
    package(
        "apart.py", "if TYPE_CHECKING:\n    from .low import Tree\nelse:\n    from . import high"
    )
    assert stamps.modules_behind(["import per_tutorial.apart"]) == {"apart", "high"} | BEHIND_PLAY


def test_this_package_is_followed_through_its_rooms():
    behind = stamps.modules_behind(["from per_tutorial import SumTree"])
    assert "replay.trees" in behind
    assert {name.partition(".")[0] for name in behind} <= {"replay", "common"}
    behind = stamps.modules_behind(["from per_tutorial import train"])
    assert behind >= {"dqn.training", "replay.trees", "common.arguments"}
    assert {name.partition(".")[0] for name in behind} <= {"dqn", "replay", "common"}
    assert "notebook.page" in stamps.modules_behind(["from per_tutorial.notebook import show"])


# What of them counts ----------------------------------------------------------------------------


def is_stale_after(package, file, text):
    before = stamps.source_hash(notebook())
    package(file, text)
    return stamps.source_hash(notebook()) != before


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("low/numbers.py", 'def draw(a=0):\n    """Say one."""\n    return 1  # why not\n'),
        (
            "low/numbers.py",
            "from typing import Any\n\ndef draw(a: Any = 0) -> int:\n    return 1\n",
        ),
        ("low/tree.py", "class Tree:\n    size: float = 1\n"),
        ("apart.py", "x = 4\n"),
        ("__init__.py", MODULES["__init__.py"].replace('"1"', '"2"')),
    ],
)
def test_a_stamp_holds_through_comments_hints_and_other_modules(package, file, text):
    assert not is_stale_after(package, file, text)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("low/numbers.py", "def draw(a=0):\n    return 2\n"),
        ("low/tree.py", "class Tree:\n    size: int = 2\n"),
        ("low/tree.py", "class Tree:\n    length: int = 1\n"),
        ("low/tree.py", "class Tree:\n    size = 1\n"),  # a field no more
        ("high/game.py", "def play():\n    return 1"),
    ],
)
def test_a_stamp_goes_stale_with_code(package, file, text):
    assert is_stale_after(package, file, text)


def test_a_stamp_goes_stale_with_the_notebook_but_not_with_its_set_up_cell(package):
    stamped = notebook()
    before = stamps.source_hash(stamped)
    assert stamps.source_hash(notebook("from per_tutorial import play, Tree; play()")) != before
    stamped.cells.append(new_code_cell("%pip install x", id="setup"))
    assert stamps.source_hash(stamped) == before


def counted(source):
    return stamps.canonical(stamps.parsed(source))


@pytest.mark.parametrize(
    ("hinted", "plain"),
    [
        (
            "def f(a: int, *b: str, c: int = 1, **d: Any) -> None: g()",
            "def f(a, *b, c=1, **d): g()",
        ),
        ("async def f(a: int) -> int: return a", "async def f(a): return a"),
        ("x: int = 1", "x = 1"),
        ("x: int\nx = 1", "x = 1"),
        ("self.x: dict[str, int] = {}", "self.x = {}"),
        ("from typing import Any\nfrom collections.abc import Callable\nf()", "f()"),
        ("import typing\nfrom numpy.typing import NDArray\nf()", "f()"),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    import b", "import b"),
    ],
)
def test_hints_do_not_count(hinted, plain):
    assert counted(hinted) == counted(plain)


def test_a_field_counts_by_its_name_and_value():
    field = counted("class A(NamedTuple):\n    a: int\n    b: int = 1")
    assert field == counted("class A(NamedTuple):\n    a: str\n    b: float = 1")
    assert field != counted("class A(NamedTuple):\n    b: int = 1")
    assert field != counted("class A(NamedTuple):\n    a: int\n    b: int = 2")


def test_the_text_that_is_hashed_is_the_same_under_every_version_of_python():
    # From 3.12 on, a function has a field `type_params`: empty ones are left out.
    function = ast.parse("def f():\n    return 1").body[0]
    before = stamps.canonical(function)
    function.of_a_later_python, function._fields = [], (*function._fields, "of_a_later_python")
    assert stamps.canonical(function) == before
