"""The adapter that examines a buffer with a known bug."""

from per_tutorial.conformance.adapters.ours import Proportional
from per_tutorial.experiments.known_bugs.bug import Bug


class BugAdapter(Proportional):
    """The adapter of our proportional buffer, with a known bug.

    Args:
        bug: one that is `in_buffer`.
    """

    def __init__(self, bug: Bug) -> None:
        if not bug.in_buffer:
            raise ValueError(f"bug: must be one of a buffer, got {bug.name!r}")
        self.kind = bug.buffer
        self.name = bug.name  # type: ignore[misc]  # of this one adapter
