"""The command line in processes of their own, which die when they are told to.

On Linux they are forked from one that has imported PyTorch, as that takes longer than a training.
"""

import contextlib
import io
import multiprocessing
import os
import signal
import sys

from per_tutorial import __main__

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
        os.fsync = _third_time(os.fsync, _die)
    elif moment == "before it has its name":
        # The second and third checkpoints also give the one before another name.
        os.replace = _third_time(os.replace, _die, count=5)
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        __main__.main(words)
    sys.exit(errors.getvalue() or 0)


def _die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def _third_time(function, instead, count=3):
    calls = []

    def counted(*arguments, **options):
        calls.append(1)
        return (function if len(calls) < count else instead)(*arguments, **options)

    return counted
