"""Importance-sampling weights that correct nothing, too much, or the wrong way."""

import numpy as np
from numpy.typing import NDArray

from per_tutorial.experiments.known_bugs.bug import Bug
from per_tutorial.replay.contracts import Floats, Slots
from per_tutorial.replay.samplers.proportional import ProportionalSampler, divide_by_largest

POWER = "weights = relative**-beta"
NORMALISED = "weights[run, k] /= largest"
BY_MINIMUM = "weights /= ((sizes * self.minima.min / self.sums.total) ** -beta)[:, None]"


class NoWeights(ProportionalSampler):
    """w = 1."""

    def _weights(self, relative: Floats, sizes: NDArray[np.int64], beta: float) -> Floats:
        return np.ones_like(relative)


class InvertedWeights(ProportionalSampler):
    """w = (N · P)^+β."""

    def _weights(self, relative: Floats, sizes: NDArray[np.int64], beta: float) -> Floats:
        weights = relative**beta
        divide_by_largest(weights)
        return weights


class WeightsThatSumToOne(ProportionalSampler):
    """w divided by its sum over the minibatch."""

    def _weights(self, relative: Floats, sizes: NDArray[np.int64], beta: float) -> Floats:
        weights = relative**-beta
        weights /= weights.sum(axis=1, keepdims=True)
        return weights


class ZeroMinimum(ProportionalSampler):
    """The smallest priority is taken over empty leaves too: 0 until the buffer is full."""

    def _weights(self, relative: Floats, sizes: NDArray[np.int64], beta: float) -> Floats:
        every = np.tile(np.arange(self.capacity), (self.runs, 1))
        smallest = self.sums.get(every).min(axis=1)
        with np.errstate(divide="ignore"):
            return relative**-beta / ((sizes * smallest / self.sums.total) ** -beta)[:, None]


class BetaClimbsWithDraws(ProportionalSampler):
    """β grows by 0.001 with each minibatch, whatever the schedule says."""

    draws = 0

    def sample(
        self, batch_size: int, sizes: NDArray[np.int64], beta: float
    ) -> tuple[Slots, NDArray]:
        beta = min(1.0, beta + 0.001 * self.draws)
        self.draws += 1
        return super().sample(batch_size, sizes, beta)


KNOWN_BUGS = (
    Bug(
        name="no-weights",
        mistake="The weights are left out, so that nothing corrects what replaying by priority "
        "distorts.",
        wrong="return np.ones_like(relative)",
        right=POWER,
        found_by="weights-exponent",
        sampler=NoWeights,
    ),
    Bug(
        name="inverted-weights",
        mistake="The sign of β is missing: what is replayed often counts more, not less.",
        wrong="weights = relative**beta",
        right=POWER,
        found_by="weights-exponent",
        sampler=InvertedWeights,
    ),
    Bug(
        name="weights-that-sum-to-one",
        mistake="Weights are divided by their sum and then averaged: the step shrinks by the batch "
        "size.",
        wrong="weights /= weights.sum(axis=1, keepdims=True)",
        right=NORMALISED,
        found_by="weights-scale",
        sampler=WeightsThatSumToOne,
    ),
    Bug(
        name="zero-minimum",
        mistake="The minimum counts empty slots as 0, so every weight is 0 until the buffer is "
        "full.",
        wrong="smallest = self.sums.get(every).min(axis=1)",
        right=BY_MINIMUM,
        seen=("MorvanZhou/Reinforcement-learning-with-tensorflow#183",),
        lived="reported in 2020, never closed",
        found_by="weights-part-full",
        sampler=ZeroMinimum,
        buffer_settings={"normalize": "buffer"},
    ),
    Bug(
        name="buffer-minimum",
        mistake="Weights are divided by the largest of the whole buffer: one transition of tiny "
        "priority scales all others towards zero.",
        wrong=BY_MINIMUM,
        right=NORMALISED,
        seen=("pytorch/rl#2210", "chainer/chainerrl#570"),
        lived="until 2019 in ChainerRL",
        found_by="weights-collapse",
        buffer_settings={"normalize": "buffer"},
        choice=True,
    ),
    Bug(
        name="beta-climbs-with-draws",
        mistake="β grows by 0.001 with each minibatch, and is 1 after 600 of them.",
        wrong="beta = min(1.0, beta + 0.001 * self.draws)",
        right=POWER,
        seen=("MorvanZhou/Reinforcement-learning-with-tensorflow#183",),
        lived="in the code of that thread, 2020",
        found_by="weights-beta-zero",
        sampler=BetaClimbsWithDraws,
    ),
)
