"""An exhibit as an examination sees it."""

from per_tutorial.conformance.adapter import OBSERVATION_SHAPE, Settings
from per_tutorial.conformance.adapters.ours import Proportional
from per_tutorial.experiments.known_bugs.bug import Bug
from per_tutorial.replay.replay import Replay


class BugAdapter(Proportional):
    """The adapter of our proportional buffer, with the bug of an exhibit.

    Args:
        exhibit: one whose bug is `in_buffer`.
    """

    def __init__(self, exhibit: Bug) -> None:
        if not exhibit.in_buffer:
            raise ValueError(f"exhibit: must be one whose bug is in a buffer, got {exhibit.name!r}")
        self.exhibit = exhibit
        self.name = exhibit.name  # type: ignore[misc]  # of this one adapter

    def make(self, settings: Settings) -> Replay:  # type: ignore[override]
        """An empty buffer."""
        return self.exhibit.buffer(
            settings.capacity,
            OBSERVATION_SHAPE,
            alpha=settings.alpha,
            priority_epsilon=self.epsilon,
            seed=settings.seed,
            n_step=settings.n_step,
            discount=settings.discount,
        )
