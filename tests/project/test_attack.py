"""The attacks of tools/attack.py in a form that takes seconds; and that they find something."""

import copy
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from attacks import files, interrupts, operations
from attacks.children import MIB, in_children
from attacks.commands import judge
from attacks.readers import Reader
from per_tutorial.replay.storages.ring import RingStorage

from per_tutorial.replay import ProportionalSampler, RankBasedSampler, Replay

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


@pytest.mark.slow
def test_nothing_gives_way():
    """In a process of its own: it forks, and it is interrupted."""
    attacks = ["files", "operations", "kills", "interrupts", "commands"]
    command = [sys.executable, ROOT / "tools" / "attack.py", *attacks, "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------- bugs that must be noticed


@pytest.mark.slow
def test_what_a_case_does_to_its_process_is_told_of_that_case():
    def work(number):
        if number == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        elif number == 2:
            time.sleep(60)
        elif number == 3:
            return len(bytearray(400 * MIB))
        return number

    found = list(in_children(work, 5, seconds=1, memory=100 * MIB))
    assert found == [
        (0, 0, None),
        (1, None, "the process died of SIGSEGV"),
        (2, None, "no end after 1 s, or killed"),
        (3, None, "the process ended with the status 99"),
        (4, 4, None),
    ]


def forgets_the_error(sampler, slots, td_errors):
    """The TD errors of a minibatch are lost."""


def shares_what_it_counts(storage, memo):
    return copy.copy(storage)


def adds_as_largest(sampler, slots, added):
    """As many as were added count, interrupted or not."""
    sampler._write(slots, np.ones(slots.shape))


@pytest.mark.parametrize(
    ("owner", "name", "bug"),
    [
        (ProportionalSampler, "update", forgets_the_error),
        (RankBasedSampler, "update", forgets_the_error),
        (ProportionalSampler, "add", adds_as_largest),
        (RingStorage, "__deepcopy__", shares_what_it_counts),
        (Replay, "restore", lambda buffer, state: None),
        (Replay, "truncate_episodes", lambda buffer: None),
    ],
)
def test_operations_find_a_bug(owner, name, bug, monkeypatch):
    monkeypatch.setattr(owner, name, bug, raising=False)
    assert operations.attack(4000, log=str)


def forget(buffer):
    buffer._unfinished = None


@pytest.mark.slow
def test_interrupts_find_a_buffer_that_does_not_finish_what_was_cut_short(monkeypatch):
    monkeypatch.setattr(Replay, "_finish", forget)
    assert interrupts.attack(1400, log=str)


def reads(path, *, does):
    """Take every file that is not empty, after doing something."""
    data = path.read_bytes()
    if data == b"honest":
        yield True
        return
    yield from does(data)
    yield True


def fails(data):
    raise KeyError("late")


def takes_memory(data):
    bytearray(600 * MIB)  # far beyond what a large process may take by itself meanwhile
    return []


def takes_long(data):
    start = time.process_time()
    while time.process_time() < start + 0.2:
        pass
    return []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "finding"),
    [
        (fails, "KeyError: 'late'"),
        (takes_memory, " MiB for a file of"),
        (takes_long, "it took 0.2 s"),
        (lambda data: os.abort(), "the process died of SIGABRT"),
        (lambda data: ["the buffer has changed"], "the buffer has changed"),
    ],
    ids=["fails late", "takes memory", "takes long", "crashes", "says what is wrong"],
)
def test_files_find_a_reader_that(does, finding, monkeypatch):
    reader = Reader(
        "a kind", "file", lambda folder: b"honest", lambda data, rng: (b"bad", "spoiled"), None
    )
    monkeypatch.setattr(files, "READERS", [reader._replace(read=partial(reads, does=does))])
    if does is takes_long:  # the others may take longer where the machine is busy
        monkeypatch.setattr(files, "SECONDS", 0.1)
    monkeypatch.setattr(files.mutations, "others", lambda: {"else": b"else"})
    findings = files.attack(2, log=str)
    assert len(findings) == 2
    assert all(one.startswith("a kind [") and finding in one for one in findings), findings


USAGE = "usage: python -m per_tutorial [-h] COMMAND ...\n   and more\n"


@pytest.mark.parametrize(
    ("status", "errors", "finding"),
    [
        ("a text", "python -m per_tutorial: alpha: must be in [0, 1]\n", None),
        (2, f"{USAGE}python -m per_tutorial: error: no such command\n", None),
        (1, "python -m per_tutorial: warning: a\npython -m per_tutorial: b c\n", None),
        (0, "", "it is accepted"),
        (
            1,
            "Traceback (most recent call last):\n  File\nKeyError: 'stacks'\n",
            "a traceback: KeyError",
        ),
        (1, "UserWarning: x\npython -m per_tutorial: alpha\n", "2 lines: UserWarning"),
        (1, "", "0 lines"),
        (1, "'stacks'\n", "an unclear line: \"'stacks'\""),
        (1, f"python -m per_tutorial: {'x' * 2000}\n", "a line of 2024 characters"),
    ],
)
def test_commands_find_what_is_not_one_clear_line(status, errors, finding):
    found = judge([], status, errors)
    assert found == [] if finding is None else found[0].startswith(finding)
