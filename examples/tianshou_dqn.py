"""tianshou's DQN with prioritised replay on CartPole.

    pip install "per_tutorial[tianshou]"  # before a release: from the address in the README
    python tianshou_dqn.py --steps 20000 --seed 1

Two places differ from tianshou's DQN with uniform replay: the buffer, and the β that a function
sets before every update. tianshou itself multiplies the weights and writes the TD errors back.
Do not set its `huber_loss_delta`: tianshou 2.0.1 then ignores the weights.
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from per_tutorial.integrations.tianshou import PrioritizedVectorReplayBuffer

ENVIRONMENTS = 10

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--steps", type=int, default=20_000, help="environment steps (20000)")
parser.add_argument("--seed", type=int, default=1, help="of networks, environment and replay (1)")
arguments = parser.parse_args()
steps = max(arguments.steps, 10 * ENVIRONMENTS)

np.random.seed(arguments.seed)
torch.manual_seed(arguments.seed)
environments, trials = (
    DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(ENVIRONMENTS)]) for _ in range(2)
)
environments.seed(arguments.seed)
trials.seed(arguments.seed + 1_000)
world = gym.make("CartPole-v1")

policy = DiscreteQLearningPolicy(
    model=Net(state_shape=4, action_shape=2, hidden_sizes=(128, 128)),
    action_space=world.action_space,
    eps_training=0.1,
    eps_inference=0.0,
)
algorithm = DQN(
    policy=policy,
    optim=AdamOptimizerFactory(lr=1e-3),
    gamma=0.99,
    n_step_return_horizon=3,
    target_update_freq=320,
)
buffer = PrioritizedVectorReplayBuffer(
    20_000, ENVIRONMENTS, alpha=0.6, beta=0.4, seed=arguments.seed
)


def before_update(epoch: int, step: int) -> None:
    """β rises linearly from 0.4 to 1, as in the paper."""
    buffer.set_beta(min(1.0, 0.4 + 0.6 * step / steps))


training = Collector[CollectStats](algorithm, environments, buffer, exploration_noise=True)
testing = Collector[CollectStats](algorithm, trials, exploration_noise=False)
training.reset()
training.collect(n_step=max(ENVIRONMENTS, steps // 20), random=True)
result = algorithm.run_training(
    OffPolicyTrainerParams(
        training_collector=training,
        test_collector=testing,
        max_epochs=5,
        epoch_num_steps=steps // 5,
        collection_step_num_env_steps=ENVIRONMENTS,
        update_step_num_gradient_steps_per_sample=0.1,
        batch_size=64,
        test_step_num_episodes=10,
        training_fn=before_update,
        verbose=False,
        show_progress=False,
    )
)
print(f"Best episode return after {steps} steps: {result.best_reward:.0f}, in 10 episodes.")

# What is replayed most: a few transitions hold much of the probability.
shares = buffer.probabilities()
shares = sorted(shares[shares > 0], reverse=True)
tenth = sum(shares[: max(1, len(shares) // 10)])
print(f"Of {len(shares)} transitions, the top tenth holds {tenth:.0%} of the probability.")
