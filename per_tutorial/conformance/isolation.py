"""Ask questions so that a buffer that crashes or never ends takes nothing else along.

The questions run in a child process that was forked from this one, one after another, and each answer
comes through a pipe. If one takes too long, or the process dies, the child is ended and a new one goes on
with the next question. Other ways were worse: a thread cannot be ended, and holds the interpreter's lock
if it hangs in compiled code; a signal (`SIGALRM`) is not delivered there, either, and only the main
thread gets it; a child that is started anew (spawn) cannot import a class from a notebook's cell.

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
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

from per_tutorial.conformance.adapter import Adapter
from per_tutorial.conformance.answers import (
    QUESTIONS,
    Answer,
    Fault,
    Finding,
    NotOffered,
    Untold,
    Verdict,
)
from per_tutorial.conformance.exam import Exam

Said = tuple[str, str]  # name of the verdict, what was measured

# Each question that runs out of time halves the limit of the next ones, down to these seconds: so an
# examination of a buffer that never answers ends as well.
SHORTEST, SHORTEST_AFTER_SILENCE = 0.5, 0.1


def ask(name: str, adapter: Adapter, seed: int) -> Finding:
    """The answer to one question, whatever the buffer does short of hanging or crashing."""
    try:
        return QUESTIONS[name].ask(Exam(adapter, name, seed))
    except Fault as fault:
        return Finding(Verdict.FAILS, str(fault))
    except Untold as reason:
        return Finding(Verdict.UNTOLD, str(reason))
    except NotOffered as reason:
        return Finding(Verdict.NOT_OFFERED, str(reason))
    except RecursionError:
        return Finding(Verdict.FAILS, "it calls itself without end (RecursionError)")
    except (Exception, SystemExit) as error:
        text = str(error).strip().partition("\n")[0]
        return Finding(
            Verdict.FAILS, f"it raises {type(error).__name__}: {text[:150]}".rstrip(": ")
        )


def answers(names: Sequence[str], adapter: Adapter, seed: int, isolate: bool) -> Iterator[Answer]:
    """The answers to these questions, in order."""
    if not isolate:
        said = ((name, ask(name, adapter, seed)) for name in names)
    elif hasattr(os, "fork"):
        said = _in_processes(names, adapter, seed)
    else:
        said = _in_threads(names, adapter, seed)
    for name, finding in said:
        yield Answer(QUESTIONS[name], *finding)


class _Patience:
    """How long to wait for the next answer."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.answered = seconds, False

    def ran_out(self) -> Finding:
        """Note that a question took too long, and say so."""
        finding = Finding(Verdict.FAILS, f"it did not end within {self.seconds:g} s")
        shortest = SHORTEST if self.answered else SHORTEST_AFTER_SILENCE
        self.seconds = max(shortest, self.seconds / 2)
        return finding


def _in_processes(
    names: Sequence[str], adapter: Adapter, seed: int
) -> Iterator[tuple[str, Finding]]:
    context = multiprocessing.get_context("fork")
    todo, patience = list(names), _Patience(adapter.time_limit)
    while todo:
        reader, writer = context.Pipe(duplex=False)
        child = context.Process(target=_answer_all, args=(todo, adapter, seed, writer), daemon=True)
        with warnings.catch_warnings():  # Python 3.12 warns of every fork beside threads
            warnings.simplefilter("ignore")
            child.start()
        writer.close()
        try:
            while todo:
                finding = _received(reader, patience)
                if finding is None:
                    child.join(1)
                    finding = Finding(Verdict.FAILS, f"the process died{_cause(child.exitcode)}")
                    yield todo.pop(0), finding
                    break
                yield todo.pop(0), finding
                if finding.measured.startswith("it did not end within"):
                    break
        finally:
            child.kill()
            child.join()
            reader.close()


def _received(reader: Connection, patience: _Patience) -> Finding | None:
    """The next answer; None if the child is gone."""
    if not reader.poll(patience.seconds):
        return patience.ran_out()
    try:
        verdict, measured = reader.recv()
    except EOFError:
        return None
    patience.answered = True
    return Finding(Verdict[verdict], measured)


def _answer_all(names: Sequence[str], adapter: Adapter, seed: int, writer: Connection) -> None:
    """The child's work."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the parent, which then ends this one
    with open(os.devnull, "w") as nowhere:  # what libraries print is no part of the report
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        sys.stdout = sys.stderr = nowhere
        warnings.simplefilter("ignore")
        for name in names:
            finding = ask(name, adapter, seed)
            writer.send((finding.verdict.name, finding.measured))


def _cause(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return ""
    return f" ({signal.Signals(-exit_code).name})"


def _in_threads(names: Sequence[str], adapter: Adapter, seed: int) -> Iterator[tuple[str, Finding]]:
    patience = _Patience(adapter.time_limit)
    for name in names:
        results: queue.Queue[Finding] = queue.Queue()
        work = threading.Thread(
            target=lambda name=name, results=results: results.put(ask(name, adapter, seed)),
            daemon=True,
        )
        work.start()
        try:
            finding = results.get(timeout=patience.seconds)
            patience.answered = True
        except queue.Empty:
            finding = patience.ran_out()
        yield name, finding
