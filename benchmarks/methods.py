"""What an update costs with each method of replay: PER, and what came after it.

    make bench ARGS=methods

An update is a minibatch drawn, a gradient step of every run, and new priorities: what `train` does,
without environments and acting. Settings are those of the study `after-cartpole`: minibatches of
32, a network of 128-128 units and a full memory of 10,000 transitions, in episodes of 100 steps on
average. LaBER computes the TD errors of four times as many transitions first. ReaPER is measured
with the weights of the study too, whose unit is the smallest priority of the whole memory, and with
the smallest of the minibatch, as PER has it.

All methods take turns, a short block of updates each, and ratios are of blocks in the same round.
Times are of the processor, in one thread, so that other programs disturb them less.

Writes docs/methods_speed.md and, with all numbers, docs/methods_speed.json.
"""

import statistics
import time

import numpy as np
import torch

from benchmarks.harness import alternate, machine, write_report
from per_tutorial import DQNLearner
from per_tutorial.dqn.training import make_replay
from per_tutorial.studies.declared import STUDIES

PACKAGES = ("torch", "numpy", "numba")
STUDY = STUDIES["after-cartpole"]
PER = "per"
ARMS = {name: STUDY.arms[name] for name in STUDY.arms if not name.endswith("-quarter")}
STACKS = (1, 10)  # runs
CAPACITY, EPISODE = 10_000, 100
OBSERVATION, ACTIONS = (4,), 2
BLOCK = 50  # updates


def updates(config, runs, capacity=CAPACITY):
    """A function that makes updates of a full memory, and returns the processor seconds of one."""
    learner = DQNLearner(config, OBSERVATION, ACTIONS, range(runs))
    replay = make_replay(config.replace(capacity=capacity), OBSERVATION, range(runs))
    random = np.random.default_rng(0)
    for _ in range(capacity + EPISODE):  # the oldest are overwritten
        state, following = random.normal(size=(2, runs, *OBSERVATION)).astype(np.float32)
        actions, rewards = random.integers(ACTIONS, size=runs), random.normal(size=runs)
        terminated = random.random(runs) < 1 / EPISODE
        replay.add(state, actions, rewards, following, terminated)

    def block(count=BLOCK):
        start = time.process_time()
        for _ in range(count):
            batch = replay.sample(config.batch_size, config.beta_start)
            update = learner.update(batch)
            replay.update_priorities(batch.indices, update.td_errors)
        return (time.process_time() - start) / count

    return block


def measure(rounds):
    """{runs: {method: processor seconds of an update, in each round}}."""
    found = {}
    for runs in STACKS:
        blocks = {name: updates(config, runs) for name, config in ARMS.items()}
        blocks[PER](40 * BLOCK)  # priorities as they are after some learning, caches warm
        found[runs] = alternate(blocks, rounds)
    return found


def report(data):
    """The text of methods_speed.md."""
    lines = [
        "# What an update costs",
        "",
        "Written by `make bench ARGS=methods` (`benchmarks/methods.py`, which describes the work).",
        f"{data['rounds']} rounds of {BLOCK} updates a method on {data['machine']}.",
        "",
        f"| | {' | '.join(f'{_runs(runs)}, ms | beside PER' for runs in data['seconds'])} |",
        f"|---|{'--:|--:|' * len(data['seconds'])}",
    ]
    for name in ARMS:
        cells = []
        for seconds in data["seconds"].values():
            ratios = [a / b for a, b in zip(seconds[name], seconds[PER], strict=True)]
            low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
            cells.append(f"{1000 * statistics.median(seconds[name]):.2f}")
            cells.append(f"×{middle:.2f} ({low:.2f} to {high:.2f})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "Medians over rounds; for ratios, also the middle half of the rounds."]
    return "\n".join(lines) + "\n"


def _runs(runs):
    return f"{runs} run" if str(runs) == "1" else f"{runs} runs"


def run(folder, *, quick=False, redraw=False):
    """Measure (or read what was measured) and write the report into `folder`."""
    data = None
    if not redraw:
        torch.set_num_threads(1)
        rounds = 2 if quick else 40
        data = {"machine": machine(PACKAGES), "rounds": rounds, "seconds": measure(rounds)}
    write_report(folder, "methods_speed", data, report)
