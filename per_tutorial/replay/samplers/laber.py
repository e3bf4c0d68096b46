"""LaBER: large batch experience replay (Lahire, Geist and Rachelson, ICML 2022)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import one_of, whole_number
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Floats, Slots
from per_tutorial.replay.samplers.proportional import epsilon_number
from per_tutorial.replay.samplers.uniform import UniformSampler

LABER_WEIGHTS = ("mean", "lazy", "max")


@njit_cached
def choose_by_priority(priorities, chances, chosen):
    """Write into `chosen` (runs, batch) positions drawn in proportion to `priorities` (runs, n).

    Args:
        chances: (runs, batch) in [0, 1), one for each draw.
    """
    for run in range(chosen.shape[0]):
        sums = np.cumsum(priorities[run])
        last = np.nextafter(sums[-1], 0.0)  # rounding could reach the total, beyond the last entry
        for k in range(chosen.shape[1]):
            prefix = min(chances[run, k] * sums[-1], last)
            chosen[run, k] = np.searchsorted(sums, prefix, side="right")


class LaberSampler(UniformSampler):
    """Draws m · batch candidates uniformly, and from these a minibatch by P(i) ∝ p_i = |δ_i| + ε.

    δ is that of the current network, and |δ| a proxy for the size of the gradient. With the Huber
    loss that size is min(|δ|, κ): then clip δ to κ before it is passed on, as the authors' code
    does with κ = 1. ε keeps weights finite.

    The weights ignore β. "mean": mean(p) / p_i, whose average gradient is that of uniform draws;
    "lazy": 1 / p_i; "max": 1 / p_i divided by the largest of the minibatch (Lahire et al., 5).

    Args:
        capacity: slots per run.
        seeds: one int per run.
        candidates: m, the number of candidates per transition of the minibatch.
        priority_epsilon: ε, in [1e-20, 1e20].
        laber_weights: "mean", "lazy" or "max".

    Example:
        >>> import numpy as np
        >>> from per_tutorial.replay import LaberSampler
        >>> sampler = LaberSampler(capacity=100, seeds=[0], candidates=2)
        >>> slots, _ = sampler.sample(2 * 2, sizes=np.array([50]), beta=0.4)
        >>> chosen, weights = sampler.choose(np.array([[0.0, 3.0, 0.0, 0.0]]), 2, beta=0.4)
        >>> chosen.tolist(), weights.round(3).tolist()  # mean(p) = 3/4
        ([[1, 1]], [[0.25, 0.25]])
    """

    def __init__(
        self,
        capacity: int,
        seeds: Sequence[int],
        *,
        candidates: int = 4,
        priority_epsilon: float = 1e-6,
        laber_weights: str = "mean",
    ) -> None:
        super().__init__(capacity, seeds)
        self.candidates = whole_number("candidates", candidates)
        self.priority_epsilon = epsilon_number("priority_epsilon", priority_epsilon)
        self.laber_weights = one_of("laber_weights", laber_weights, LABER_WEIGHTS)
        self.settings = {
            "sampler": "laber",
            "candidates": self.candidates,
            "priority_epsilon": self.priority_epsilon,
            "laber_weights": self.laber_weights,
        }
        self._chances = np.empty((self.runs, 0))  # for `choose`

    def sample(
        self, batch_size: int, sizes: NDArray[np.int64], beta: float
    ) -> tuple[Slots, NDArray]:
        """Candidates and weights of 1, both (runs, batch).

        The random numbers of `choose` are drawn here as well, so the streams advance by the same
        amount even if computing the TD errors in between fails.
        """
        uniform = self.streams.uniform(batch_size + batch_size // self.candidates)
        self._chances = uniform[:, batch_size:]
        drawn = uniform[:, :batch_size]
        return (drawn * sizes[:, None]).astype(np.int64), np.ones(drawn.shape)

    def choose(self, td_errors: Floats, batch_size: int, beta: float) -> tuple[Slots, NDArray]:
        """Positions in the draw, and weights, both (runs, batch).

        Raises:
            ValueError: ``td_errors`` are not those of the last draw.
        """
        expected = (self.runs, self.candidates * batch_size)
        if td_errors.shape != expected or self._chances.shape[1] != batch_size:
            raise ValueError(
                f"td_errors: must be those of the last draw, of the shape {expected}, "
                f"got {td_errors.shape}"
            )
        priorities = np.abs(td_errors) + self.priority_epsilon
        chosen = np.empty((self.runs, batch_size), dtype=np.int64)
        choose_by_priority(priorities, self._chances, chosen)
        weights = 1 / np.take_along_axis(priorities, chosen, axis=1)
        if self.laber_weights == "mean":
            weights *= priorities.mean(axis=1, keepdims=True)
        elif self.laber_weights == "max":
            weights /= weights.max(axis=1, keepdims=True)
        return chosen, weights
