"""What would break on another system, found on this one."""

import ast
import os
import subprocess
import sys

import pytest
from notebook_files import ROOT
from tracked import tracked_files


def calls_without_encoding(source):
    """The lines that read or write text in the encoding that the system happens to have."""
    lines = []
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if call.args and ast.unparse(call.args[0]).startswith(
            ("'/proc/", "f'/proc/", "os.devnull")
        ):
            continue  # on Linux alone, and in ASCII; or nothing at all
        if isinstance(call.func, ast.Attribute):
            before = {"read_text": 0, "write_text": 1}.get(call.func.attr)
            text = before is not None and len(call.args) <= before
        else:
            mode = call.args[1] if len(call.args) > 1 else given.get("mode")
            opens = isinstance(call.func, ast.Name) and call.func.id == "open"
            text = opens and not (isinstance(mode, ast.Constant) and "b" in mode.value)
        if text and "encoding" not in given:
            lines.append(call.lineno)
    return lines


@pytest.mark.parametrize(
    "line, found",
    [
        ("path.read_text()", [1]),
        ("path.write_text(text, newline='')", [1]),
        ("open(path)", [1]),
        ("open(path, 'w')", [1]),
        ("open(path, mode='rb')", []),
        ("open(path, 'wb')", []),
        ("open(path, encoding='utf-8')", []),
        ("path.read_text(encoding='utf-8')", []),
        ("os.open(path, os.O_RDONLY)", []),
    ],
)
def test_calls_without_encoding_are_found(line, found):
    assert calls_without_encoding(line) == found


@pytest.mark.slow
def test_text_files_are_read_and_written_in_utf_8():
    found = {}
    for name in tracked_files():
        if name.endswith(".py") and (ROOT / name).exists():
            found[name] = calls_without_encoding((ROOT / name).read_text(encoding="utf-8"))
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.slow
def test_the_command_line_prints_where_the_output_knows_few_characters():
    """As a pipe on Windows does: the help has a − in it."""
    for errors in ("", ":strict"):
        ran = subprocess.run(
            [sys.executable, "-m", "per_tutorial", "train", "--help"],
            env={**os.environ, "PYTHONIOENCODING": f"cp1252{errors}"},
            capture_output=True,
        )
        assert (ran.returncode, ran.stderr) == (0, b"")
        assert b"--sampler" in ran.stdout and b"?" in ran.stdout
