"""Damaged and hostile files of every kind that the package reads, each loaded and used.

A load may end in what its docstring says, and leaves what it was to fill as it was. What it accepts
must work. Nothing ends the process, asks for much more memory than an honest file, or takes long.
"""

import random
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from attacks import mutations
from attacks.children import MIB, PATIENCE, in_children
from attacks.readers import READERS, Reader

COUNT = 20_000
SECONDS = 5.0  # of computing, for a file that honestly takes some milliseconds
SPARE_MEMORY = 64 * MIB  # beyond twice an honest file's
# A spoiled file may be larger than the honest one. So its bytes may take some more memory: twice
# what a study's rows take for a byte of their text, and for a byte of the packed file.
MEMORY_PER_BYTE, MEMORY_PER_PACKED_BYTE = 20, 160
MAX_MEMORY = 1024 * MIB  # of address space: nothing comes near it honestly


class Honest(NamedTuple):
    """An honest file, and the memory that it takes to read and use it."""

    reader: Reader
    content: bytes
    memory: int


def attack(count: int = COUNT, seed: int = 0, *, log: Callable[[str], object] = print) -> list[str]:
    """Load and use ``count`` spoiled files; returns the findings."""
    with tempfile.TemporaryDirectory() as place:
        honest = [_honest(reader, Path(place)) for reader in READERS]
        mutations.others()  # not in the children, since it takes a while
        taken = {one.reader.name: 0 for one in honest}

        def work(number: int) -> tuple[bool, list[str], str]:
            return _try(
                honest[number % len(honest)], Path(place), random.Random(f"{seed}/{number}")
            )

        findings = []
        for number, result, ending in in_children(work, count, seconds=PATIENCE, memory=MAX_MEMORY):
            reader = honest[number % len(honest)].reader
            if ending is not None:
                said = _spoiled(honest[number % len(honest)], random.Random(f"{seed}/{number}"))[1]
                accepted, found = False, [ending]
            else:
                accepted, found, said = result
            taken[reader.name] += accepted
            findings += [
                f"{reader.name} [{number}] {said[:300]}\n    {finding}" for finding in found
            ]
    log(f"files: {count} spoiled ones of {len(READERS)} kinds, {len(findings)} findings")
    log("taken: " + ", ".join(f"{name} {number}" for name, number in taken.items()))
    return findings


def _honest(reader: Reader, place: Path) -> Honest:
    """Make the honest file, and see that it is taken; twice, since the first time imports."""
    content = reader.make(place)
    path = place / reader.file
    for _ in range(2):
        path.write_bytes(content)
        with _memory() as used:
            found = list(reader.read(path))
        if found != [True]:
            raise AssertionError(f"{reader.name}: an honest file is not taken: {found}")
    return Honest(reader, content, used.peak)


def _spoiled(honest: Honest, rng: random.Random) -> mutations.Mutation:
    kind, reader = rng.random(), honest.reader
    if kind < 0.2:
        return mutations.spoil_bytes(honest.content, rng)
    if kind < 0.23:
        return mutations.anything(honest.content, rng)
    return reader.spoil(honest.content, rng)


def _try(honest: Honest, place: Path, rng: random.Random) -> tuple[bool, list[str], str]:
    content, said = _spoiled(honest, rng)
    path = place / honest.reader.file
    path.write_bytes(content)
    start = time.process_time()
    findings: list[str] = []
    accepted = False
    with _memory() as used, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for found in honest.reader.read(path):
                if found is True:
                    accepted = True
                elif found is not False:
                    findings.append(str(found))
        except BaseException as error:
            findings.append(_told(error))
    took = time.process_time() - start
    if took > SECONDS:
        findings.append(f"it took {took:.1f} s")
    each = MEMORY_PER_PACKED_BYTE if content[:2] == mutations.GZIP else MEMORY_PER_BYTE
    most = 2 * honest.memory + SPARE_MEMORY + each * len(content)
    if used.peak > most:
        findings.append(f"{used.peak // MIB} MiB for a file of {len(content)} bytes")
    return accepted, findings, said


def _told(error: BaseException) -> str:
    """The error, and the last place in the package that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [
        frame
        for frame in frames
        if "per_tutorial" in frame.filename and "tools" not in frame.filename
    ]
    places = " < ".join(
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(inside[-3:])
    )
    return f"{type(error).__name__}: {str(error)[:200]} ({places})"


class _memory:
    """Bytes of memory that a with block takes at most, beyond what there was."""

    peak = 0

    def __enter__(self) -> "_memory":
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak begins anew
        self._before = _status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.peak = max(0, _status("VmHWM") - self._before)


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)
