"""What a result was made on and with."""

import builtins
import io
import platform
import sys
from importlib.metadata import version

from per_tutorial.common.provenance import processor, versions


def test_versions_are_python_and_what_is_installed_in_the_order_asked_for(monkeypatch):
    monkeypatch.delitem(sys.modules, "tqdm", raising=False)
    assert list(versions("numpy", "no-such-package", "tqdm").items()) == [
        ("python", platform.python_version()),
        ("numpy", version("numpy")),
        ("tqdm", version("tqdm")),
    ]
    assert "tqdm" not in sys.modules  # nothing is imported for its version


def test_the_processor_is_the_first_of_the_systems_list_or_what_python_knows(monkeypatch):
    listed = "processor\t: 0\nmodel name\t: A: Model\nprocessor\t: 1\nmodel name\t: Another\n"
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    for text, found in ((listed, "A: Model"), ("CPU part\t: 0xd0c\n", "aarch64")):
        monkeypatch.setattr(builtins, "open", lambda path, text=text, **_: io.StringIO(text))
        assert processor() == found

    def no_list(path, **_):
        raise FileNotFoundError(path)

    monkeypatch.setattr(builtins, "open", no_list)
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert processor() == "arm"
