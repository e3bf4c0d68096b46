"""Ape-X and a study on a cluster in this machine, its processes killed at random (kill -9).

An actor, the memory or a stack of the study is replaced, and the work goes on. After the driver
itself was killed, the same call continues from the last checkpoint. In the end the result is whole,
and no process and no file is left.
"""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

COUNT = 150  # thirty of each process: Ape-X's three, the study's two
MAX_FINDINGS = 5  # then it ends, such as where no cluster can be started
KILLS = 4, 12  # of one job, at least and at most; then it may come to its end
DRIVER = "the driver"
SETTINGS = {
    "sampler": "proportional",
    "steps": 20_000,
    "hidden": (16,),
    "batch_size": 16,
    "learning_starts": 200,
    "n_step": 3,
}
SPREAD = {"actors": 2, "fetch_every": 50, "lead": 400, "checkpoint_every": 500}
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_prestart_worker_first_driver": "0",
    "OMP_NUM_THREADS": "1",
}
# Seconds that each may take. Ray's own agents wait a minute for their killed cluster.
STARTING, ENDING, WORKING = 120.0, 90.0, 300.0


class Job(NamedTuple):
    """Something that a cluster does, and that continues when it is begun again.

    Attributes:
        processes: what a process is → how Ray's name for it begins, and how many there are before
            one is killed.
        bearable: kills of one process per driver that the job promises to bear; None: any number.
        wrong: what is not whole about the result, given the kills since the driver's start.
    """

    processes: dict[str, tuple[str, int]]
    bearable: int | None
    wrong: Callable[[dict, Counter[str]], Iterator[str]]


def attack(count: int = COUNT, seed: int = 0, *, log: Callable[[str], object] = print) -> list[str]:
    """Kill ``count`` times; returns what did not hold."""
    rng = random.Random(seed)
    findings: list[str] = []
    killed = Counter({(name, each): 0 for name, job in JOBS.items() for each in _victims(job)})
    share = -(-count // len(killed))
    number = 0
    while killed.total() < count and len(findings) < MAX_FINDINGS:
        name = min(JOBS, key=lambda name: min(n for one, n in killed.items() if one[0] == name))
        # Short, since the names of sockets begin with it.
        with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as place:
            begun = time.perf_counter()
            said = f"{name}, job {number} of seed {seed}"
            findings += [f"{said}: {one}" for one in _done(Path(place), name, rng, killed, share)]
            told = ", ".join(f"{n} × {each} ({job})" for (job, each), n in killed.items())
            log(
                f"{said}: {time.perf_counter() - begun:.0f} s, {len(findings)} findings; killed so "
                f"far: {told}"
            )
        number += 1
    log(f"cluster: {killed.total()} kills in {number} jobs, {len(findings)} findings")
    return findings


def _victims(job: Job) -> list[str]:
    return [*job.processes, DRIVER]


def _done(place: Path, name: str, rng: random.Random, killed: Counter, share: int) -> Iterator[str]:
    """Do a job, and kill its processes meanwhile; yields what did not hold."""
    job, kills = JOBS[name], rng.randint(*KILLS)
    since_start: Counter[str] = Counter()  # a driver counts those that it has replaced
    orphans: set[int] = set()  # processes that the killed drivers had started
    folders: set[Path] = set()  # which those drivers could not remove
    while True:
        driver = _begun(place, name)
        while kills and _wait(lambda driver=driver: _are_up(driver, job), STARTING, driver):
            time.sleep(rng.uniform(0, 3))
            left = [each for each in _victims(job) if killed[name, each] < share]
            if since_start.total() == job.bearable:
                left = [DRIVER] if DRIVER in left else []
            if not left:
                break
            victim = rng.choice(left)
            pids = [driver.pid] if victim == DRIVER else _named(driver.pid, job, victim)
            if driver.poll() is not None or not pids:
                break
            family = _descendants(driver.pid)
            os.kill(rng.choice(pids), signal.SIGKILL)
            kills -= 1
            killed[name, victim] += 1
            since_start[victim] += 1
            if victim == DRIVER:
                break
        if since_start[DRIVER]:
            driver.wait()
            since_start.clear()
            orphans |= family
            folders.update(place.glob("ray-*"))
            continue
        yield from _ended(driver, place, job, since_start, folders, orphans)
        return


def _ended(
    driver: subprocess.Popen,
    place: Path,
    job: Job,
    killed: Counter[str],
    folders: set[Path],
    orphans: set[int],
) -> Iterator[str]:
    """Wait for a driver that is not killed any more; yields what is not whole, and what is left."""
    try:
        status = driver.wait(WORKING)
    except subprocess.TimeoutExpired:
        driver.kill()
        yield f"it did not end within {WORKING:g} s"
        return
    if status:
        yield (place / "errors").read_text(encoding="utf-8")[-2000:]
    else:
        result = json.loads((place / "result.json").read_text(encoding="utf-8"))
        yield from job.wrong(result, killed)
    remains = [path.name for path in place.glob("ray-*") if path not in folders]
    if remains:
        yield f"it left {remains}"
    if not _wait(lambda: not any(map(_is_alive, orphans)), ENDING):
        yield f"{ENDING:g} s after its driver was killed and it has ended, processes are left"


def _wrong_training(result: dict, killed: Counter[str]) -> Iterator[str]:
    updates = SETTINGS["steps"] - SETTINGS["learning_starts"] + 1
    wanted = {"step": SETTINGS["steps"], "updates": updates, "logged": SETTINGS["steps"]}
    for name, value in wanted.items():
        if result[name] != value:
            yield f"{name} is {result[name]}, not {value}"
    if not result["in_order"]:
        yield "the steps of its history are not in order"
    if result["replaced"] > killed.total():  # fewer, if one was killed right before the end
        yield f"{killed.total()} were killed, {result['replaced']} replaced"


def _wrong_study(result: dict, killed: Counter[str]) -> Iterator[str]:
    if result["there"] != result["here"]:
        yield "the study's rows are not those of a local run"
    if result["left"]:
        yield f"checkpoints are left: {result['left']}"


# A task has the name of its stack, which begins with its arm. A study gives up when the same stack
# ends three times, so at most two are killed.
JOBS = {
    "apex": Job(
        {"an actor": ("ActorProcess", 2), "the memory": ("MemoryProcess", 1)}, None, _wrong_training
    ),
    "study": Job({"a stack": ("uniform", 1)}, 2, _wrong_study),
}


def _begun(place: Path, name: str) -> subprocess.Popen:
    """The driver, with all that it starts, in a process of its own."""
    paths = {"TMPDIR": str(place), "PYTHONPATH": os.pathsep.join(sys.path)}
    with (place / "errors").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, __file__, name, str(place)],
            env=os.environ | QUIET | paths,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def _are_up(driver: subprocess.Popen, job: Job) -> bool:
    """Whether all that may be killed is there, so that the next loss is one of its own."""
    return all(
        len(_named(driver.pid, job, each)) == count for each, (_, count) in job.processes.items()
    )


def _wait(
    condition: Callable[[], bool], seconds: float, process: subprocess.Popen | None = None
) -> bool:
    """Wait for something to be true, while the process lives; returns whether it is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and (process is None or process.poll() is None):
        if condition():
            return True
        time.sleep(0.1)
    return False


def _named(parent: int, job: Job, kind: str) -> list[int]:
    """Processes of a kind, below a parent."""
    start, found = f"ray::{job.processes[kind][0]}".encode(), []
    for pid in _descendants(parent):
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(start):
                found.append(pid)
        except OSError:  # it has ended
            pass
    return found


def _descendants(parent: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            above = int(path.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(above, []).append(int(path.parent.name))
    found, waiting = set(), [parent]
    while waiting:
        new = children.get(waiting.pop(), [])
        found.update(new)
        waiting += new
    return found


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _apex(place: Path) -> dict:
    """The driver's work: train, or go on with it; what came out."""
    from per_tutorial.distributed import ApexConfig, train_apex
    from per_tutorial.dqn.config import DQNConfig

    history = train_apex(
        DQNConfig(**SETTINGS), ApexConfig(**SPREAD), checkpoints=place / "checkpoints"
    )
    steps = list(history.log_steps)
    return {
        "step": history.step,
        "updates": int(history.agent.updates),
        "logged": steps[-1],
        "in_order": all(before < after for before, after in zip(steps, steps[1:], strict=False)),
        "replaced": history.actors_replaced + history.shards_replaced,
    }


def _study(place: Path) -> dict:
    """The driver's work: a study of one arm, or go on with it; what came out, and a local run's."""
    from attacks.readers import STUDY as short
    from per_tutorial.common.tables import read_table
    from per_tutorial.distributed import RayStacks, connected
    from per_tutorial.experiments.studies.results import COLUMNS
    from per_tutorial.experiments.studies.runner import run_study

    study = dataclasses.replace(
        short,
        arms={"uniform": short.arms["uniform"].replace(steps=12_000)},
        comparisons=(),
        checkpoint_every=250,
    )
    shared = place / "shared"
    with connected("local", 1):
        run_study(study, place / "there", executor=RayStacks(shared))
    run_study(study, place / "here")
    rows = {
        name: read_table(place / name / f"{study.name}.csv.gz", COLUMNS)[1]
        for name in ("here", "there")
    }
    return rows | {"left": [str(path) for path in shared.rglob("step-*")]}


if __name__ == "__main__":
    name, folder = sys.argv[1:]
    found = {"apex": _apex, "study": _study}[name](Path(folder))
    Path(folder, "result.json").write_text(json.dumps(found, default=str), encoding="utf-8")
