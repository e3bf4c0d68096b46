"""LaBER: large batch experience replay (Lahire, Geist and Rachelson 2022, arXiv 2110.01528)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import whole_number
from per_tutorial.common.files import AnyArray
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.learner import DQNLearner, Update
from per_tutorial.replay.contracts import Batch, Slots, State
from per_tutorial.replay.random_streams import RandomStreams
from per_tutorial.replay.samplers.uniform import UniformSampler

EPSILON = 1e-6  # keeps weights finite


class LaberSampler(UniformSampler):
    """Draws m · batch transitions uniformly: the candidates of which `LaberLearner` keeps some.

    Args:
        capacity: slots per run.
        seeds: one int per run.
        candidates: m, the number of candidates per transition of the minibatch.

    Example:
        >>> from per_tutorial import Replay
        >>> from per_tutorial.after_per import LaberSampler
        >>> from per_tutorial.replay import TransitionStorage
        >>> replay = Replay(TransitionStorage(9, (1,)), LaberSampler(9, seeds=[0], candidates=4))
        >>> replay.add([0.0], 1, 0.5, [1.0], terminated=True)
        >>> replay.sample(1).rewards.shape
        (4,)
    """

    needs: ClassVar = {"learner": "LaberLearner"}

    def __init__(self, capacity: int, seeds: Sequence[int], *, candidates: int = 4) -> None:
        super().__init__(capacity, seeds)
        self.candidates = whole_number("candidates", candidates)
        self.settings = {"sampler": "laber", "candidates": self.candidates}

    def sample(
        self, batch_size: int, sizes: NDArray[np.int64], beta: float
    ) -> tuple[Slots, NDArray, NDArray]:
        """Slots, P(i) and weights of 1, (runs, m · batch) each."""
        return super().sample(self.candidates * batch_size, sizes, beta)


def choose(priorities: NDArray, chances: NDArray) -> tuple[Slots, NDArray]:
    """Which candidates are kept, and their weights, both (runs, batch).

    They are drawn in proportion to ``priorities`` p (runs, m · batch), with the numbers ``chances``
    (runs, batch) in [0, 1). The weights mean(p) / p make their average gradient that of uniform
    draws (section 5 of Lahire et al.).
    """
    sums = priorities.cumsum(axis=1)
    prefixes = chances * np.nextafter(sums[:, -1:], 0)
    kept = np.array([s.searchsorted(p, side="right") for s, p in zip(sums, prefixes)])  # noqa: B905
    weights = priorities.mean(axis=1, keepdims=True) / np.take_along_axis(priorities, kept, axis=1)
    return kept, weights


class LaberLearner(DQNLearner):
    """Learns from those candidates whose TD errors are large now: P(i) ∝ p_i = |δ_i| + ε.

    δ is that of the current network, and |δ| a proxy for the size of the gradient; with the Huber
    loss that is min(|δ|, κ), as in the authors' code. There are no priorities that could be out of
    date. `update` takes all candidates and returns all their δ.
    """

    needs: ClassVar = {"sampler": "laber"}

    def __init__(
        self,
        config: DQNConfig,
        observation_shape: Sequence[int],
        actions: int,
        seeds: int | Iterable[int],
    ) -> None:
        super().__init__(config, observation_shape, actions, seeds)
        self.streams = RandomStreams(self.seeds, "laber")

    def _update(self, batch: Batch) -> Update:
        """One gradient step of every run on ``batch_size`` of these candidates (runs, n)."""
        td_errors = self.td_errors(batch)
        size = np.abs(td_errors).astype(np.float64) + EPSILON
        if self.config.loss == "huber":
            size = np.minimum(size, self.config.kappa)
        kept, weights = choose(size, self.streams.uniform(self.config.batch_size))
        runs = np.arange(len(kept))[:, None]
        fields: Any = batch
        chosen = Batch(*(f if np.ndim(f) == 0 else np.asarray(f)[runs, kept] for f in fields))
        update = super()._update(chosen._replace(weights=weights))
        return update._replace(td_errors=td_errors)

    @property
    def state(self) -> State:
        """That of a `DQNLearner`, and the random streams of the choice."""
        return super().state | {"choices": self.streams.states}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from the `state` of a learner with the same settings."""
        super().restore(state)
        self.streams.states[:] = np.asarray(state["choices"])
