"""Run the checks on a buffer, and report; or make a test of each."""

import contextlib
import io
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import per_tutorial.conformance.further_checks  # noqa: F401  (registers its checks)
from per_tutorial.common.arguments import one_of
from per_tutorial.common.provenance import versions
from per_tutorial.conformance.adapter import Adapter, as_adapter
from per_tutorial.conformance.bench import Bench, Skipped
from per_tutorial.conformance.checks import BATCH, CAPACITY, CHECKS, Check

Verdict = Literal["passed", "failed", "skipped", "inconclusive"]


class CheckResult(NamedTuple):
    """The verdict of one check, and what was measured."""

    check: str
    verdict: Verdict
    measured: str


class Report(NamedTuple):
    """The results of an examination, in the order of the checks."""

    name: str
    versions: Mapping[str, str]
    seed: int
    results: Sequence[CheckResult]

    @property
    def failures(self) -> list[CheckResult]:
        """The failed checks of the algorithm; one that names a likely cause comes first."""
        return [one for one in self.failed if CHECKS[one.check].kind == "algorithm"]

    @property
    def failed(self) -> list[CheckResult]:
        """All failed checks, the likely cause first."""
        failed = [one for one in self.results if one.verdict == "failed"]
        return sorted(failed, key=lambda one: "likely: " not in one.measured)

    @property
    def passed(self) -> bool:
        """Whether no check of the algorithm failed."""
        return not self.failures

    def summary(self) -> str:
        """The number of results with each verdict, such as "12 passed, 1 failed"."""
        found = [one.verdict for one in self.results]
        return ", ".join(f"{found.count(v)} {v}" for v in get_args(Verdict) if v in found)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON can store it."""
        return {
            "name": self.name,
            "versions": dict(self.versions),
            "seed": self.seed,
            "results": {one.check: [one.verdict, one.measured] for one in self.results},
            "failures": [one.check for one in self.failures],
            "asked": {one.check: CHECKS[one.check].question for one in self.failed},
        }

    def __str__(self) -> str:
        """The likely cause, what else failed, and what was not decided."""
        numbers = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        found = {v: [one for one in self.results if one.verdict == v] for v in get_args(Verdict)}
        lines = shortened(f"{self.name} ({numbers}): {self.summary()} (seed {self.seed})", 2)
        for k, (name, _, measured) in enumerate(self.failed):
            check = CHECKS[name]
            marked = f"{'also failed' if k else 'FAILED'} {name}"
            marked += " (not the algorithm)" * (check.kind == "further")
            lines += shortened(f"{marked}: {measured}", 1 if k else None)
            lines += shortened(f"  Asked: {check.question}") if k == 0 else []
        for verdict in ("inconclusive", "skipped"):
            some = "; ".join(f"{one.check} ({one.measured})" for one in found[verdict])
            lines += shortened(f"{verdict}: {some}", 1) if some else []
        for name, _, measured in found["passed"]:
            lines += shortened(f"handling: {measured}", 1) if name == "handling" else []
        return "\n".join(lines)


def shortened(text: str, most: int | None = None) -> list[str]:
    """The lines of a text, or at most so many."""
    lines = textwrap.wrap(text, 99, subsequent_indent="  ")
    kept = lines[:most]
    return [*kept[:-1], kept[-1] + "…" * (len(kept) < len(lines))]


def examine(
    adapter: Any,
    seed: int = 0,
    *,
    checks: Iterable[str] | None = None,
    everything: bool = False,
    capacity: int = CAPACITY,
    batch_size: int = BATCH,
) -> Report:
    """Measure whether a replay buffer does what a correct one does.

    A correct buffer fails in fewer than one of 10,000 examinations. A verdict does not depend on
    which other checks are asked.

    Args:
        adapter: an `Adapter`, or a class with `make`, `add`, `sample` and `update`.
        seed: for all random choices of the examination.
        checks: names of `CHECKS`; None: those of the algorithm, or with ``everything`` all.
        everything: also n-step returns, files and robustness.
        capacity, batch_size: of most of the buffers.

    Raises:
        TypeError, ValueError: it is no adapter, there is no such check, or a size is too small.
        ImportError: the buffer's library is not installed.

    Example:
        >>> from per_tutorial.conformance import examine, find_adapter
        >>> examine(find_adapter("rank"), checks=["handling"]).summary()
        '1 passed'
    """
    adapter = as_adapter(adapter)
    names = names_of(everything) if checks is None else list(checks)
    for name in names:
        one_of("checks", name, CHECKS)
    benches = [Bench(adapter, name, capacity, batch_size, seed) for name in names]
    results = [ask(CHECKS[name], bench) for name, bench in zip(names, benches, strict=True)]
    return Report(adapter.name, versions("numpy", *adapter.packages), seed, results)


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

    ``expected_failed_checks`` returns for an adapter {name of a check: reason} of known failures,
    which are then marked as xfail.

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
            xfail = pytest.mark.xfail(reason=known.get(name, ""), raises=AssertionError)
            marks, label = [xfail] * (name in known), f"{adapter.name}-{name}"
            parameters.append(pytest.param(adapter, CHECKS[name], marks=marks, id=label))
    return pytest.mark.parametrize(("adapter", "check"), parameters)


def ask(check: Check, bench: Bench) -> CheckResult:
    """The result of one check; raises ImportError if the buffer's library is not installed."""
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            contextlib.redirect_stdout(io.StringIO()),  # whatever libraries print
        ):
            return CheckResult(check.name, "passed", check.function(bench))
    except Skipped as reason:
        return CheckResult(check.name, reason.verdict, str(reason))
    except AssertionError as fault:
        if isinstance(fault.__cause__, ImportError):
            raise fault.__cause__ from None
        return CheckResult(check.name, "failed", str(fault))
    except Exception as error:  # noqa: BLE001  (no mistake of a check may lose the others' results)
        said = f"the check itself failed: {type(error).__name__}: {error}"
        return CheckResult(check.name, "inconclusive", said)
