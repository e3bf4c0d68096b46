"""Many cases in few child processes: what one does to its process is told of that case."""

import faulthandler
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

MIB = 2**20
PATIENCE = 30.0  # seconds: what takes longer by the clock hangs, however busy the machine is


def in_children(
    work: Callable[[int], Any], count: int, *, seconds: float, memory: int | None = None
) -> Iterator[tuple[int, Any, str | None]]:
    """Do ``work(0)`` … ``work(count - 1)`` in forked processes, one after the other.

    Args:
        work: returns what JSON can hold.
        seconds: that each may take.
        memory: bytes that a child may ask for beyond what this process has; None: as many as it
            likes.

    Yields (number, what came back, None), or (number, None, how the child ended) for a case that
    ended its process or that did not end; the next case then begins in a new child.
    """
    number = 0
    while number < count:
        reader, writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _be_the_child(work, range(number, count), writer, memory)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            for result in _results(pipe, seconds):
                yield number, result, None
                number += 1
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if number < count:
            yield number, None, _ending(status, seconds)
            number += 1


def _be_the_child(
    work: Callable[[int], Any], numbers: range, writer: int, memory: int | None
) -> None:
    """Do the work and end the process; each result is a line of the pipe."""
    try:
        if memory is not None:
            most = _address_space() + memory
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.disable()  # the parent tells how it ended
        for number in numbers:
            os.write(writer, json.dumps(work(number)).encode() + b"\n")
    finally:
        os._exit(99)  # not through what the parent has registered for its own end


def _results(pipe: Any, seconds: float) -> Iterator[Any]:
    """The lines of the pipe, until it ends or a line takes too long."""
    data, deadline = b"", time.monotonic() + seconds
    while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
        more = os.read(pipe.fileno(), 2**16)
        if not more:
            return
        *lines, data = (data + more).split(b"\n")
        yield from map(json.loads, lines)
        if lines:
            deadline = time.monotonic() + seconds


def _ending(status: int, seconds: float) -> str:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        return f"the process died of {signal.Signals(os.WTERMSIG(status)).name}"
    if os.WIFEXITED(status):
        return f"the process ended with the status {os.WEXITSTATUS(status)}"
    return f"no end after {seconds:g} s, or killed"


def _address_space() -> int:
    """Bytes that this process has mapped."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
