"""What is released: what must be true before, what a wheel holds, and who may publish it."""

import re
import subprocess
import sys
import zipfile

import pytest
import release
import yaml
from notebook_files import ROOT

import per_tutorial

WORKFLOWS = ROOT / ".github" / "workflows"
VERSION = per_tutorial.__version__


def jobs(name):
    return yaml.safe_load((WORKFLOWS / f"{name}.yml").read_text(encoding="utf-8"))["jobs"]


def test_a_release_needs_version_changelog_and_pages_run_with_it(tmp_path, monkeypatch):
    texts = {
        "per_tutorial/__init__.py": '__version__ = "1.2.0"\n',
        "CHANGELOG.md": "## [1.2.0] - 2027-01-02\n",
        "CITATION.cff": "version: 1.2.0\n",
        "notebooks/00_page.ipynb": r'"BRANCH = \"v1.2.0\"" … "per_tutorial": "1.2.0"',
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "PAGES", tmp_path / "notebooks")
    assert release.unready("v1.2.0") == []
    for tag, count in (("v1.2.0.dev0", 5), ("1.2.0", 1), ("v1.2.1", 5)):
        assert len(release.unready(tag)) == count, tag


def test_the_version_is_one():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == VERSION
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(.+?)\]", changelog, re.MULTILINE)[1]
    assert newest == ("Unreleased" if ".dev" in VERSION else VERSION)


@pytest.mark.exhaustive
def test_a_wheel_holds_the_package_alone_and_its_page_has_whole_links(tmp_path):
    release.export(tmp_path / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, tmp_path, tmp_path / "source"], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    package = (tmp_path / "source" / "per_tutorial").rglob("*")
    files = {path.relative_to(tmp_path / "source").as_posix() for path in package if path.is_file()}
    with zipfile.ZipFile(wheel) as file:
        assert {name for name in file.namelist() if ".dist-info/" not in name} == files
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = file.read(name).decode()
    assert f"\nVersion: {VERSION}\n" in metadata
    assert "/raw/HEAD/docs/sum_tree.gif)" in metadata
    assert re.findall(r"\]\((?![a-z]+:|#)", metadata) == []


def test_what_the_trial_runs_works():
    exec(release.BUFFER, {})
    assert (release.PAGES / "01_segment_tree.ipynb").exists()


def test_actions_are_pinned_by_commit():
    for path in WORKFLOWS.glob("*.yml"):
        for job in jobs(path.stem).values():
            for step in job["steps"]:
                name, _, commit = step.get("uses", "a@" + 40 * "0").partition("@")
                assert len(commit) == 40 and int(commit, 16) >= 0, (path.name, name)


def test_only_the_step_that_publishes_may_speak_for_the_project():
    build, publish = jobs("release")["build"], jobs("release")["publish"]
    assert "permissions" not in build
    assert any(
        'make dist ARGS="$GITHUB_REF_NAME"' in step.get("run", "") for step in build["steps"]
    )
    assert publish["needs"] == "build"
    assert publish["permissions"] == {"id-token": "write"}
    assert not any("run" in step for step in publish["steps"])
