"""Trainings and studies killed at random (kill -9): continued, they come to the same result."""

import dataclasses
import os
import random
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from attacks.readers import CONFIG, STUDY
from per_tutorial.common.tables import read_table
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.history import COLUMNS as HISTORY_COLUMNS
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import train
from per_tutorial.experiments.studies.results import COLUMNS
from per_tutorial.experiments.studies.runner import run_study

COUNT = 100
MAX_KILLS = 5  # of one training or study; then it may come to its end

LONG = CONFIG.replace(steps=400, capacity=120)
CONFIGS = [
    LONG,
    LONG.replace(sampler="rank", n_step=3),
    LONG.replace(sampler="uniform", vectorization="vector_entry_point", dueling=True),
]


class Job(NamedTuple):
    """Something that takes a while, and continues when it is begun again in the same folder."""

    name: str
    run: Callable[[Path], object]
    result: Callable[[Path], dict[str, object]]  # what must be the same however often it was killed


def training(number: int) -> Job:
    """A training that writes checkpoints, every other one copies of them as well."""
    config = CONFIGS[number % len(CONFIGS)]

    def run(folder: Path) -> None:
        copy_to = folder / "copies" if number % 2 else None
        checkpoints = Checkpoints(folder / "checkpoints", every=10, copy_to=copy_to)
        history = train(config, [3, 4], checkpoints=checkpoints)
        history.agent.save(folder / "agents")
        history.save(folder / "history.csv")

    def result(folder: Path) -> dict[str, object]:
        tensors = DQNLearner.load(folder / "agents").online.state_dict()
        agents = {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}
        return agents | {"history": read_table(folder / "history.csv", HISTORY_COLUMNS)}

    return Job(f"training, {config.sampler}", run, result)


def study(number: int) -> Job:
    """A study that keeps checkpoints; every fifth one in two processes."""
    arms = {name: config.replace(steps=300) for name, config in STUDY.arms.items()}
    declared = dataclasses.replace(STUDY, arms=arms, checkpoint_every=20)

    def run(folder: Path) -> None:
        run_study(declared, folder, processes=2 if number % 5 == 4 else 1)

    def result(folder: Path) -> dict[str, object]:
        _, rows = read_table(folder / f"{declared.name}.csv.gz", COLUMNS)
        left = [str(path.relative_to(folder)) for path in folder.rglob("*step-*")]
        return {"rows": rows, "left": left}

    return Job("study", run, result)


def attack(count: int = COUNT, seed: int = 0, *, log: Callable[[str], object] = print) -> list[str]:
    """Kill ``count`` times; returns what came out differently."""
    rng = random.Random(seed)
    findings: list[str] = []
    kills = halves = jobs = 0
    expected: dict[str, tuple[dict[str, object], float]] = {}
    with tempfile.TemporaryDirectory() as place:
        while kills < count:
            job = (training if jobs % 3 else study)(jobs)
            if job.name not in expected:
                expected[job.name] = _uninterrupted(job, Path(place, "whole"))
            result, seconds = expected[job.name]
            folder = Path(place, str(jobs))
            folder.mkdir()
            jobs += 1
            ended = False
            for _ in range(min(rng.randint(1, MAX_KILLS), count - kills)):
                ended = _killed_after(job, folder, rng.uniform(0, seconds * 0.7))
                if ended:
                    break
                kills += 1
                halves += any(path.name.startswith(".") for path in folder.rglob("*"))
            error = None if ended else _done(job, folder)
            if error is None and job.result(folder) != result:
                error = "the result is another one"
            if error is not None:
                findings.append(f"{job.name}, job {jobs - 1} of seed {seed}: {error}")
            shutil.rmtree(folder)
    log(f"kills: {kills} of {jobs} jobs, {halves} inside a write, {len(findings)} findings")
    return findings


def _uninterrupted(job: Job, folder: Path) -> tuple[dict[str, object], float]:
    """The result, and how many seconds it takes."""
    folder.mkdir()
    start = time.perf_counter()
    error = _done(job, folder)
    if error is not None:
        raise AssertionError(f"{job.name}: {error}")
    took, result = time.perf_counter() - start, job.result(folder)
    shutil.rmtree(folder)
    return result, took


def _begun(job: Job, folder: Path) -> int:
    """A process of its own that does the job; it leaves its error in a file."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.setsid()  # so that its workers can be killed with it
        job.run(folder)
        status = 0
    except BaseException:
        folder.with_suffix(".error").write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        os._exit(status)


def _done(job: Job, folder: Path) -> str | None:
    """Let the job come to its end; its error, if it has one."""
    _, status = os.waitpid(_begun(job, folder), 0)
    if status == 0:
        return None
    file = folder.with_suffix(".error")
    return (
        file.read_text(encoding="utf-8") if file.exists() else f"it ended with the status {status}"
    )


def _killed_after(job: Job, folder: Path, seconds: float) -> bool:
    """Begin the job and kill it after so long; returns True if it had ended by then."""
    child = _begun(job, folder)
    time.sleep(seconds)
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        return status == 0
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while True:  # its workers end by themselves
        try:
            os.killpg(child, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.01)
