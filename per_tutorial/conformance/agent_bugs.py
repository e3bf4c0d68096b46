"""Bugs of the agent, which no examination of a buffer finds, each as a learner with one mistake.

`per_tutorial.train(config, seeds, learner=LossBroadcast)` trains with it. An examination finds such
a mistake only if the adapter's `update` does what the agent does.
"""

from typing import ClassVar

import numpy as np

from per_tutorial.dqn.learner import DQNLearner, Update
from per_tutorial.replay.contracts import Batch


class LossBroadcast(DQNLearner):
    """Weights (B, 1) times losses (B,) make a table (B, B), and nothing is corrected.

    The table's mean is mean(w) · mean(L): as if each transition had the mean of the weights.
    """

    seen: ClassVar = (
        "Curt-Park/rainbow-is-all-you-need#79",
        "Howuhh/prioritized_experience_replay",
    )
    found_by: ClassVar = "the gradient of a minibatch of two against w · δ, worked out by hand"

    def update(self, batch: Batch, step_size: float | None = None) -> Update:
        mean = np.asarray(batch.weights).mean(axis=-1, keepdims=True)
        return super().update(batch._replace(weights=mean + 0 * batch.weights), step_size)


class WeightedSquaredPriority(DQNLearner):
    """w · δ² is written back in place of δ: the priority has the exponent 2α, and weights in it."""

    seen: ClassVar = ("higgsfield/RL-Adventure#13", "Shmuma/ptan#36", "Kaixhin/Rainbow#24")
    found_by: ClassVar = "exponent, if the adapter's `update` does the same"

    def update(self, batch: Batch, step_size: float | None = None) -> Update:
        update = super().update(batch, step_size)
        weighted = np.asarray(batch.weights) * update.td_errors.astype(np.float64) ** 2
        return update._replace(td_errors=weighted)


AGENT_BUGS: dict[str, type[DQNLearner]] = {
    "loss-broadcast": LossBroadcast,
    "weighted-squared-priority": WeightedSquaredPriority,
}
