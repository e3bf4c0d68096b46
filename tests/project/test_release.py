"""What is released: what a wheel holds, and what must be true before there is one."""

import subprocess
import sys
import zipfile

import addresses
import pytest
import release
import yaml
from notebook_files import NOTEBOOKS, ROOT

from per_tutorial.cli import main

VERSION = "1.2.0"
GOOD = {"per_tutorial/__init__.py", "per_tutorial/py.typed"}
METADATA = {
    "per_tutorial-1.2.0.dist-info/METADATA",
    "per_tutorial-1.2.0.dist-info/licenses/LICENSE",
}


@pytest.fixture
def ready(monkeypatch):
    """A repository that may be released as v1.2.0."""
    monkeypatch.setattr(addresses, "version", lambda: VERSION)
    monkeypatch.setattr(addresses, "release", lambda: f"v{VERSION}")
    monkeypatch.setattr(addresses, "address", lambda: "https://github.com/someone/else")
    monkeypatch.setattr(addresses, "disagreeing", lambda: [])


# Before -----------------------------------------------------------------------------------------


def test_a_repository_that_is_ready(ready):
    assert release.unready(f"v{VERSION}") == []
    assert release.unready(f"v{VERSION}", "someone/else") == []


@pytest.mark.parametrize(
    "tag, name, value, reason",
    [
        ("v1.2.1", None, None, "the tag is v1.2.1, and the version 1.2.0"),
        ("v1.2.0", "version", "1.2.0.dev0", "the tag is v1.2.0, and the version 1.2.0.dev0"),
        ("v1.2.0.dev0", "version", "1.2.0.dev0", "v1.2.0.dev0 is not the tag of a release"),
        ("v1.2.0", "release", "v1.1.0", "CHANGELOG.md has v1.1.0 as the last release"),
        ("v1.2.0", "release", None, "CHANGELOG.md has None as the last release"),
        ("v1.2.0", "address", f"https://github.com/{addresses.NOBODY}/x", "the address is not set"),
        ("v1.2.0", "disagreeing", ["README.md"], "make addresses would change README.md"),
    ],
)
def test_what_keeps_a_repository_from_being_released(ready, monkeypatch, tag, name, value, reason):
    if name:
        monkeypatch.setattr(addresses, name, lambda: value)
    assert any(each.startswith(reason) for each in release.unready(tag))


def test_another_repository_does_not_release(ready):
    (reason,) = release.unready(f"v{VERSION}", "fork/else")
    assert "make addresses" in reason


def test_the_changelog_leads_to_the_version():
    """The first section is of what is not released, or the last release is this version."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = next(line for line in text.splitlines() if line.startswith("## "))
    if ".dev" in addresses.version():
        assert first == "## [Unreleased]"
    else:
        assert addresses.release() == f"v{addresses.version()}"


# The page on PyPI -------------------------------------------------------------------------------


def test_links_of_the_page_on_pypi_are_absolute():
    page = (
        "![a](docs/a.png) [b](notebooks/b.ipynb) [![c](https://c/c.svg)](https://d) [e](#e) a[0](x)"
    )
    assert release.absolute_links(page, "https://BLOB", "https://RAW") == (
        "![a](https://RAW/docs/a.png) [b](https://BLOB/notebooks/b.ipynb) "
        "[![c](https://c/c.svg)](https://d) [e](#e) a[0](https://BLOB/x)"
    )


# Contents ---------------------------------------------------------------------------------------


def test_a_wheel_with_the_package_and_nothing_else_is_right():
    assert release.wrong_contents(GOOD | METADATA, GOOD) == []
    assert release.wrong_contents(GOOD | {"LICENSE", "PKG-INFO", "pyproject.toml"}, GOOD) == []


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_file_that_a_wheel_lacks_is_noticed(name):
    assert release.wrong_contents((GOOD | METADATA) - {name}, GOOD) == [f"without {name}"]


@pytest.mark.parametrize("name", ["tests/test_a.py", "build/lib/a.py", "per_tutorial/untracked.py"])
def test_a_file_that_does_not_belong_into_a_wheel_is_noticed(name):
    assert release.wrong_contents(GOOD | METADATA | {name}, GOOD) == [f"with {name}"]


def test_a_wheel_without_its_license_is_noticed():
    names = {name for name in GOOD | METADATA if "LICENSE" not in name}
    assert release.wrong_contents(names, GOOD) == ["without LICENSE"]


@pytest.mark.slow
def test_the_wheel_of_the_repository_as_it_is(tmp_path):
    names = release.export(tmp_path / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, tmp_path, tmp_path / "source"], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    package = [name for name in names if name.startswith("per_tutorial/")]
    assert wheel.stat().st_size < 1_000_000
    assert "per_tutorial/py.typed" in package
    assert release.wrong_contents(release.members(wheel), package) == []
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = file.read(name).decode()
    assert f"\nVersion: {addresses.version()}\n" in metadata
    picture = f"{addresses.address()}/raw/v{addresses.version()}/docs/sum_tree.gif"
    assert f"]({picture})" in metadata


# The workflows ----------------------------------------------------------------------------------


def workflow(name):
    """A workflow, and the lines that its steps run."""
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    return jobs, [step.get("run", "") for job in jobs.values() for step in job["steps"]]


def test_actions_are_pinned_by_commit():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            for step in job["steps"]:
                name, _, commit = step.get("uses", "a@" + 40 * "0").partition("@")
                assert len(commit) == 40 and int(commit, 16) >= 0, (path.name, name)


def test_only_the_step_that_publishes_may_speak_for_the_project():
    jobs, lines = workflow("release")
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"]["name"]
    assert not any("run" in step for step in jobs["publish"]["steps"])
    assert "permissions" not in jobs["build"]
    assert any("make dist" in line and "--tag" in line and "--in" in line for line in lines)


def test_the_tests_run_on_every_system_and_version():
    jobs, lines = workflow("test")
    pythons = ["3.11", "3.12", "3.13"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == pythons
    matrix = jobs["elsewhere"]["strategy"]["matrix"]
    assert matrix == {"system": ["macos-latest", "windows-latest"], "python": pythons}
    assert any("tools/addresses.py --in" in line for line in lines)


# The trial --------------------------------------------------------------------------------------


def test_what_is_tried_exists():
    assert (NOTEBOOKS / release.NOTEBOOK).exists()
    compile(release.BUFFERS, "what the wheel alone must do", "exec")
    for _, module, command, *_ in release.TRIALS:
        if module == "per_tutorial" and command != "--help":
            with pytest.raises(SystemExit) as end:
                main([command, "--help"])
            assert end.value.code == 0, command
