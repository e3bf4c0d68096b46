"""An examination for any prioritised replay buffer.

`examine` takes any class with make, add, sample and update, as `adapter.py` describes. `bugs.py`
plants known mistakes in `plain.py`, a buffer as plain as the paper. Adapters of other libraries are
in the repository, in `tools/examined/adapters/`.
"""

from per_tutorial.conformance.adapter import Adapter, Drawn, Settings
from per_tutorial.conformance.adapters import ADAPTERS, find_adapter
from per_tutorial.conformance.checks import CHECKS, Check
from per_tutorial.conformance.examination import (
    Report,
    Result,
    examine,
    parametrize_with_checks,
)
from per_tutorial.replay.contracts import Transition

__all__ = [
    "ADAPTERS",
    "CHECKS",
    "Adapter",
    "Check",
    "Drawn",
    "Report",
    "Result",
    "Settings",
    "Transition",
    "examine",
    "find_adapter",
    "parametrize_with_checks",
]
