"""Plant small mistakes in the code, one at a time, and note which of them the tests find.

    python tools/mutants.py FOLDER results.jsonl [--count 200] [--seed 0] [--quick]

FOLDER is a clone of the repository, of any version; each mistake is planted in a copy of it. A
mistake is a comparison, an operator or a number that is another one, or a statement that is left
out. It counts as found if a test of its own room fails, or hangs; with --quick, if one does that is
not slow. Started again, the tool goes on where it was.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOMS = ("replay", "dqn", "integrations")
# The slow tests come last, since few mistakes need them.
TESTS = ("not slow", "slow")
LEFT_OUT = "and not browser and not exhaustive"
TOO_LONG = 900  # seconds

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
BOOLEAN = {ast.And: ("and", "or"), ast.Or: ("or", "and")}

# Hypothesis looks for the smallest example that fails; the first one is enough here.
RUN_TESTS = """
import sys, pytest, hypothesis
phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
hypothesis.settings.register_profile("mutants", phases=phases, database=None)
hypothesis.settings.load_profile("mutants")
sys.exit(pytest.main(sys.argv[1:]))
"""


class Mutant(NamedTuple):
    """Bytes `start` to `end` of the file `path` become `new`."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str


def mutants(folder: Path, path: Path) -> Iterator[Mutant]:
    """All mistakes that the tool can make in a file."""
    source = path.read_bytes()
    starts = [0]  # of each line, in bytes, as `ast` counts
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def mutant(line: int, start: int, end: int, new: str) -> Mutant:
        name = path.relative_to(folder).as_posix()
        return Mutant(name, line, start, end, source[start:end].decode(), new)

    def span(node: Any) -> tuple[int, int]:
        first, last = starts[node.lineno - 1], starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    for node in visited(ast.parse(source)):
        for left, right, (old, new) in operators(node):
            # Parentheses and line breaks may stand between two operands, too.
            start = source.find(old.encode(), span(left)[1], span(right)[0])
            if start >= 0:
                yield mutant(left.end_lineno, start, start + len(old), new)
        if (another := instead_of(node)) is not None:
            yield mutant(node.lineno, *span(node), another)


def operators(node: Any) -> Iterator[tuple[Any, Any, tuple[str, str]]]:
    """(left operand, right operand, (operator, another one))"""
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            yield left, right, COMPARISONS[type(op)]
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield node.left, node.right, ARITHMETIC[type(node.op)]
    elif isinstance(node, ast.BoolOp):
        yield *node.values[:2], BOOLEAN[type(node.op)]


def instead_of(node: Any) -> str | None:
    """Another number for a number, nothing for a statement."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return repr(not node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return repr(node.value + max(1, abs(node.value)))  # 1e100 + 1 is 1e100
    stored = isinstance(node, ast.Assign) and isinstance(
        node.targets[0], ast.Attribute | ast.Subscript
    )
    return "pass" if stored or isinstance(node, ast.Expr | ast.AugAssign) else None


def visited(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that a program runs: no annotations, decorators, docstrings, errors' words."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            words = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not words and not isinstance(child, ast.Raise):
                yield from visited(child)


def drawn(folder: Path, count: int, seed: int) -> list[Mutant]:
    """`count` mistakes in the three rooms, each as likely as any other."""
    paths = [path for room in ROOMS for path in (folder / "per_tutorial" / room).rglob("*.py")]
    possible = [one for path in sorted(paths) for one in mutants(folder, path)]
    return random.Random(seed).sample(possible, count)


def tests_of(folder: Path, path: str) -> list[str]:
    """The tests of a file's room, those named after the file first."""
    room, stem = Path(path).parts[1], Path(path).stem
    files = sorted((folder / "tests" / room).rglob("test_*.py"))
    files.sort(key=lambda file: stem.strip("_") not in file.stem)
    return [str(file) for file in files]


def run_tests(folder: Path, path: str, quick: bool) -> str:
    """ "passed", "hung", or the name of the test that failed."""
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "OMP_NUM_THREADS": "1",
        "PER_TUTORIAL_FAST": "1",
    }
    command = [sys.executable, "-c", RUN_TESTS, "-x", "-q", "-p", "no:cacheprovider"]
    command += tests_of(folder, path)
    for which in TESTS[:1] if quick else TESTS:
        try:
            done = subprocess.run(
                [*command, "-m", f"{which} {LEFT_OUT}"],
                cwd=folder,
                env=environment,
                timeout=TOO_LONG,
                capture_output=True,
                text=True,
                encoding="utf-8",
            )
        except subprocess.TimeoutExpired:
            return "hung"
        if done.returncode not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            named = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", done.stdout, re.MULTILINE)
            return named[1] if named else "failed"
    return "passed"


def try_mutant(folder: Path, mutant: Mutant, quick: bool) -> str:
    with tempfile.TemporaryDirectory() as temporary:
        # The copy keeps the times of the files, so that numba's compiled ones stay valid.
        copy = Path(temporary, "clone")
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".git", "build", ".venv*"))
        path = copy / mutant.path
        source = path.read_bytes()
        path.write_bytes(source[: mutant.start] + mutant.new.encode() + source[mutant.end :])
        if b"njit" in source:  # the callers of a changed kernel would go on with the old one
            for compiled in (copy / "per_tutorial").rglob("*.nb[ci]"):
                compiled.unlink()
        return run_tests(copy, mutant.path, quick)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=lambda name: Path(name).resolve())
    parser.add_argument("results", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="leave out the slow tests")
    arguments = parser.parse_args()
    results = arguments.results
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    known = {tuple(json.loads(line)["mutant"]): json.loads(line)["found_by"] for line in lines}
    if not known:
        for room in ROOMS:
            found_by = run_tests(arguments.folder, f"per_tutorial/{room}/x.py", arguments.quick)
            if found_by != "passed":
                sys.exit(f"nothing is planted: without a mistake, {found_by} fails")
    planted = drawn(arguments.folder, arguments.count, arguments.seed)
    for mutant in planted:
        if mutant in known:
            continue
        known[mutant] = try_mutant(arguments.folder, mutant, arguments.quick)
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"mutant": mutant, "found_by": known[mutant]}) + "\n")
        if known[mutant] == "passed":
            print(f"{mutant.path}:{mutant.line}: {mutant.old!r} → {mutant.new!r} passes all tests")
    found = sum(known[mutant] != "passed" for mutant in planted)
    print(f"{found} of {len(planted)} mistakes were found")


if __name__ == "__main__":
    main()
