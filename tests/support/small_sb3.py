"""Settings of runs of Stable-Baselines3 that are small enough for a test."""

from per_tutorial.studies.sb3 import SB3Config

CONFIG = SB3Config(
    steps=120,
    max_episode_steps=12,
    hidden=(8,),
    learning_starts=30,
    options={"buffer_size": 100, "batch_size": 8, "train_freq": 2, "target_update_interval": 20},
)
