"""Settings of runs of Stable-Baselines3 that are small enough for a test."""

from per_tutorial.experiments.studies.sb3.settings import SB3Config

CONFIG = SB3Config(
    steps=120,
    max_episode_steps=12,
    hidden=(8,),
    learning_starts=30,
    options={"buffer_size": 100, "batch_size": 8, "train_freq": 2, "target_update_interval": 20},
)
CONTINUOUS = SB3Config(
    agent="TD3",
    env="Pendulum-v1",
    steps=60,
    max_episode_steps=20,
    hidden=(8,),
    learning_starts=30,
    action_noise=0.1,
    options={"buffer_size": 100, "batch_size": 8},
)
