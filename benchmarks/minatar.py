"""MinAtar: frames per second of a stack of ten runs, beside one run of Stable-Baselines3's DQN.

    make bench ARGS=minatar

Both do the same work for a frame of a run: a step of MinAtar's breakout, and an update of the
network of Young & Tian (16 filters of 3×3 cells, 128 units) on a minibatch of 32 at every frame.
The settings are those of the study `minatar-breakout`, but for that: its arms make an update every
fourth frame. Ours compute in bfloat16 there, Stable-Baselines3 has no such setting. They take
turns, round after round.

Times are of the processor, so that other programs disturb them less. They still do so through
memory and caches, of which ten networks need more than one. One thread each.

Where a step's time goes is measured as in `benchmarks/training.py`, with the study's own settings.

Writes docs/minatar_speed.md and, with all numbers, docs/minatar_speed.json.
"""

import statistics
import time
from functools import partial
from unittest.mock import patch

import torch

from benchmarks.harness import alternate, machine, ratio, table_of_parts, timed, write_report
from benchmarks.training import profile
from per_tutorial import train
from per_tutorial.dqn import history
from per_tutorial.studies.declared import STUDIES

PACKAGES = ("torch", "numpy", "numba", "gymnasium", "minatar", "stable-baselines3")
RUNS = 10
SB3 = "Stable-Baselines3 DQN, 1 run"
STUDY = STUDIES["minatar-breakout"]
GAMES = {"breakout": "MinAtar/Breakout-v1", "space invaders": "MinAtar/SpaceInvaders-v1"}
LEARNING_STARTS = 100
CAPACITY = 20_000  # whole steps are measured, and filling more would take longer than they do


def settings(sampler, **changes):
    """The study's, with ε as at its end."""
    return STUDY.arms[sampler].replace(
        learning_starts=LEARNING_STARTS, capacity=CAPACITY, epsilon_start=0.1, **changes
    )


def ours(config, runs=RUNS):
    def train_steps(steps):
        # As often as in a training of 200,000 steps: a short one would measure itself all the time.
        with patch.object(history, "LOG_POINTS", 1):
            train(config.replace(steps=steps), range(runs))

    return train_steps


def sb3_agent(config):
    """Stable-Baselines3's DQN with our network and settings."""
    import gymnasium
    from minatar.gym import register_envs
    from stable_baselines3 import DQN
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import nn

    class Features(BaseFeaturesExtractor):
        def __init__(self, space):
            super().__init__(space, features_dim=config.hidden[0])
            self.layers = nn.Sequential(
                nn.Conv2d(space.shape[2], 16, 3),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(16 * 8 * 8, config.hidden[0]),
                nn.ReLU(),
            )

        def forward(self, observations):
            return self.layers(observations.permute(0, 3, 1, 2))

    register_envs()

    return DQN(
        "MlpPolicy",
        gymnasium.make(config.env),
        policy_kwargs={"features_extractor_class": Features, "net_arch": []},
        batch_size=config.batch_size,
        learning_starts=config.learning_starts,
        train_freq=config.update_every,
        gradient_steps=1,
        target_update_interval=config.target_update_every,
        buffer_size=config.capacity,
        learning_rate=config.learning_rate,
        gamma=config.discount,
        exploration_initial_eps=config.epsilon_end,
        exploration_final_eps=config.epsilon_end,
        device="cpu",
        seed=0,
    )


def measure(steps, rounds):
    """{contestant: processor seconds of a step, a frame of each of its runs, in each round}."""
    turns = {
        SB3: lambda steps: sb3_agent(settings("uniform", update_every=1)).learn(steps),
        f"{RUNS} runs, uniform": ours(settings("uniform", update_every=1)),
        f"{RUNS} runs, PER": ours(settings("per", update_every=1)),
    }
    clock = time.process_time
    contestants = {name: timed(partial(each, steps), steps, clock) for name, each in turns.items()}
    return alternate(contestants, rounds)


def report(data):
    """The text of minatar_speed.md."""
    lines = [
        "# The speed of training on MinAtar",
        "",
        "Written by `make bench ARGS=minatar` (`benchmarks/minatar.py`, which describes the work).",
        f"{data['rounds']} rounds of {data['steps']} steps on {data['machine']}.",
        "",
        "| | frames per second of processor time | relative to Stable-Baselines3 |",
        "|---|--:|--:|",
    ]
    frames = {
        name: [(1 if name == SB3 else RUNS) / second for second in each]
        for name, each in data["seconds"].items()
    }
    for name, each in frames.items():
        lines.append(f"| {name} | {statistics.median(each):,.0f} | ×{ratio(each, frames[SB3])} |")
    lines += [
        "",
        "## Where the time goes",
        "",
        f"With PER and the study's settings, {RUNS} runs, in ms of a step of all runs:",
        "",
        *table_of_parts(data["profiles"], digits=2),
    ]
    return "\n".join(lines) + "\n"


def run(folder, *, quick=False, redraw=False):
    """Measure (or read what was measured) and write the report into `folder`."""
    data = None
    if not redraw:
        torch.set_num_threads(1)
        steps, rounds = (150, 1) if quick else (1_000, 5)
        data = {"machine": machine(PACKAGES), "steps": steps, "rounds": rounds}
        data["seconds"] = measure(steps, rounds)
        data["profiles"] = {
            game: profile(ours(settings("per", env=env)), steps) for game, env in GAMES.items()
        }
    write_report(folder, "minatar_speed", data, report)
