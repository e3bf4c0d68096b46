"""Ape-X on a cluster in this machine, whose processes are killed (kill -9) at random moments.

An actor or the memory is replaced, and the training goes on. After the learner itself was killed,
the same call continues from the last checkpoint. In the end the training is whole, and no process
is left.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

COUNT = 30
MOST_FINDINGS = 5  # then it ends, such as where no cluster can be started
MOST_KILLS = 6  # of one training; then it may come to its end
LEARNER = "the learner"
PROCESSES = {"an actor": "ActorProcess", "a memory": "MemoryProcess"}  # as Ray names them
SETTINGS = {
    "sampler": "proportional",
    "steps": 6000,
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
STARTING, ENDING, TRAINING = 120.0, 60.0, 300.0  # seconds that each may take


def attack(count: int = COUNT, seed: int = 0, *, log: Callable[[str], object] = print) -> list[str]:
    """Kill ``count`` times; returns what did not hold."""
    rng = random.Random(seed)
    findings: list[str] = []
    killed: Counter[str] = Counter()
    trainings = 0
    while killed.total() < count and len(findings) < MOST_FINDINGS:
        # Short, since the names of sockets begin with it.
        with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as place:
            kills = min(rng.randint(1, MOST_KILLS), count - killed.total())
            said = f"training {trainings} of seed {seed}"
            findings += [f"{said}: {one}" for one in _trained(Path(place), kills, rng, killed)]
        trainings += 1
    told = ", ".join(f"{number} times {name}" for name, number in sorted(killed.items()))
    log(f"apex: {told} in {trainings} trainings, {len(findings)} findings")
    return findings


def _trained(place: Path, kills: int, rng: random.Random, killed: Counter[str]) -> Iterator[str]:
    """Train, and kill meanwhile; yields what did not hold."""
    result = place / "result.json"
    since_start: Counter[str] = Counter()  # the learner counts those that it has replaced
    while True:
        learner = _begun(place)
        while kills and _wait(lambda learner=learner: _are_up(learner), STARTING, learner):
            time.sleep(rng.uniform(0, 3))
            name = rng.choice([*PROCESSES, LEARNER])
            victims = [learner.pid] if name == LEARNER else _named(learner.pid, PROCESSES[name])
            if learner.poll() is not None or not victims:
                break
            family = _descendants(learner.pid)
            os.kill(rng.choice(victims), signal.SIGKILL)
            kills -= 1
            killed[name] += 1
            since_start[name] += 1
            if name == LEARNER:
                break
        if since_start[LEARNER]:
            learner.wait()
            since_start.clear()
            if not _wait(lambda family=family: not any(map(_is_alive, family)), ENDING):
                yield f"{ENDING:g} s after its learner was killed, processes are left"
            for left in place.glob("ray-*"):
                shutil.rmtree(left, ignore_errors=True)
            continue
        try:
            status = learner.wait(TRAINING)
        except subprocess.TimeoutExpired:
            learner.kill()
            yield f"it did not end within {TRAINING:g} s"
            return
        if status:
            yield (place / "errors").read_text(encoding="utf-8")[-2000:]
        else:
            yield from _wrong(json.loads(result.read_text(encoding="utf-8")), since_start)
        left = [path.name for path in place.iterdir() if path.name.startswith("ray-")]
        if left:
            yield f"it left {left}"
        return


def _wrong(result: dict, since_start: Counter[str]) -> Iterator[str]:
    """What is not whole about the result of a training."""
    updates = SETTINGS["steps"] - SETTINGS["learning_starts"] + 1
    wanted = {"step": SETTINGS["steps"], "updates": updates, "logged": SETTINGS["steps"]}
    for name, value in wanted.items():
        if result[name] != value:
            yield f"{name} is {result[name]}, not {value}"
    if not result["in_order"]:
        yield "the steps of its history are not in order"
    if result["replaced"] > since_start.total():  # fewer, if one was killed right before the end
        yield f"{since_start.total()} were killed, {result['replaced']} replaced"


def _begun(place: Path) -> subprocess.Popen:
    """The learner, with all that it starts, in a process of its own."""
    with (place / "errors").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, __file__, str(place)],
            env=os.environ
            | QUIET
            | {"TMPDIR": str(place), "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def _are_up(learner: subprocess.Popen) -> bool:
    """Whether all its actors and its memory are there, so that the next loss is one of its own."""
    found = [len(_named(learner.pid, name)) for name in PROCESSES.values()]
    return found == [SPREAD["actors"], 1]


def _wait(
    condition: Callable[[], bool], seconds: float, process: subprocess.Popen | None = None
) -> bool:
    """Wait for something to be true, but no longer than the process lives; returns whether it
    is.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end and (process is None or process.poll() is None):
        if condition():
            return True
        time.sleep(0.1)
    return False


def _named(parent: int, name: str) -> list[int]:
    """Processes that Ray has given this name, below a parent."""
    found = []
    for pid in _descendants(parent):
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(f"ray::{name}".encode()):
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


def _train(place: Path) -> None:
    """The child's work: train, or go on with it, and write what came out."""
    from per_tutorial.distributed import ApexConfig, train_apex
    from per_tutorial.dqn.config import DQNConfig

    history = train_apex(
        DQNConfig(**SETTINGS), ApexConfig(**SPREAD), checkpoints=place / "checkpoints"
    )
    steps = list(history.log_steps)
    found = {
        "step": history.step,
        "updates": int(history.agent.updates),
        "logged": steps[-1],
        "in_order": all(before < after for before, after in zip(steps, steps[1:], strict=False)),
        "replaced": history.actors_replaced + history.shards_replaced,
    }
    (place / "result.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    _train(Path(sys.argv[1]))
