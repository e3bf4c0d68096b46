"""Stable-Baselines3's SAC with prioritised replay on Pendulum.

    pip install "per_tutorial[sb3]"  # before a release: from the address in the README
    python sb3_sac.py --steps 5000 --seed 1

SAC has two critics; a transition's priority is the mean of their absolute TD errors.
"""

import argparse

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from per_tutorial.integrations.sb3 import PrioritizedSAC

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--steps", type=int, default=5_000, help="environment steps (5000)")
parser.add_argument("--seed", type=int, default=1, help="of networks, environment and replay (1)")
arguments = parser.parse_args()

model = PrioritizedSAC(
    "MlpPolicy",
    make_vec_env("Pendulum-v1", seed=arguments.seed),
    alpha=0.6,
    learning_rate=1e-3,
    buffer_size=100_000,
    policy_kwargs={"net_arch": [64, 64]},
    seed=arguments.seed,
)
model.learn(arguments.steps)

mean, deviation = evaluate_policy(model, make_vec_env("Pendulum-v1", seed=arguments.seed + 1))
print(f"Episode return after {arguments.steps} steps: {mean:.0f} ± {deviation:.0f} in 10 episodes.")
