"""LAP: loss-adjusted prioritised replay (Fujimoto, Meger and Precup 2020, arXiv 2007.06049)."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from per_tutorial.replay.contracts import Floats, Ints, Slots
from per_tutorial.replay.samplers.proportional import ProportionalSampler, epsilon_number


class LapSampler(ProportionalSampler):
    """P(i) ∝ max(|δ_i|, κ)^α, and every weight is 1 (section 4.2 of Fujimoto et al. 2020).

    Meant for the Huber loss with the same κ. Errors below κ are then drawn as in uniform replay;
    errors beyond it have a gradient of constant size, which the priority scales. So there is no
    bias to correct. A new transition gets the largest priority so far, max(1, κ) at the start.

    Args:
        capacity: slots per run.
        seeds: one int per run.
        alpha: how strongly priorities count, in [0, 1]; 0 is uniform replay.
        kappa: κ, the smallest priority; in [1e-20, 1e20].

    Example:
        >>> from per_tutorial import Replay
        >>> from per_tutorial.replay import LapSampler, TransitionStorage
        >>> sampler = LapSampler(9, seeds=[0], alpha=0.5, kappa=4.0)
        >>> replay = Replay(TransitionStorage(9, (1,)), sampler)
        >>> for step in range(2):
        ...     replay.add([step], 1, 0.5, [step + 1], terminated=False)
        >>> replay.update_priorities([0, 1], [-9.0, 0.1])
        >>> replay.probabilities().round(2).tolist()  # √9 : √4
        [0.6, 0.4]
    """

    needs: ClassVar = {"loss": "huber"}

    def __init__(
        self, capacity: int, seeds: Sequence[int], *, alpha: float = 0.6, kappa: float = 1.0
    ) -> None:
        super().__init__(capacity, seeds, alpha=alpha)
        self.kappa = epsilon_number("kappa", kappa)
        self.largest_priority[:] = max(1.0, self.kappa)
        self.settings = {"sampler": "lap", "alpha": self.alpha, "kappa": self.kappa}

    def sample(self, batch_size: int, sizes: Ints, beta: float) -> tuple[Slots, NDArray, NDArray]:
        """Slots, P(i) and weights, (runs, batch) each; the weights are all 1 for any β."""
        return super().sample(batch_size, sizes, beta=0.0)

    def update(self, slots: Slots, td_errors: Floats) -> None:
        """Set the priorities of replayed slots from their TD errors, both (runs, batch)."""
        priorities = np.abs(td_errors)
        self._write(slots, np.maximum(priorities, self.kappa, out=priorities))
