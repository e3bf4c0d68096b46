"""What a result was made on and with."""

import builtins
import io
import platform
import sys
from importlib.metadata import version

from per_tutorial.common.provenance import processor, versions


def test_versions_are_python_and_what_was_asked_for_in_that_order():
    found = versions("numpy", "numba")
    assert list(found.items()) == [
        ("python", platform.python_version()),
        ("numpy", version("numpy")),
        ("numba", version("numba")),
    ]


def test_what_is_not_installed_has_no_version():
    assert list(versions("no-such-package", "numpy")) == ["python", "numpy"]
    assert list(versions()) == ["python"]


def test_no_package_is_imported_for_its_version(monkeypatch):
    monkeypatch.delitem(sys.modules, "tqdm", raising=False)
    versions("tqdm")
    assert "tqdm" not in sys.modules


def test_the_processor_is_the_first_of_the_systems_list(monkeypatch):
    listed = "processor\t: 0\nmodel name\t: A: Model\nprocessor\t: 1\nmodel name\t: Another\n"
    monkeypatch.setattr(builtins, "open", lambda path, **_: io.StringIO(listed))
    assert processor() == "A: Model"


def test_without_a_list_the_processor_is_what_python_knows(monkeypatch):
    def no_list(path, **_):
        raise FileNotFoundError(path)

    for opened in (no_list, lambda path, **_: io.StringIO("CPU part\t: 0xd0c\n")):
        monkeypatch.setattr(builtins, "open", opened)
        monkeypatch.setattr(platform, "processor", lambda: "")
        monkeypatch.setattr(platform, "machine", lambda: "aarch64")
        assert processor() == "aarch64"
        monkeypatch.setattr(platform, "processor", lambda: "arm")
        assert processor() == "arm"
