"""What planted bugs cost on CartPole where PER gains: `python tools/bugs_on_cartpole.py FOLDER`.

The settings and seeds are those of `cartpole-conditions`, 64 units, at most 500 steps, η/4, where
PER is 44.7 points ahead of uniform replay; `per` repeats those runs. Each bug of
`per_tutorial.conformance.bugs` is put into the package's buffer as one method, since the plain
buffer is for one run and slow.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from per_tutorial import DQNConfig, PrioritizedReplayBuffer, train
from per_tutorial.dqn.training import evaluate
from per_tutorial.studies import runner
from per_tutorial.studies.study import EVALUATION_EPISODES, QUARTER, Study

EPSILON = 1e-6
Healthy = PrioritizedReplayBuffer


class Errors(Healthy):
    """Something else than δ becomes the priority."""

    def update_priorities(self, indices, td_errors):
        super().update_priorities(indices, self.instead(np.asarray(td_errors, np.float64)))


class SignedPriority(Errors):
    def instead(self, td_errors):
        return np.maximum(td_errors, 0.0)


class SquaredPriority(Errors):
    def instead(self, td_errors):
        return td_errors**2


class AlphaTwice(Healthy):
    def __init__(self, *sizes, **options):
        super().__init__(*sizes, alpha=0.6**2, **options)


class Newcomers(Healthy):
    """A new transition gets a fixed priority."""

    def add(self, *fields, **options):
        self.sampler.largest_priority[:] = self.newcomer
        super().add(*fields, **options)


class NewcomersAtOne(Newcomers):
    newcomer = 1.0


class StarvedNewcomers(Newcomers):
    newcomer = EPSILON


class Weights(Healthy):
    """The weights of a minibatch become others."""

    def sample(self, batch_size, beta=0.4):
        batch = super().sample(batch_size, beta)
        return batch._replace(weights=self.instead(batch.weights))


class NoWeights(Weights):
    def instead(self, weights):
        return np.ones_like(weights)


class LossBroadcast(Weights):
    def instead(self, weights):
        return np.broadcast_to(weights.mean(axis=-1, keepdims=True), weights.shape)


class OffByOneTotal(Healthy):
    """The newest transition can't be drawn until the next one comes."""

    held = None

    def add(self, *fields, **options):
        if self.held is not None:
            super().add(*self.held[0], **self.held[1])
        self.held = [np.copy(field) for field in fields], options


KINDS = {
    "per": Healthy,
    "signed-priority": SignedPriority,
    "squared-priority": SquaredPriority,
    "alpha-twice": AlphaTwice,
    "newcomers-at-one": NewcomersAtOne,
    "starved-newcomers": StarvedNewcomers,
    "no-weights": NoWeights,
    "loss-broadcast": LossBroadcast,
    "off-by-one-total": OffByOneTotal,
}
BASE = DQNConfig(steps=10_000, hidden=(64, 64), max_episode_steps=500, sampler="proportional")
CONFIG = BASE.replace(learning_rate=BASE.learning_rate * QUARTER)
STUDY = Study(
    name="bugs-cartpole",
    question="What do bugs of PER cost on CartPole, at a learning rate at which PER gains?",
    arms=dict.fromkeys(KINDS, CONFIG),
    comparisons=tuple((bug, "per") for bug in KINDS if bug != "per"),
    metric="score over training",
    failed_below=475,
    seeds=range(300, 330),
)


def train_with_bug(study, arm, seeds, checkpoints):
    """In place of the runner's own: the memory is one with the bug."""
    replay = KINDS[arm](CONFIG.capacity, (4,), runs=len(seeds), seed=seeds)
    history = train(study.arms[arm], seeds, replay=replay)
    return history, evaluate(history.agent, EVALUATION_EPISODES).mean(axis=1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    runner._train = train_with_bug
    Path(sys.argv[1]).mkdir(exist_ok=True)
    print(runner.run_study(STUDY, sys.argv[1], progress=lambda *done: print(*done, flush=True)))
