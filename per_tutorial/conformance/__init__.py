"""An examination for any prioritised replay buffer.

    from per_tutorial.conformance import Adapter, Drawn, examine

    print(examine(MyAdapter))  # or any class with make, add, sample and update

`adapter.py` defines what the examination needs to know of a buffer, `checks.py` and
`further_checks.py` hold the checks, and `examination.py` runs them. `plain.py` is a buffer as plain
as the paper, and `bugs.py` plants every known mistake in it. `adapters/` has this package's
adapters; those of other libraries are in the repository, in `tools/examined/adapters/`.
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
