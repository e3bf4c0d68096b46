"""Training speed: frames per second, ours beside Stable-Baselines3's DQN, and PER beside uniform.

    make bench                       # or: python benchmarks/training.py --rounds 5

All contestants do the same work: CartPole-v1, a 128-128 network, minibatches of 32, an update at
every frame. They take turns, round after round, so that a change of the machine's speed meets all
of them; ratios are taken within a round, and their median and range are what counts. One *frame* is
one environment step of one run. Writes docs/training_speed.md.
"""

import argparse
import platform
import statistics
import time
from importlib.metadata import version
from pathlib import Path

import torch

from per_tutorial import DQNConfig, train
from per_tutorial.machine import processor

REPORT = Path(__file__).resolve().parent.parent / "docs" / "training_speed.md"


def ours(runs, sampler="uniform"):
    def train_frames(steps):
        train(DQNConfig(steps=steps, sampler=sampler, **SETTINGS), range(runs))
        return runs * steps

    return train_frames


SETTINGS = {
    "env": "CartPole-v1",
    "hidden": (128, 128),
    "batch_size": 32,
    "learning_starts": 100,
    "update_every": 1,
    "target_update_every": 100,
    "tau": 1.0,
    "capacity": 10_000,
    "learning_rate": 1e-3,
}


def stable_baselines3(steps):
    from stable_baselines3 import DQN

    model = DQN(
        "MlpPolicy",
        SETTINGS["env"],
        policy_kwargs={"net_arch": list(SETTINGS["hidden"])},
        batch_size=SETTINGS["batch_size"],
        learning_starts=SETTINGS["learning_starts"],
        train_freq=1,
        gradient_steps=1,
        target_update_interval=SETTINGS["target_update_every"],
        buffer_size=SETTINGS["capacity"],
        learning_rate=SETTINGS["learning_rate"],
        device="cpu",
        seed=0,
    )
    model.learn(steps)
    return steps


CONTESTANTS = {
    "Stable-Baselines3 DQN, 1 run": (stable_baselines3, 1),
    "1 run, uniform": (ours(1), 1),
    "10 runs, uniform": (ours(10), 1),
    "10 runs, proportional": (ours(10, "proportional"), 1),
    "100 runs, proportional": (ours(100, "proportional"), 5),
}


def measure(steps, rounds):
    """{contestant: frames per second in each round}, after a round that does not count."""
    speeds = {name: [] for name in CONTESTANTS}
    for count in range(rounds + 1):
        for name, (run, shorter) in CONTESTANTS.items():
            start = time.perf_counter()
            frames = run(steps // shorter)
            if count:
                speeds[name].append(frames / (time.perf_counter() - start))
    return speeds


def ratio(speeds, name, other):
    pairs = [a / b for a, b in zip(speeds[name], speeds[other], strict=True)]
    return f"{statistics.median(pairs):.2f} ({min(pairs):.2f} to {max(pairs):.2f})"


def report(speeds, steps, rounds):
    packages = ("torch", "numpy", "numba", "gymnasium", "stable-baselines3")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    first = next(iter(CONTESTANTS))
    lines = [
        "# Training speed",
        "",
        "Written by `make bench` (`benchmarks/training.py`, which describes the work).",
        f"{rounds} rounds of {steps} steps on {processor()}, {torch.get_num_threads()} threads; "
        f"Python {platform.python_version()}, {versions}.",
        "",
        "| | frames per second (median) | of Stable-Baselines3, median (range) |",
        "|---|---|---|",
    ]
    for name, values in speeds.items():
        lines.append(f"| {name} | {statistics.median(values):,.0f} | {ratio(speeds, name, first)} |")
    cost = ratio(speeds, "10 runs, uniform", "10 runs, proportional")
    lines += ["", f"Time of a frame with PER, as a multiple of uniform replay's (10 runs): {cost}."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5_000, help="steps of each run (5000)")
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds (5)")
    options = parser.parse_args()
    text = report(measure(options.steps, options.rounds), options.steps, options.rounds)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
