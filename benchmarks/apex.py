"""What an agent becomes by Ape-X, and how fast, beside the plain training of the same settings.

    .venv/bin/python -m benchmarks apex

(The environment of `make bench` has no Ray.) A cluster is started in this machine. *CartPole*:
pairs of trainings with the same seed and the settings of notebook 09, one by `train_apex` with four
actors, one by `train`. The score is the mean of 20 greedy episodes at the end. *Pong*, from pixels:
one training of each kind with the settings of the study `pong`, cut to fewer steps; the score is
the mean of 20 games at the end.

Steps per second are those of whole trainings, of the wall clock, in which Ape-X starts its
processes. Other programs make them fewer.

Every training is written as it ends, into docs/apex.json; started again, this continues there. The
report is docs/apex.md.
"""

import json
import os
import time

import numpy as np
import torch

from benchmarks.harness import machine, write_report
from per_tutorial import DQNConfig, evaluate, train
from per_tutorial.distributed.apex import train_apex
from per_tutorial.distributed.apex_settings import ApexConfig
from per_tutorial.distributed.cluster import connected
from per_tutorial.dqn.callbacks import ProgressBar
from per_tutorial.experiments.statistics.estimates import paired_difference
from per_tutorial.experiments.studies.declared import STUDIES

PACKAGES = ("ray", "numpy", "numba", "torch")
CARTPOLE = DQNConfig(
    sampler="proportional",
    n_step=3,
    max_episode_steps=200,
    steps=50_000,
    learning_starts=500,
    update_every=2,
    compiled=False,
)
PONG = STUDIES["pong"].arms["per"].replace(steps=200_000)
SETTINGS = {
    "CartPole": (CARTPOLE, ApexConfig(actors=4)),
    "Pong": (PONG, ApexConfig(actors=2, environments_each=4, fetch_every=400)),
}
SEEDS = {"CartPole": range(30), "Pong": range(1)}
APEX, PLAIN = "apex", "plain"
EPISODES = 20  # of a score


def trained(kind, config, apex, seed):
    """What came out of one training, as a dict."""
    start = time.monotonic()
    callbacks = [ProgressBar(f"{config.env}, seed {seed}, {kind}")]
    if kind == APEX:
        history = train_apex(config.replace(environments=1), apex, seed, callbacks=callbacks)
    else:
        history = train(config, seeds=[seed], callbacks=callbacks)
    seconds = time.monotonic() - start
    found = {
        "score": float(evaluate(history.agent, EPISODES).mean()),
        "steps": config.steps,
        "seconds": seconds,
        "threads": torch.get_num_threads(),
    }
    if kind == APEX:
        found |= {
            "waited": history.waited,
            "parameter_age": float(np.nanmean(history.measure("parameter_age"))),
            "priority_age": float(np.nanmean(history.measure("priority_age"))),
        }
    return found


def measure(path, settings, seeds):
    """Train what the file at ``path`` lacks, and write it there."""
    described = {name: [repr(each) for each in both] for name, both in settings.items()}
    data = {"settings": described, "machine": machine(PACKAGES), "cores": os.cpu_count()}
    data["trainings"] = []
    if path.exists():
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["settings"] != described:
            raise SystemExit(f"apex: {path} is of other settings; remove it to begin anew")
    done = {(one["world"], one["seed"], one["kind"]) for one in data["trainings"]}
    with connected("local", cpus=max(each.actors + each.shards for _, each in settings.values())):
        for name, (config, apex) in settings.items():
            for seed in seeds[name]:
                for kind in (APEX, PLAIN):
                    if (name, seed, kind) not in done:
                        found = trained(kind, config, apex, seed)
                        one = {"world": name, "seed": seed, "kind": kind, **found}
                        data["trainings"].append(one)
                        write_report(path.parent, path.stem, data, report)


def report(data):
    """The text of apex.md."""
    lines = [
        "# Ape-X compared with a plain training",
        "",
        "Written by `python -m benchmarks apex` (`benchmarks/apex.py`, which describes the work), "
        "on",
        f"{data['cores']} cores of {data['machine']}.",
        "",
        "| world | trained | threads | runs | steps | score | steps/s | age of parameters | "
        "age of priorities |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    scores = {}
    for name in data["settings"]:
        for kind in (APEX, PLAIN):
            runs = [one for one in data["trainings"] if (one["world"], one["kind"]) == (name, kind)]
            if not runs:
                continue
            scores[name, kind] = {one["seed"]: one["score"] for one in runs}
            rate = np.median([one["steps"] / one["seconds"] for one in runs])
            ages = ("parameter_age", "priority_age") if kind == APEX else ()
            old = [f"{np.mean([one[age] for one in runs]):,.0f} updates" for age in ages]
            lines.append(
                f"| {name} | {'by Ape-X' if kind == APEX else 'plainly'} "
                f"| {' and '.join(sorted({str(one['threads']) for one in runs}))} | {len(runs)} "
                f"| {runs[0]['steps']:,} | {np.mean([one['score'] for one in runs]):.1f} "
                f"| {rate:,.0f} | {' | '.join(old or ['', ''])} |"
            )
    lines += [
        "",
        f"Score: the mean over the runs of {EPISODES} greedy episodes at the end. Threads: of the "
        "learner's process.",
    ]
    for name in data["settings"]:
        ours, theirs = (scores.get((name, kind), {}) for kind in (APEX, PLAIN))
        pairs = sorted(ours.keys() & theirs.keys())
        if len(pairs) > 1:
            both = ([each[seed] for seed in pairs] for each in (ours, theirs))
            difference = paired_difference(*both)
            lines += [
                "",
                f"{name}, Ape-X less the plain training, {len(pairs)} pairs: "
                f"{difference.value:+.1f} [{difference.low:+.1f}, {difference.high:+.1f}].",
            ]
    return "\n".join(lines) + "\n"


def run(folder, *, quick=False, redraw=False):
    """Train (or read what was trained) and write the report into `folder`."""
    if not redraw:
        settings, seeds = SETTINGS, SEEDS
        if quick:
            small = {"steps": 600, "learning_starts": 200, "hidden": (16,)}
            settings = {
                "CartPole": (CARTPOLE.replace(**small), ApexConfig(actors=1, fetch_every=50)),
                "Pong": (
                    PONG.replace(**small, frame_size=20, max_episode_steps=50, capacity=1000),
                    ApexConfig(actors=1, environments_each=2, fetch_every=50),
                ),
            }
            seeds = {"CartPole": range(2), "Pong": range(1)}
        measure(folder / "apex.json", settings, seeds)
    write_report(folder, "apex", None, report)
