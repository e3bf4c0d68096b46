"""The decorator that compiles loops, and the machine code that is kept on disk.

numba keeps machine code too, but it looks only at the file of the loop itself: after a change to a
loop in another file, it goes on with what was compiled of the old one (numba #1833). A damaged file
or a full disk ends the program (numba #10434, #9348).
"""

import hashlib
import pickle
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from per_tutorial.common.files import atomic_write

PACKAGE = Path(__file__).parents[1]


def njit_cached(function: Callable) -> Any:
    """``numba.njit`` that keeps the machine code of this package's loops on disk if it can.

    numba finds the place: below `NUMBA_CACHE_DIR`, beside the source file, or below the user's
    home. If none can be written, every process compiles for itself. So it does for functions
    elsewhere, as in a notebook's cell: what they call may change unseen.
    """
    loop = numba.njit(function)
    if loop is function:  # NUMBA_DISABLE_JIT is set; compiled integers wrap around in silence
        return np.errstate(over="ignore")(function)
    if PACKAGE in Path(function.__code__.co_filename).parents:
        with suppress(RuntimeError):  # numba: "no locator available"
            loop._cache = LoopCache(function)
    return loop


def hash_sources() -> str:
    """A hash of the folders of this package where a module uses `njit_cached`.

    Whole folders, since loops also take constants and plain functions from the modules beside them.
    """
    files = sorted(PACKAGE.rglob("*.py"))
    texts = {file: file.read_bytes() for file in files if file.is_file()}  # else an editor's lock
    folders = {file.parent for file, text in texts.items() if b"njit_cached" in text}
    sources = b"".join(text for file, text in texts.items() if file.parent in folders)
    return hashlib.sha256(sources).hexdigest()[:16]


FOLDER = f"per_tutorial-{hash_sources()}"  # as they were when they were imported


def checksum_of(code: bytes) -> bytes:
    """What a file begins with."""
    return hashlib.sha256(code).hexdigest().encode()


class LoopCache(FunctionCache):
    """The machine code of one loop: a file for each signature, in a folder for these sources.

    A file begins with a checksum, since damaged machine code ends the program. What is absent or
    damaged is compiled anew; what can't be written is not kept. There is no index, which several
    processes could overwrite for each other.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        with suppress(OSError, ValueError):
            file = self._file(sig, target_context.codegen())
            checksum, code = file.read_bytes().split(b"\n", 1)
            if checksum == checksum_of(code):
                return self._impl.rebuild(target_context, pickle.loads(code))

    def save_overload(self, sig: Any, data: Any) -> None:
        if not self._impl.check_cachable(data):
            return
        file = self._file(sig, data.codegen)
        code = dumps(self._impl.reduce(data))
        with suppress(OSError):
            if not file.parent.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                for old in file.parent.parent.glob("per_tutorial-*"):
                    if old != file.parent:
                        shutil.rmtree(old, ignore_errors=True)
            with atomic_write(file) as opened:
                opened.write(checksum_of(code) + b"\n" + code)

    def _file(self, sig: Any, codegen: Any) -> Path:
        key = repr((numba.__version__, self._index_key(sig, codegen)))
        number = hashlib.sha256(key.encode()).hexdigest()[:16]
        return Path(self._cache_path, FOLDER, f"{self._impl.filename_base}-{number}.nbc")
