"""An examination for any prioritised replay buffer.

`examine` takes any class with make, add, sample and update, as `adapter.py` describes. `bugs.py`
plants known mistakes in `plain.py`, a buffer as plain as the paper. Adapters of other libraries are
in the repository, in `tools/examined/adapters/`.
"""

from per_tutorial.common.lazy import missing_extra

try:
    import scipy  # noqa: F401
except ImportError as error:
    raise missing_extra(error, __name__, "examine") from error

from per_tutorial.conformance.adapter import Adapter, BufferSettings, Minibatch
from per_tutorial.conformance.adapters import ADAPTERS, find_adapter
from per_tutorial.conformance.checks import CHECKS, Check
from per_tutorial.conformance.examination import (
    CheckResult,
    Report,
    examine,
    parametrize_with_checks,
)
from per_tutorial.replay.contracts import Transition

__all__ = [
    "ADAPTERS",
    "CHECKS",
    "Adapter",
    "BufferSettings",
    "Check",
    "CheckResult",
    "Minibatch",
    "Report",
    "Transition",
    "examine",
    "find_adapter",
    "parametrize_with_checks",
]
