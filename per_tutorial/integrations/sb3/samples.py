"""Minibatches in the form that Stable-Baselines3 knows, with weights and indices."""

from typing import Any, Self

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples


class Drawn:
    """What prioritised replay adds to a minibatch of SB3, which stays the tuple that it is.

    Attributes:
        weights: (batch, 1) float32, importance-sampling weights: one for each entry of the loss,
            which is (batch, 1) in SB3.
        indices: (batch,) the numbers of the transitions, counted from 0 as they were added; for
            `PrioritizedReplayBuffer.update_priorities`.
    """

    weights: th.Tensor
    indices: NDArray[np.int64]

    def with_draw(self, weights: th.Tensor, indices: NDArray[np.int64]) -> Self:
        """The same minibatch, which now knows how it was drawn."""
        self.weights, self.indices = weights, indices
        return self

    def _replace(self, **changes: Any) -> Self:
        """As of any named tuple, which would forget the weights and the indices."""
        return super()._replace(**changes).with_draw(self.weights, self.indices)  # type: ignore[misc]


class PrioritizedSamples(Drawn, ReplayBufferSamples):
    """A minibatch, with (batch, ...) tensors."""


class PrioritizedDictSamples(Drawn, DictReplayBufferSamples):
    """A minibatch whose observations are dicts of tensors."""


Samples = PrioritizedSamples | PrioritizedDictSamples
