"""Run the checks on a buffer, and report; or make a test of each.

The checks run one after another in a forked child process. If one takes too long or the child
dies, that check is inconclusive, and a new child goes on with the next. The system itself enforces
the limit on processor time (`SIGPROF` without a handler), also in compiled code that hangs. Where
there is no fork, checks run in this process, without limits.
"""

import multiprocessing
import os
import signal
import sys
import textwrap
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import per_tutorial.conformance.further_checks  # noqa: F401  (registers its checks)
from per_tutorial.common.arguments import one_of, whole_number
from per_tutorial.common.provenance import versions
from per_tutorial.conformance.adapter import Adapter, as_adapter
from per_tutorial.conformance.bench import Inconclusive, Raised, Skipped
from per_tutorial.conformance.checks import BATCH, CAPACITY, CHECKS, Check

Verdict = Literal["passed", "failed", "skipped", "inconclusive"]
FIRST = 3  # the first check has this many times the limit: a buffer may compile itself
WIDTH, SHOWN = 100, 6  # columns of a report, and failures shown in full


class Result(NamedTuple):
    """The verdict of one check, and what was measured.

    Example:
        >>> from per_tutorial.conformance import examine, find_adapter
        >>> report = examine(find_adapter("uniform"), checks=["sign"], isolate=False)
        >>> report.results[0]
        Result(check='sign', verdict='skipped', measured='its draws are uniform')
    """

    check: str
    verdict: Verdict
    measured: str


class Report(NamedTuple):
    """The results of an examination.

    Attributes:
        name: of the examined buffer.
        versions: of Python and the packages that matter.
        seed: of the examination.
        results: in the order of the checks.
        seconds: duration of the examination.

    Example:
        >>> from per_tutorial.conformance import examine, find_adapter
        >>> report = examine(find_adapter("proportional"), checks=["handling"], isolate=False)
        >>> report.passed, report["handling"].verdict
        (True, 'passed')
    """

    name: str
    versions: Mapping[str, str]
    seed: int
    results: Sequence[Result]
    seconds: float

    @property
    def failures(self) -> list[Result]:
        """The failed checks of the algorithm."""
        return [one for one in self._failed() if CHECKS[one.check].kind == "algorithm"]

    @property
    def passed(self) -> bool:
        """Whether no check of the algorithm failed."""
        return not self.failures

    def _failed(self) -> list[Result]:
        return [one for one in self.results if one.verdict == "failed"]

    def __getitem__(self, key: Any) -> Any:
        """The result of a check by its name, or a field by its position."""
        if isinstance(key, str):
            return {one.check: one for one in self.results}[key]
        return tuple.__getitem__(self, key)

    def summary(self) -> str:
        """The number of results with each verdict, such as "12 passed, 1 failed"."""
        counts = Counter(one.verdict for one in self.results)
        order = ("passed", "failed", "skipped", "inconclusive")
        return ", ".join(f"{counts[one]} {one}" for one in order if counts[one])

    def as_dict(self) -> dict[str, Any]:
        """The report without its duration, as JSON can store it."""
        return {
            "name": self.name,
            "versions": dict(self.versions),
            "seed": self.seed,
            "results": {one.check: [one.verdict, one.measured] for one in self.results},
            "failures": [one.check for one in self.failures],
        }

    def __str__(self) -> str:
        """At most about fifteen lines, the likely cause first."""
        numbers = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        lines = [
            f"{self.name} ({numbers}): {self.summary()} (seed {self.seed}, {self.seconds:.1f} s)"
        ]
        failed = self._failed()
        if failed:
            first = failed[0]
            known = CHECKS[first.check]
            lines += _wrapped(f"FAILED {_marked(first)}: {first.measured}.")
            lines += _wrapped(f"  Asked: {known.asks} Paper: {known.paper}. {known.effect}")
        same: dict[str, list[str]] = {}
        for one in failed[1:]:
            same.setdefault(one.measured, []).append(_marked(one))
        if same:
            lines.append("Also failed; this may follow from the first or be another fault:")
        shown = list(same.items())
        lines += [_cut(f"  {', '.join(names)}: {said}") for said, names in shown[:SHOWN]]
        if rest := [name for _, names in shown[SHOWN:] for name in names]:
            lines.append(_cut(f"  and {', '.join(rest)}"))
        for verdict in ("inconclusive", "skipped"):
            some = [f"{r.check} ({r.measured})" for r in self.results if r.verdict == verdict]
            lines += [_cut(f"{verdict}: {'; '.join(some)}")] if some else []
        handled = [one.measured for one in self.results if one[:2] == ("handling", "passed")]
        return "\n".join([*lines, *(f"handling: {measured}" for measured in handled)])


def _marked(result: Result) -> str:
    return result.check + " (not the algorithm)" * (CHECKS[result.check].kind == "further")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", drop_whitespace=True)


def _cut(line: str) -> str:
    return line if len(line) <= 2 * WIDTH else f"{line[: 2 * WIDTH - 1]}…"


def examine(
    adapter: Any,
    seed: int = 0,
    *,
    checks: Iterable[str] | None = None,
    everything: bool = False,
    capacity: int = CAPACITY,
    batch_size: int = BATCH,
    isolate: bool = True,
    progress: Callable[[Result], None] | None = None,
) -> Report:
    """Measure whether a replay buffer does what a correct one does.

    A correct buffer fails in fewer than one of 10,000 examinations. A verdict does not depend on
    which other checks are asked. Ctrl-C ends the examination, and what was measured is reported.

    Args:
        adapter: how to use the buffer: an `Adapter`, or any class with `make`, `add`, `sample` and
            `update`. A class is called without arguments.
        seed: for all random choices of the examination.
        checks: names of `CHECKS`; None: those of the algorithm.
        everything: ask all checks, also those of n-step returns, files and robustness.
        capacity, batch_size: of the examined buffers; other sizes are used where a check needs
            them, and minibatches never have fewer than two transitions.
        isolate: ask in a process of its own, with `Adapter.time_limit` for each check.
        progress: called with each result as it comes.

    Raises:
        TypeError: the adapter lacks a method, or is an object that lacks an attribute of `Adapter`.
        ValueError: there is no such check, or a size is too small.
        ImportError: the buffer's library, or something that it needs, is not installed.

    Example:
        >>> from per_tutorial.conformance import examine, find_adapter
        >>> report = examine(find_adapter("proportional"), checks=["handling"], isolate=False)
        >>> report.summary()
        '1 passed'
    """
    adapter = as_adapter(adapter)
    capacity = whole_number("capacity", capacity, minimum=16)
    options = {
        "seed": whole_number("seed", seed, minimum=0),
        "capacity": capacity,
        "batch_size": whole_number("batch_size", batch_size, minimum=2, maximum=capacity),
    }
    names = names_of(everything) if checks is None else list(checks)
    for name in names:
        one_of("checks", name, CHECKS)
    began, results = time.perf_counter(), list[Result]()
    ask_all = _isolated if isolate and hasattr(os, "fork") else _here
    try:
        for result in ask_all(names, adapter, options):
            results.append(result)
            if progress is not None:
                progress(result)
    except KeyboardInterrupt:
        results += [Result(name, "inconclusive", "interrupted") for name in names[len(results) :]]
    named = adapter.name or type(adapter).__name__
    seconds = time.perf_counter() - began
    return Report(named, versions("numpy", *adapter.packages), seed, tuple(results), seconds)


def names_of(everything: bool) -> list[str]:
    """The names of the checks of the algorithm, or of all."""
    return [name for name, one in CHECKS.items() if everything or one.kind == "algorithm"]


def parametrize_with_checks(
    adapters: Iterable[Any],
    *,
    everything: bool = False,
    expected_failed_checks: Callable[[Adapter], Mapping[str, str]] | None = None,
) -> Any:
    """A pytest decorator that makes a test of each adapter and check, as scikit-learn's does.

    Args:
        adapters: anything that `examine` takes.
        everything: all checks, not only those of the algorithm.
        expected_failed_checks: function of an adapter that returns {name of a check: reason} for
            known failures, which are then marked as xfail.

    Example:
        >>> from per_tutorial.conformance import find_adapter, parametrize_with_checks
        >>> @parametrize_with_checks([find_adapter("uniform")])
        ... def test_my_buffers(adapter, check):
        ...     check(adapter)
    """
    import pytest

    parameters = []
    for adapter in map(as_adapter, adapters):
        known = expected_failed_checks(adapter) if expected_failed_checks else {}
        for name in known:
            one_of("expected_failed_checks", name, CHECKS)
        for name in names_of(everything):
            expected = pytest.mark.xfail(reason=known.get(name, ""), raises=AssertionError)
            named = f"{adapter.name or type(adapter).__name__}-{name}"
            marks = [expected] if name in known else []
            parameters.append(pytest.param(adapter, CHECKS[name], marks=marks, id=named))
    return pytest.mark.parametrize(("adapter", "check"), parameters)


def ask(check: Check, adapter: Adapter, options: Mapping[str, int]) -> Result:
    """The result of one check; raises ImportError if the buffer's library is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Result(check.name, "passed", check(adapter, **options))
    except Skipped as reason:
        return Result(check.name, "skipped", str(reason))
    except Inconclusive as reason:
        return Result(check.name, "inconclusive", str(reason))
    except AssertionError as fault:
        if isinstance(fault, Raised) and isinstance(fault.__cause__, ImportError):
            raise fault.__cause__ from None
        return Result(check.name, "failed", str(fault))
    except Exception as error:  # noqa: BLE001  (no mistake of a check may lose the others' results)
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = (
            f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})"
        )
        return Result(check.name, "inconclusive", f"the check itself failed: {said}")


def _here(names: Sequence[str], adapter: Adapter, options: Mapping[str, int]) -> Iterator[Result]:
    for name in names:
        yield ask(CHECKS[name], adapter, options)


def _isolated(
    names: Sequence[str], adapter: Adapter, options: Mapping[str, int]
) -> Iterator[Result]:
    context = multiprocessing.get_context("fork")
    todo, limit = list(names), adapter.time_limit
    while todo:
        reader, writer = context.Pipe(duplex=False)
        child = context.Process(target=_ask_all, args=(todo, adapter, options, writer), daemon=True)
        with warnings.catch_warnings():  # Python 3.12 warns of every fork beside threads
            warnings.simplefilter("ignore")
            child.start()
        writer.close()
        try:
            while todo and reader.poll(10 * FIRST * limit):  # of wall-clock time, if it sleeps
                said = reader.recv()
                if isinstance(said, ImportError):
                    raise said
                yield said
                todo.pop(0)
            reason = "it did not answer"
        except EOFError:
            child.join()
            code = child.exitcode or 0
            died = f"its process died ({signal.Signals(-code).name if code < 0 else code})"
            timed_out = code == -signal.SIGPROF
            reason = f"it took more than {limit:g} s of processor time" if timed_out else died
        finally:
            child.kill()
            child.join()
            reader.close()
        if todo:
            yield Result(todo.pop(0), "inconclusive", reason)


def _ask_all(
    names: Sequence[str], adapter: Adapter, options: Mapping[str, int], writer: Any
) -> None:
    """Run in the child: send each result to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and kills this one
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # hides what libraries print
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        sys.stdout = sys.stderr = nowhere
        for k, name in enumerate(names):
            signal.setitimer(signal.ITIMER_PROF, adapter.time_limit * (1 if k else FIRST))
            try:
                writer.send(ask(CHECKS[name], adapter, options))
            except ImportError as error:
                writer.send(error)
