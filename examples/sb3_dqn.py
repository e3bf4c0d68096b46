"""Stable-Baselines3's DQN with prioritised replay on CartPole.

    pip install "per_tutorial[sb3]"  # before a release: from the address in the README
    python sb3_dqn.py --steps 50000 --seed 1

Two lines differ from SB3's own DQN: the import, and α. β rises from 0.4 to 1 automatically.
"""

import argparse

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from per_tutorial.integrations.sb3 import PrioritizedDQN

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--steps", type=int, default=50_000, help="environment steps (50000)")
parser.add_argument("--seed", type=int, default=1, help="of networks, environment and replay (1)")
arguments = parser.parse_args()

model = PrioritizedDQN(
    "MlpPolicy",
    make_vec_env("CartPole-v1", seed=arguments.seed),
    alpha=0.6,
    learning_rate=2.3e-3,
    batch_size=64,
    buffer_size=100_000,
    learning_starts=1_000,
    target_update_interval=10,
    train_freq=256,
    gradient_steps=128,
    exploration_fraction=0.16,
    exploration_final_eps=0.04,
    policy_kwargs={"net_arch": [256, 256]},
    seed=arguments.seed,
)
model.learn(arguments.steps)

mean, deviation = evaluate_policy(model, make_vec_env("CartPole-v1", seed=arguments.seed + 1))
print(f"Episode return after {arguments.steps} steps: {mean:.0f} ± {deviation:.0f} in 10 episodes.")

# What is replayed most: a few transitions hold much of the probability.
shares = sorted(model.replay_buffer.probabilities(), reverse=True)
tenth = sum(shares[: max(1, len(shares) // 10)])
print(f"Of {len(shares)} transitions, the top tenth holds {tenth:.0%} of the probability.")
