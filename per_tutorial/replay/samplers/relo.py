"""ReLo: replay by reducible loss (Sujit, Nath, Braga and Kahou, NeurIPS 2023, arXiv 2208.10483)."""

import numpy as np

from per_tutorial.replay.contracts import Floats, Slots
from per_tutorial.replay.samplers.proportional import ProportionalSampler


class ReloSampler(ProportionalSampler):
    """P(i) ∝ (max(ReLo_i, 0) + ε)^α, where ReLo_i is the loss that can still be reduced.

    ReLo is the loss of the online network minus that of the target network. An agent computes it
    and passes it to `update` in place of TD errors. Noise raises both losses alike, but not their
    difference. All else is as in proportional replay.

    Args:
        capacity: slots per run.
        seeds: one int per run.
        alpha: how strongly priorities count, in [0, 1]; 0 is uniform replay.
        priority_epsilon: ε, in [1e-20, 1e20].
        normalize: as in `ProportionalSampler`.

    Example:
        >>> from per_tutorial import Replay
        >>> from per_tutorial.replay import ReloSampler, TransitionStorage
        >>> replay = Replay(TransitionStorage(9, (1,)), ReloSampler(9, seeds=[0], alpha=0.5))
        >>> for step in range(3):
        ...     replay.add([step], 1, 0.5, [step + 1], terminated=False)
        >>> replay.update_priorities([0, 1, 2], [9.0, 1.0, -4.0])  # the last got worse than before
        >>> replay.probabilities[:3].round(2).tolist()
        [0.75, 0.25, 0.0]
    """

    name = "relo"
    reducible = True  # `update` takes reducible losses in place of TD errors

    def update(self, slots: Slots, td_errors: Floats) -> None:
        """Set the priorities of replayed slots from their reducible losses, both (runs, batch)."""
        super().update(slots, np.maximum(td_errors, 0.0))
