"""Compiled loops: their machine code is kept on disk, and belongs to the sources that it came from.

The tests run programs on a copy of the package with two small loops in two files, one of which
calls the other, and takes a constant from a third file.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import caching

import per_tutorial
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.random_streams import RandomStreams

pytestmark = pytest.mark.slow
CACHE = getattr(caching, "CacheImpl", None) or caching._CacheImpl  # its name under older numba
CALLED = """
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.step import STEP

@njit_cached
def called(number):
    return number + STEP
"""
CALLING = """
from per_tutorial.replay.called import called
from per_tutorial.replay.compiling import njit_cached

@njit_cached
def calling(number):
    return 10 * called(number)
"""
PROGRAM = """
from per_tutorial.replay.calling import calling
print(calling(1), calling(0.5), sum(getattr(calling, "stats").cache_hits.values()))
"""
WITHOUT_LARGE_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))  # as on a full disk
"""


@pytest.fixture
def package(tmp_path):
    """A folder with a copy of the package and of nothing that was compiled."""
    original = Path(per_tutorial.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("common", "replay"):
        shutil.copytree(original / folder, tmp_path / "per_tutorial" / folder, ignore=ignored)
    (tmp_path / "per_tutorial/__init__.py").touch()
    (tmp_path / "per_tutorial/replay/__init__.py").write_text("")
    (tmp_path / "per_tutorial/replay/step.py").write_text("STEP = 1")
    (tmp_path / "per_tutorial/replay/called.py").write_text(CALLED)
    (tmp_path / "per_tutorial/replay/calling.py").write_text(CALLING)
    return tmp_path


def start(package, program=PROGRAM, **environment):
    own = {
        "PYTHONPATH": str(package),
        "NUMBA_CACHE_DIR": "",  # beside the sources
        # Python's own files may be cut or stale here, since sources change within a second.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment = os.environ | own | environment
    command = [sys.executable, "-c", program]
    return subprocess.Popen(
        command, cwd=package, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def run(package, program=PROGRAM, **environment):
    """The numbers that the program prints: two results, and how often code was found on disk."""
    return numbers_of(start(package, program, **environment))


def numbers_of(process):
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    return [float(word) for word in printed.split()]


def kept(folder):
    return [*folder.rglob("*.nbc")]


def test_a_change_reaches_the_loops_in_other_files(package):
    assert run(package) == [20, 15, 0]
    files = len(kept(package))
    assert run(package) == [20, 15, 2]
    assert run(package, "import numba; numba.__version__ = 'new'\n" + PROGRAM) == [20, 15, 0]
    (package / "per_tutorial/replay/step.py").write_text("STEP = 2")
    assert run(package) == [30, 25, 0]
    assert len(kept(package)) == files  # those of the old sources are removed


def test_a_change_during_a_program_is_not_mistaken_for_its_sources(package):
    program = """
from pathlib import Path
from per_tutorial.replay import called
file = Path(called.__file__)
file.write_text(file.read_text().replace("+ STEP", "+ 2"))
"""
    assert run(package, program + PROGRAM) == [20, 15, 0]
    assert run(package) == [30, 25, 0]


def test_a_damaged_file_costs_a_compilation(package):
    run(package)
    for number, file in enumerate(sorted(kept(package))):
        file.write_bytes(file.read_bytes()[: 100 * (number % 2)])  # empty, or cut
    assert run(package) == [20, 15, 0]
    for file in kept(package):
        code = bytearray(file.read_bytes())
        code[len(code) // 2] ^= 1  # which an unpickled text or machine code may hide
        file.write_bytes(code)
    assert run(package) == [20, 15, 0]
    assert run(package) == [20, 15, 2]


def test_a_full_disk_costs_a_compilation(package):
    pytest.importorskip("resource")
    assert run(package, WITHOUT_LARGE_FILES + PROGRAM) == [20, 15, 0]
    assert run(package) == [20, 15, 0]


def test_processes_that_compile_at_the_same_time_do_not_mix_up_their_code(package):
    backwards = PROGRAM.replace("calling(1), calling(0.5)", "calling(0.5), calling(1)")
    processes = [start(package, program) for program in (PROGRAM, backwards)]
    assert [numbers_of(process)[:2] for process in processes] == [[20, 15], [15, 20]]
    assert run(package) == [20, 15, 2]


def test_without_the_jit_it_is_python(package):
    program = PROGRAM.replace('sum(getattr(calling, "stats").cache_hits.values())', "0")
    drawn = "from per_tutorial.replay.random_streams import RandomStreams\n"
    drawn += "import warnings; warnings.simplefilter('error')\n"  # of integers that wrap around
    drawn += "print(*RandomStreams([3], 'replay').uniform(2)[0])\n"
    numbers = RandomStreams([3], "replay").uniform(2)[0].tolist()
    assert run(package, program + drawn, NUMBA_DISABLE_JIT="1") == [20, 15, 0, *numbers]
    assert not kept(package)


def test_functions_elsewhere_are_compiled_in_every_process():
    @njit_cached  # what it calls may change, and nothing here would notice
    def double(number):
        return 2 * number

    assert double(21) == 42
    assert double.stats.cache_path is None


def test_where_nothing_can_be_written_it_is_compiled_in_every_process(package):
    # As for a package that root installed, and a user without a home.
    program = f"""
from numba.core import caching
caching.{CACHE.__name__}._locator_classes = []
"""
    assert run(package, program + PROGRAM) == [20, 15, 0]
    assert not kept(package)
