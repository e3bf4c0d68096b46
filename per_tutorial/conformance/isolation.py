"""Ask questions so that a buffer that crashes or never ends takes nothing else along.

The questions run in a child process that was forked from this one, one after another, and each
answer comes through a pipe. If one takes too long, or the process dies, the child is ended and a
new one goes on with the next question. Other ways were worse: a thread cannot be ended, and holds
the interpreter's lock if it hangs in compiled code; a handler for `SIGALRM` is not called there,
either, and only in the main thread; a child that is started anew (spawn) cannot import a class from
a notebook's cell.

What is limited is the child's processor time, so that a busy machine fails nobody. The system does
that: `SIGPROF` without a handler ends the process, whatever it is doing. A child that uses no time,
since it waits for something that never comes, is ended by the clock.

Where there is no fork (Windows), questions run in threads, and one that never ends is left running.
Libraries whose threads run already (JAX after its first computation) may not survive a fork. Then
`isolate=False` asks in this process, without time limits.
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

# Each question that runs out of time halves the limit of the next ones, down to these seconds: so
# an examination of a buffer that never answers ends as well.
SHORTEST, SHORTEST_AFTER_SILENCE = 0.5, 0.1
# The first question has this many times the limit: a buffer may compile itself at its first use.
FIRST = 3

# Verdicts that mean nothing where a question that this one depends on fails.
UNJUDGED = (Verdict.FAILS, Verdict.INCONCLUSIVE)
UNJUDGED_WITHOUT_BASIS = (*UNJUDGED, Verdict.HOLDS, Verdict.REPORTED)


def ask(name: str, adapter: Adapter, seed: int) -> Finding:
    """The answer to one question, whatever the buffer does short of hanging or crashing.

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

    A question that doesn't hold is "not judged" if one that it depends on has failed before: one
    cause, one failure. Where `BASIS` fails nothing else is judged, not even what seems to hold: a
    broken adapter refuses whatever it is asked.
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
    """How much processor time the next answer may take, and how much each one after it."""

    def __init__(self, seconds: float) -> None:
        self.next, self.later, self.answered = FIRST * seconds, seconds, False

    def has_answered(self) -> None:
        """Note that a question was answered in time."""
        self.next, self.answered = self.later, True

    def ran_out(self) -> Finding:
        """Note that a question took too long, and say so."""
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
            # Still alive, with questions left: it waits for something. Else it has died by itself.
            ended = -signal.SIGPROF if child.is_alive() else child.exitcode or 0
            child.kill()
            child.join()
            reader.close()
        if todo and ended == -signal.SIGPROF:
            yield todo.pop(0), patience.ran_out()
        elif todo:
            yield todo.pop(0), Finding(Verdict.FAILS, f"the process died{_cause(ended)}")


def _is_there(reader: Connection, pid: int | None, patience: _Patience) -> bool:
    """Wait for an answer or the child's end; False if the child waits for something itself."""
    seconds, before = max(patience.next, SHORTEST), None
    while not reader.poll(seconds):
        used = _processor_time(pid)
        # It did nothing since; where that cannot be known, it had twice the time.
        if used == before:
            return False
        before = used
    return True


def _processor_time(pid: int | None) -> str | None:
    """What a process has used so far, as Linux tells it; None elsewhere."""
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
    """The child's work."""
    # Ctrl-C is for the parent, which then ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with open(os.devnull, "w") as nowhere:  # what libraries print is no part of the report
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
