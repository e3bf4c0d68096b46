"""The tool that plants small mistakes: each is a program, and another one than before."""

import ast
from pathlib import Path

import mutants
import pytest

ROOT = Path(mutants.__file__).parents[1]

SOURCE = '''"""Nothing to change here."""


def mean_of_positive(values: list[float], start=2) -> float:
    """Neither is 1 + 1 here."""
    total, count = 0.0, 0
    for value in values:
        if value > 0 and not value == start:
            total += value
            count += 1
    print(total)
    return total / count
'''
MISTAKES = {
    ("2", "4"), ("0.0", "1.0"), ("0", "1"), (">", ">="), ("and", "or"), ("==", "!="), ("/", "*"),
    ("1", "2"), ("total += value", "pass"), ("count += 1", "pass"), ("print(total)", "pass"),
}  # fmt: skip


def test_the_mistakes_of_a_small_file(tmp_path):
    path = tmp_path / "file.py"
    path.write_text(SOURCE, encoding="utf-8")
    assert {(one.old, one.new) for one in mutants.mutants(tmp_path, path)} == MISTAKES


@pytest.mark.slow
@pytest.mark.parametrize("room", mutants.ROOMS)
def test_a_mistake_is_a_program_and_another_one(room):
    for path in sorted((ROOT / "per_tutorial" / room).glob("*.py")):
        source = path.read_bytes()
        before = ast.dump(ast.parse(source))
        for one in list(mutants.mutants(ROOT, path))[::5]:
            changed = source[: one.start] + one.new.encode() + source[one.end :]
            assert ast.dump(ast.parse(changed)) != before, one


@pytest.mark.slow
def test_the_same_seed_draws_the_same_mistakes():
    assert mutants.drawn(ROOT, 5, seed=1) == mutants.drawn(ROOT, 5, seed=1)
    assert mutants.drawn(ROOT, 5, seed=1) != mutants.drawn(ROOT, 5, seed=2)


@pytest.mark.slow
def test_a_mistake_is_found_by_the_test_that_fails_and_taken_back(tmp_path):
    room = tmp_path / "per_tutorial" / "replay"
    tests = tmp_path / "tests" / "replay"
    for folder in (room, tests):
        folder.mkdir(parents=True)
    path = room / "small.py"
    path.write_text("def double(x):\n    return x * 2\n", encoding="utf-8")
    test = "from per_tutorial.replay.small import double\ndef test_three(): assert double(3) == 6\n"
    (tests / "test_small.py").write_text(test, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n", encoding="utf-8")
    found = {
        one.new: mutants.try_mutant(tmp_path, one, quick=True)
        for one in mutants.mutants(tmp_path, path)
    }
    assert found == dict.fromkeys(["/", "4"], "tests/replay/test_small.py::test_three")
    assert "x * 2" in path.read_text(encoding="utf-8")
