"""The project's frame: requirements, rooms, what loads what, the tools that write notebooks."""

import ast
import itertools
import json
import os
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from notebook_files import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tracked import tracked_texts

TABLES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = TABLES["project"]
EXTRAS = PROJECT["optional-dependencies"]


def requirements(lines):
    """{name: (extras, version specifier)} of a list of requirements."""
    parsed = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name): (frozenset(r.extras), str(r.specifier)) for r in parsed}


def of_extras(*names):
    """The requirements of extras, and of the extras of ours that they name, as lines."""
    lines = set()
    for line in itertools.chain(*(EXTRAS[name] for name in names)):
        requirement = Requirement(line)
        ours = canonicalize_name(requirement.name) == "per-tutorial"
        lines |= of_extras(*requirement.extras) if ours else {line}
    return lines


# Requirements -----------------------------------------------------------------------------------


def test_the_package_alone_asks_for_numpy_and_numba():
    assert requirements(PROJECT["dependencies"]).keys() == {"numba", "numpy"}


def test_conda_environment_asks_for_what_the_notebooks_need():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    *from_conda, from_pip = environment["dependencies"]
    assert "-e ." in from_pip["pip"]
    lines = [line.replace("pytorch", "torch") for line in from_conda]
    lines += [line for line in from_pip["pip"] if line != "-e ."]
    asked = requirements(lines)
    assert asked.pop("python")[1] == PROJECT["requires-python"]
    assert asked.pop("pip")
    assert asked == requirements({*PROJECT["dependencies"], *of_extras("lab")})


def test_other_places_to_start_install_what_make_lab_does():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    target, ready = container["postCreateCommand"].removeprefix("make "), "$(LAB_READY)"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"\n{target}: {ready} " in makefile and f"\nlab: {ready} " in makefile
    binder = yaml.safe_load((ROOT / ".binder/environment.yml").read_text(encoding="utf-8"))
    (python,) = (line for line in binder["dependencies"] if line.startswith("python="))
    assert Requirement(f"x{PROJECT['requires-python']}").specifier.contains(python[7:])
    script = ROOT / ".binder" / "postBuild"
    assert '--editable ".[lab]"' in script.read_text(encoding="utf-8")
    assert os.name == "nt" or os.access(script, os.X_OK)


def test_the_tests_have_what_the_notebooks_need():
    assert of_extras("notebooks") < of_extras("lab") < of_extras("test")


def test_conda_takes_from_pip_what_conda_forge_lacks():
    # conda-forge's ale-py has no games, its gymnasium no extras, its OpenCV another name; its
    # stable-baselines3 brings that gymnasium along.
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    names = set(
        requirements(line for line in environment["dependencies"][-1]["pip"] if line[0] != "-")
    )
    assert names == {
        *("ale-py", "gymnasium", "moviepy", "opencv-python-headless"),
        *("sb3-contrib", "stable-baselines3"),
    }


def test_requirements_have_floors_and_no_caps():
    for line in itertools.chain(PROJECT["dependencies"], *EXTRAS.values()):
        requirement = Requirement(line)
        if canonicalize_name(requirement.name) != "per-tutorial":
            assert [clause.operator for clause in requirement.specifier] == [">="], line


@pytest.mark.parametrize(
    "constraints", ["constraints.txt", "tests/colab/constraints.txt", "benchmarks/constraints.txt"]
)
def test_pinned_versions_meet_the_floors(constraints):
    lines = (ROOT / constraints).read_text(encoding="utf-8").splitlines()
    pinned = {}
    for line in lines:
        if not line.startswith("#"):
            requirement = Requirement(line)
            (clause,) = requirement.specifier
            assert clause.operator == "=="
            assert "+" not in clause.version, (
                f"a local version cannot be installed elsewhere: {line}"
            )
            pinned[canonicalize_name(requirement.name)] = clause.version
    everywhere = {*PROJECT["dependencies"], *of_extras("dqn")}
    for line in everywhere | of_extras("notebooks", "bench"):
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if line in everywhere or name in pinned:
            assert requirement.specifier.contains(pinned[name]), line


# Paths, commands --------------------------------------------------------------------------------


def test_no_file_names_a_place_on_someones_machine():
    place = re.compile(r"(?<![\w.~-])/(?:home|root|work|Users|mnt)/\w+")
    found = {name: place.findall(text) for name, text in tracked_texts()}
    assert {name: places for name, places in found.items() if places} == {}


def test_make_help_lists_every_command():
    phony = re.search(
        r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )[1].split()
    command = ["make", "--no-print-directory", "help"]  # `make test` is itself a make
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.split()[1] for line in listed.stdout.splitlines()] == phony


# Rooms and files --------------------------------------------------------------------------------


def is_hinted(function, method):
    """Whether a function says what it takes and returns; `self` needs no hint."""
    every = function.args
    arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    hints = [argument.annotation for argument in filter(None, arguments)]
    return function.returns is not None and None not in hints[method:]


def test_public_functions_carry_type_hints():
    # But not those that numba compiles: it finds the types by itself. Nor exercises, since their
    # references stand as a page has them.
    bare = []
    for path in (ROOT / "per_tutorial").rglob("*.py"):
        if path.parent.name == "exercises":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for holder in (tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))):
            for node in holder.body:
                if not isinstance(node, ast.FunctionDef):
                    continue
                decorators = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
                public = node.name == "__init__" or not node.name.startswith("_")
                method = isinstance(holder, ast.ClassDef) and "staticmethod" not in decorators
                if public and "njit_cached" not in decorators and not is_hinted(node, method):
                    bare.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert bare == []


# Folder → what a file that somebody may look for there holds, and where such a file is named
NAMED = {
    "cli": (r"^HELP = ", "cli/__init__.py"),
    "studies/declared": (r"^STUDIES = ", "studies/declared/__init__.py"),
    "replay/samplers": (r"^class \w+Sampler\b", "replay/registry.py"),
    "replay/storages": (r"^class \w+Storage\(", "replay/registry.py"),
}


@pytest.mark.parametrize("folder", NAMED)
def test_a_file_of_a_folder_is_named_where_the_others_are(folder):
    room = ROOT / "per_tutorial"
    holds, where = NAMED[folder]
    files = {
        path.stem
        for path in (room / folder).glob("*.py")
        if re.search(holds, path.read_text(encoding="utf-8"), re.MULTILINE)
    } - {"__init__"}
    assert len(files) > 1
    assert files <= set(re.findall(r"\w+", (room / where).read_text(encoding="utf-8")))


@pytest.mark.slow
def test_no_test_module_imports_another():
    modules = {path.stem: path for path in (ROOT / "tests").rglob("test_*.py")}
    importers = {}
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported = {node.module}
            else:
                continue
            if imported & modules.keys():
                importers[name] = imported
    assert importers == {}, "what several of them need goes to tests/support"


# What loads what --------------------------------------------------------------------------------

SHOWING_SIDE = {"matplotlib", "IPython", "ipywidgets", "moviepy"}
LEARNING_SIDE = {"torch", "gymnasium", "safetensors"}


def python(*arguments):
    """What a fresh Python prints, to stdout and to stderr."""
    result = subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True
    )
    return result.stdout, result.stderr


def loaded_by(*modules):
    """The top-level packages that a fresh Python holds after importing these modules."""
    printed, _ = python("-c", f"import sys, {', '.join(modules)}; print(*sys.modules)")
    return {name.partition(".")[0] for name in printed.split()}


def modules_in(room):
    """The names of all modules of a room."""
    files = (ROOT / "per_tutorial" / room).rglob("*.py")
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files)
    return sorted(name.removesuffix(".__init__") for name in names)


def test_the_package_alone_loads_nothing_but_its_table_of_names():
    printed, _ = python("-c", "import sys, per_tutorial; print(*sys.modules)")
    ours = {name for name in printed.split() if name.startswith("per_tutorial")}
    assert ours == {"per_tutorial", "per_tutorial.common", "per_tutorial.common.lazy"}
    assert loaded_by("per_tutorial").isdisjoint({"numpy", "numba"} | LEARNING_SIDE | SHOWING_SIDE)


def test_import_is_fast():
    times = []
    for _ in range(5):
        _, report = python("-X", "importtime", "-c", "import typing, per_tutorial")
        (microseconds,) = re.findall(r"\| +(\d+) \| per_tutorial$", report, re.MULTILINE)
        times.append(int(microseconds))
    assert min(times) < 50_000  # about 1500, where nothing else runs


@pytest.mark.parametrize("room", ["common", "replay"])
def test_replay_loads_without_the_learning_and_the_showing_side(room):
    loaded = loaded_by(*modules_in(room))
    assert loaded.isdisjoint({"PIL", "tqdm"} | LEARNING_SIDE | SHOWING_SIDE)


@pytest.mark.slow
@pytest.mark.parametrize("room", ["dqn", "experiments", "studies", "worlds", "cliffwalk"])
def test_learning_loads_without_the_showing_side(room):
    assert loaded_by(*modules_in(room)).isdisjoint(SHOWING_SIDE)


def test_a_page_that_only_shows_loads_neither_torch_nor_an_encoder():
    loaded = loaded_by("per_tutorial.notebook")
    assert loaded.isdisjoint({"moviepy", "imageio_ffmpeg"} | LEARNING_SIDE)
