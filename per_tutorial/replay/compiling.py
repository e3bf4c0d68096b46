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


def njit_cached(function: Callable) -> Any:
    """``numba.njit`` that keeps the machine code of this package's loops on disk if it can.

    numba finds the place: below `NUMBA_CACHE_DIR`, beside the source file, or below the user's
    home. If none can be written, every process compiles for itself. So it does for functions
    elsewhere, as in a notebook's cell: what they call may change unseen.
    """

    loop = numba.njit(function)
    if loop is function:  # NUMBA_DISABLE_JIT is set; compiled integers wrap around in silence
        return np.errstate(over="ignore")(function)
    if function.__code__.co_filename in SOURCES:
        with suppress(RuntimeError):  # numba: "no locator available"
            loop._cache = LoopCache(function)
    return loop


def hash_sources() -> dict[str, str]:
    """A hash for every module in a folder of this package where one uses `njit_cached`.

    Whole folders, since loops also take constants and plain functions from the modules beside them.
    """
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    texts = {file: file.read_bytes() for file in files if file.is_file()}  # else an editor's lock
    folders = {file.parent for file, text in texts.items() if b"njit_cached" in text}
    return {
        str(file): hashlib.sha256(text).hexdigest()
        for file, text in texts.items()
        if file.parent in folders
    }


SOURCES = hash_sources()
FOLDER = f"per_tutorial-{hashlib.sha256(''.join(SOURCES.values()).encode()).hexdigest()[:16]}"


class LoopCache(FunctionCache):
    """The machine code of one loop: a file for each signature, in a folder for these sources.

    A file begins with a checksum. What is absent or damaged is compiled anew; what can't be written
    is not kept. There is no index, which several processes could overwrite for each other.

    Raises:
        RuntimeError: there is no place for files.
    """

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        self._folder = Path(self._cache_path, FOLDER)
        self._name = self._impl.filename_base

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        try:
            checksum, code = self._file(sig, target_context.codegen()).read_bytes().split(b"\n", 1)
        except (OSError, ValueError):
            return None
        if hashlib.sha256(code).hexdigest().encode() != checksum:
            return None
        return self._impl.rebuild(target_context, pickle.loads(code))

    def save_overload(self, sig: Any, data: Any) -> None:
        if not self._impl.check_cachable(data):
            return
        code = dumps(self._impl.reduce(data))
        with suppress(OSError):
            if hash_sources() != SOURCES:
                return  # they were changed after they were imported
            if not self._folder.exists():
                self._folder.mkdir(parents=True, exist_ok=True)
                for old in self._folder.parent.glob("per_tutorial-*"):
                    if old != self._folder:
                        shutil.rmtree(old, ignore_errors=True)
            with atomic_write(self._file(sig, data.codegen)) as file:
                file.write(hashlib.sha256(code).hexdigest().encode() + b"\n" + code)

    def _file(self, sig: Any, codegen: Any) -> Path:
        key = repr((numba.__version__, self._index_key(sig, codegen)))
        return self._folder / f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.nbc"
