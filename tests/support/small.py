"""Settings and minibatches small enough to learn from in a test."""

import numpy as np

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.replay import Batch

# A training in a second, as the command line takes it and as a configuration
TINY = (
    "train --runs 2 --first-seed 4 --steps 150 --hidden 8 --batch-size 4 --learning-starts 20 "
    "--max-episode-steps 20 --sampler proportional"
).split()
TINY_CONFIG = DQNConfig(
    steps=150,
    hidden=(8,),
    batch_size=4,
    learning_starts=20,
    max_episode_steps=20,
    sampler="proportional",
)

# A learner of no environment in particular, and what it learns from
RUNS, BATCH, INPUTS, ACTIONS = 2, 6, 3, 4
LEARNER_CONFIG = DQNConfig(
    hidden=(8, 8),
    double=False,
    dueling=False,
    loss="huber",
    discount=0.9,
    learning_rate=0.01,
    max_grad_norm=None,
    target_update_every=7,
    tau=1.0,
)


def random_batch(numbers, runs=RUNS):
    """Rewards large enough for both branches of the Huber loss, a quarter of the ends terminal.

    Each transition is of one to three steps.
    """
    shape = (runs, BATCH)
    return Batch(
        observations=numbers.normal(size=(*shape, INPUTS)).astype(np.float32),
        actions=numbers.integers(ACTIONS, size=shape),
        rewards=numbers.normal(scale=2, size=shape).astype(np.float32),
        next_observations=numbers.normal(size=(*shape, INPUTS)).astype(np.float32),
        terminated=numbers.random(shape) < 0.25,
        weights=numbers.uniform(0.1, 1, size=shape).astype(np.float32),
        indices=np.zeros(shape, dtype=np.int64),
        discounts=(0.9 ** numbers.integers(1, 4, size=shape)).astype(np.float32),
    )
