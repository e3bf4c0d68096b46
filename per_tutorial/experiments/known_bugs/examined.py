"""A buffer with a known bug, as an examination sees it."""

from per_tutorial.conformance.adapter import OBSERVATION_SHAPE, Settings
from per_tutorial.conformance.adapters.ours import Proportional
from per_tutorial.experiments.known_bugs.bug import Bug
from per_tutorial.replay.replay import Replay


class BugAdapter(Proportional):
    """The adapter of our proportional buffer, with a known bug.

    Args:
        bug: one that is `in_buffer`.
    """

    def __init__(self, bug: Bug) -> None:
        if not bug.in_buffer:
            raise ValueError(f"bug: must be one of a buffer, got {bug.name!r}")
        self.bug = bug
        self.name = bug.name  # type: ignore[misc]  # of this one adapter

    def make(self, settings: Settings) -> Replay:  # type: ignore[override]
        """An empty buffer."""
        return self.bug.buffer(
            settings.capacity,
            OBSERVATION_SHAPE,
            alpha=settings.alpha,
            priority_epsilon=self.epsilon,
            seed=settings.seed,
            n_step=settings.n_step,
            discount=settings.discount,
        )
