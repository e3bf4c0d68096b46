"""A study small enough to run in a test, and what its folder holds."""

import dataclasses
import gzip
from pathlib import Path

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.studies.study import Study

CONFIG = DQNConfig(
    steps=300,
    hidden=(8,),
    batch_size=4,
    learning_starts=20,
    epsilon_steps=100,
    max_episode_steps=20,
)
STUDY = Study(
    name="small",
    question="Which is better?",
    arms={"uniform": CONFIG, "per": CONFIG.replace(sampler="proportional", alpha=0.5)},
    comparisons=(("per", "uniform"),),
    metric="score over training",
    failed_below=12,
    seeds=range(4),
    at_once=2,
    episodes=40,
)
PARTS = ["per.seeds-0-1", "per.seeds-2-3", "uniform.seeds-0-1", "uniform.seeds-2-3"]


def contents(folder):
    """Everything in a folder, {path: bytes}."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def rows_of(path):
    """The lines of a collected file, without the heading, which holds durations."""
    return gzip.decompress(path.read_bytes()).decode().splitlines()[1:]


def differences(study, pair):
    """The settings in which two arms differ."""
    one, other = (dataclasses.asdict(study.arms[arm]) for arm in pair)
    return {name for name in one if one[name] != other[name]}
