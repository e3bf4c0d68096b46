"""The project's frame: what it requires, and what loads what."""

import itertools
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest
import yaml
from notebook_files import ROOT, code_cells, read, series
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tracked import tracked_texts

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
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


def test_the_set_up_cell_looks_for_what_the_notebooks_need():
    (needs,) = re.findall(r'^NEEDS = "(.*)"', code_cells(read(series()[0]))[0].source, re.MULTILINE)
    owners = packages_distributions()
    found = {canonicalize_name(name) for need in needs.split() for name in owners.get(need, ())}
    missing = requirements(of_extras("notebooks")).keys() - found - {"ray"}
    brought_along = {"imageio-ffmpeg", "pillow", "safetensors", "scipy", "stable-baselines3"}
    brought_along |= {"tyro"}  # the command line's
    assert missing <= brought_along | {"ipython"}


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
    script = ROOT / ".binder" / "postBuild"
    assert '--editable ".[lab]"' in script.read_text(encoding="utf-8")
    assert os.name == "nt" or os.access(script, os.X_OK)


def test_requirements_have_floors_and_no_caps():
    for line in itertools.chain(PROJECT["dependencies"], *EXTRAS.values()):
        requirement = Requirement(line)
        if canonicalize_name(requirement.name) != "per-tutorial":
            assert [clause.operator for clause in requirement.specifier] == [">="], line


@pytest.mark.parametrize("folder", ["", "tests/colab", "benchmarks"])
def test_pinned_versions_meet_the_floors(folder):
    lines = (ROOT / folder / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {}
    for requirement in (Requirement(line) for line in lines if not line.startswith("#")):
        (clause,) = requirement.specifier
        assert clause.operator == "==" and "+" not in clause.version, requirement
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


@pytest.mark.slow
def test_the_command_line_prints_where_the_output_knows_few_characters():
    """As a pipe on Windows does: the help has a − in it."""
    ran = subprocess.run(
        [sys.executable, "-m", "per_tutorial", "train", "--help"],
        env={**os.environ, "PYTHONIOENCODING": "cp1252:strict"},
        capture_output=True,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"--sampler" in ran.stdout and b"?" in ran.stdout


# What loads what --------------------------------------------------------------------------------

SHOWING_SIDE = {"IPython", "PIL", "ipywidgets", "matplotlib"}
LEARNING_SIDE = {"gymnasium", "safetensors", "torch"}


def modules_of(room):
    """The names of all modules of a room."""
    files = (ROOT / "per_tutorial" / room).rglob("*.py")
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files)
    return sorted(name.removesuffix(".__init__") for name in names)


@pytest.mark.parametrize(
    "modules, unwanted",
    [
        (["per_tutorial"], {"numpy", "numba"} | LEARNING_SIDE | SHOWING_SIDE),
        (modules_of("replay"), LEARNING_SIDE | SHOWING_SIDE),
        (["per_tutorial.notebook"], {"imageio_ffmpeg"} | LEARNING_SIDE),
        (["per_tutorial.notebook.exercises.notebook_01"], LEARNING_SIDE),
        pytest.param(modules_of("dqn"), SHOWING_SIDE - {"PIL"}, marks=pytest.mark.slow),
    ],
    ids=["package", "replay", "notebook", "exercises", "dqn"],
)
@pytest.mark.slow
def test_importing_loads_no_more_than_it_must(modules, unwanted):
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert {name.partition(".")[0] for name in ran.stdout.split()}.isdisjoint(unwanted)
