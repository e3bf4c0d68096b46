"""Ask questions in isolation, so that a buffer that crashes or hangs takes nothing else down.

The questions run one after another in a forked child process, and each answer comes through a pipe.
If a question takes too long or the child dies, a new child continues with the next question. The
alternatives are worse: a thread cannot be killed, and holds the interpreter's lock if it hangs in
compiled code; a handler for `SIGALRM` is not called there either, and only in the main thread; a
spawned child cannot import a class from a notebook cell.

The limit is on the child's processor time, so that a busy machine fails nobody. The system enforces
it: `SIGPROF` without a handler kills the process, whatever it is doing. A child that uses no
processor time, because it waits for something that never comes, is killed by the clock. Where its
processor time cannot be read (macOS), so is any child after twice the limit of wall-clock time.

Without fork (Windows), questions run in threads with limits on wall-clock time, and one that never
ends is left running. Libraries with running threads (JAX after its first computation) may not
survive a fork: there, `isolate=False` asks in this process, without time limits.
"""

import multiprocessing
import os
import queue
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

from per_tutorial.conformance.adapter import Adapter
from per_tutorial.conformance.answers import (
    BASIS,
    QUESTIONS,
    Answer,
    BufferRaised,
    ExaminationError,
    Fault,
    Finding,
    Inconclusive,
    NotOffered,
    Verdict,
    cause_of,
)
from per_tutorial.conformance.context import TestContext
from per_tutorial.conformance.harness import described

# Each question that times out halves the limit for the next ones, down to these seconds. So the
# examination ends even if a buffer never answers.
SHORTEST, SHORTEST_AFTER_SILENCE = 0.5, 0.1
# The first question has this many times the limit: a buffer may compile itself on first use.
FIRST = 3

# Verdicts that mean nothing if a question that this one depends on fails.
UNJUDGED = (Verdict.FAILS, Verdict.INCONCLUSIVE)
UNJUDGED_WITHOUT_BASIS = (*UNJUDGED, Verdict.HOLDS, Verdict.REPORTED)


def ask(name: str, adapter: Adapter, seed: int) -> Finding:
    """The answer to one question, unless the buffer hangs or crashes.

    Raises:
        ExaminationError: an exception that did not come from the buffer.
        ImportError: the buffer's library, or something that it needs, is not installed.
    """
    try:
        return QUESTIONS[name].ask(TestContext(adapter, name, seed))
    except Fault as fault:
        return Finding(Verdict.FAILS, str(fault))
    except BufferRaised as raised:
        missing = raised.__cause__
        if isinstance(missing, ImportError):
            kind = ModuleNotFoundError if missing.name else ImportError
            raise kind(str(missing), name=missing.name) from raised
        endless = isinstance(raised.__cause__, RecursionError)
        return Finding(Verdict.FAILS, str(raised) if endless else f"it raises {raised}")
    except Inconclusive as reason:
        return Finding(Verdict.INCONCLUSIVE, str(reason))
    except NotOffered as reason:
        return Finding(Verdict.NOT_OFFERED, str(reason))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise ExaminationError(
            f"the examination itself failed in the question {name!r}, which says nothing about the "
            f"buffer: {described(error)} ({os.path.basename(place.filename)}, line {place.lineno})"
        ) from error


def answers(names: Sequence[str], adapter: Adapter, seed: int, isolate: bool) -> Iterator[Answer]:
    """The answers to these questions, in order.

    A question that doesn't hold is "not judged" if one that it depends on has failed: one cause
    counts as one failure. If `BASIS` fails, nothing else is judged, not even what seems to hold: a
    broken adapter also refuses what it should refuse.
    """
    said: Iterator[tuple[str, Finding]]
    if not isolate:
        said = ((name, ask(name, adapter, seed)) for name in names)
    elif hasattr(os, "fork"):
        said = _in_processes(names, adapter, seed)
    else:
        said = _in_threads(names, adapter, seed)
    verdicts: dict[str, Verdict] = {}
    for name, finding in said:
        cause = cause_of(name, verdicts)
        unjudged = UNJUDGED_WITHOUT_BASIS if cause == BASIS else UNJUDGED
        if cause and finding.verdict in unjudged:
            measured = f"because {cause} fails ({finding.measured})"
            finding = Finding(Verdict.NOT_JUDGED, measured)
        verdicts[name] = finding.verdict
        yield Answer(QUESTIONS[name], *finding)


class _Patience:
    """The time limits of the next question and of each one after it."""

    def __init__(self, seconds: float) -> None:
        self.next, self.later, self.answered = FIRST * seconds, seconds, False

    def has_answered(self) -> None:
        """Note that a question was answered in time."""
        self.next, self.answered = self.later, True

    def ran_out(self) -> Finding:
        """Note that a question took too long; return that finding."""
        finding = Finding(Verdict.FAILS, f"it did not end within {self.next:g} s")
        shortest = SHORTEST if self.answered else SHORTEST_AFTER_SILENCE
        self.next = self.later = max(shortest, self.later / 2)
        return finding


def _in_processes(
    names: Sequence[str], adapter: Adapter, seed: int
) -> Iterator[tuple[str, Finding]]:
    context = multiprocessing.get_context("fork")
    todo, patience = list(names), _Patience(adapter.time_limit)
    while todo:
        reader, writer = context.Pipe(duplex=False)
        work = (todo, adapter, seed, patience.next, patience.later, writer)
        child = context.Process(target=_answer_all, args=work, daemon=True)
        with warnings.catch_warnings():  # Python 3.12 warns of every fork beside threads
            warnings.simplefilter("ignore")
            child.start()
        writer.close()
        try:
            while todo and _is_there(reader, child.pid, patience):
                said = reader.recv()
                if isinstance(said, Exception):
                    raise said
                patience.has_answered()
                yield todo.pop(0), said
        except EOFError:
            child.join()
        finally:
            # Alive with questions left: it is idle. Otherwise it died by itself.
            ended = -signal.SIGPROF if child.is_alive() else child.exitcode or 0
            child.kill()
            child.join()
            reader.close()
        if todo and ended == -signal.SIGPROF:
            yield todo.pop(0), patience.ran_out()
        elif todo:
            yield todo.pop(0), Finding(Verdict.FAILS, f"the process died{_cause(ended)}")


def _is_there(reader: Connection, pid: int | None, patience: _Patience) -> bool:
    """Wait for an answer or the child's end; False if the child is idle.

    If its processor time is unknown, the child is taken for idle after twice the limit.
    """
    seconds = max(patience.next, SHORTEST)
    before: str | None = ""  # neither a time nor None (unknown), so that there is a second wait
    while not reader.poll(seconds):
        used = _processor_time(pid)
        if used == before:
            return False
        before = used
    return True


def _processor_time(pid: int | None) -> str | None:
    """The processor time used so far, as text from Linux; None elsewhere."""
    try:
        with open(f"/proc/{pid}/stat") as status:
            return " ".join(status.read().rpartition(")")[2].split()[11:13])
    except OSError:
        return None


def _answer_all(
    names: Sequence[str],
    adapter: Adapter,
    seed: int,
    limit: float,
    later_limit: float,
    writer: Connection,
) -> None:
    """Run in the child: answer the questions, and send each answer to the parent."""
    # The parent handles Ctrl-C, and then kills this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with open(os.devnull, "w") as nowhere:  # hides what libraries print
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        sys.stdout = sys.stderr = nowhere
        warnings.simplefilter("ignore")
        for name in names:
            signal.setitimer(signal.ITIMER_PROF, limit)
            writer.send(_finding_or_error(name, adapter, seed))
            limit = later_limit


def _finding_or_error(name: str, adapter: Adapter, seed: int) -> Finding | Exception:
    try:
        return ask(name, adapter, seed)
    except (ExaminationError, ImportError) as error:
        return error


def _cause(exit_code: int) -> str:
    return f" ({signal.Signals(-exit_code).name})" if exit_code < 0 else f" (exit code {exit_code})"


def _in_threads(names: Sequence[str], adapter: Adapter, seed: int) -> Iterator[tuple[str, Finding]]:
    patience = _Patience(adapter.time_limit)
    for name in names:
        results: queue.Queue[Finding | Exception] = queue.Queue()
        work = threading.Thread(
            target=lambda name=name, results=results: results.put(
                _finding_or_error(name, adapter, seed)
            ),
            daemon=True,
        )
        work.start()
        try:
            said = results.get(timeout=patience.next)
        except queue.Empty:
            yield name, patience.ran_out()
            continue
        if isinstance(said, Exception):
            raise said
        patience.has_answered()
        yield name, said
