"""Minibatches of Stable-Baselines3, with weights and indices."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples


class SampledBatch:
    """What prioritised replay adds to a minibatch of SB3, which remains the same named tuple.

    Attributes:
        weights: (batch, 1) float32, importance-sampling weights, of the shape of SB3's loss.
        indices: (batch,) ids of the transitions, counted from 0 as they were added; for
            `PrioritizedReplayBuffer.update_priorities`.
    """

    weights: th.Tensor
    indices: NDArray[np.int64]

    def with_draw(self, weights: th.Tensor, indices: NDArray[np.int64]) -> Self:
        """Set weights and indices; return the same minibatch."""
        self.weights, self.indices = weights, indices
        return self

    def _replace(self, **changes: Any) -> Self:
        """A copy with some fields changed; weights and indices are kept."""
        return super()._replace(**changes).with_draw(self.weights, self.indices)  # type: ignore[misc]


class PrioritizedSamples(SampledBatch, ReplayBufferSamples):
    """A minibatch, with (batch, ...) tensors."""


class PrioritizedDictSamples(SampledBatch, DictReplayBufferSamples):
    """A minibatch whose observations are dicts of tensors."""


Samples = PrioritizedSamples | PrioritizedDictSamples


def for_each(function: Callable[..., Any], arrays: Any) -> Any:
    """Apply a function to an array, or to each array in the dict of Dict observations."""
    if isinstance(arrays, dict):
        return {key: function(array) for key, array in arrays.items()}
    return function(arrays)
