"""The command line in processes of their own, which die when they are told to.

On Linux they are forked from one that has imported PyTorch, as that takes longer than a training.
"""

import contextlib
import io
import multiprocessing
import os
import signal
import sys

import numpy as np

from per_tutorial import __main__
from per_tutorial.dqn import checkpoints

PROCESSES = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
if sys.platform == "linux":
    PROCESSES.set_forkserver_preload(["per_tutorial.dqn.training", "torch._dynamo"])


def run_command(words, moment=None):
    """Run the command line; what it writes to stderr makes the exit status 1.

    Args:
        words: of the command line.
        moment: where the process kills itself when it is there for the third time.
    """
    if moment == "half written":
        np.savez = _third_time(np.savez, _half)
    elif moment == "before it has its name":
        os.replace = _third_time(os.replace, _die)
    elif moment == "before older ones are removed":
        checkpoints._keep_only = _third_time(checkpoints._keep_only, _die)
    elif moment == "half copied":
        shutil = checkpoints.shutil
        shutil.copyfileobj = _third_time(shutil.copyfileobj, _half_a_copy)
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        __main__.main(words)
    sys.exit(errors.getvalue() or 0)


def _die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def _half(file, **arrays):
    file.write(b"PK" + bytes(5000))
    file.flush()
    _die()


def _half_a_copy(source, copy):
    copy.write(source.read(5000))
    copy.flush()
    _die()


def _third_time(function, instead):
    calls = []

    def counted(*arguments, **options):
        calls.append(1)
        return (function if len(calls) < 3 else instead)(*arguments, **options)

    return counted
