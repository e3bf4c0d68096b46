"""What one memory of Ape-X carries, and what a study takes on a cluster of two nodes.

    .venv/bin/python -m benchmarks distributed

(The environment of `make bench` has no Ray.) Clusters are started in this machine.

**A memory**: transitions that arrive, and minibatches of 512 that leave. Two senders stand in for
the actors: each sends the same windows again and again, two messages ahead, as actors do. This
process stands in for the
learner: it asks for minibatches, four ahead, and sends back a TD error for each transition. Nothing
is played or learned, so the memory, Ray, and the processor's cores are all that can hold things up.
Three things are measured in turns: what arrives while nothing leaves, what leaves while nothing
arrives, and both at once.

*Vectors* are CartPole's observations, 4 float32. *Pictures* are stacks of 4 frames of 84×84 bytes:
a message carries each frame once, the memory keeps it once, and minibatches are whole stacks, 29 MB
each. The memory is full before anything is measured. The paper's 360 actors sent 12,500
transitions/s in all, and its learner took 19 minibatches of 512/s.

Rates are of the wall clock, since a cluster is many processes: other programs make them smaller.
The report says how many there were, and how busy the memory's own process was: the seconds of a
processor that it, with Ray's threads in it, needed in a second.

**A study** of eight stacks is trained by two processes of this machine and on a cluster of two
nodes with one CPU each, in turns. Every time both start from nothing but the cluster itself, as
`connected` leaves it: to import PyTorch is a part of it.

Writes docs/distributed_speed.md and, with all numbers, docs/distributed_speed.json.
"""

import dataclasses
import os
import statistics
import tempfile
import time
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import alternate, machine, ratios, write_report
from per_tutorial.distributed.n_step_batches import NStepBatch
from per_tutorial.distributed.processes import MAX_IN_FLIGHT, MemoryProcess
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.experiments.studies.runner import run_study
from per_tutorial.experiments.studies.study import Study

PACKAGES = ("ray", "numpy", "numba", "torch")
SENDERS, BATCH, AHEAD = 2, 512, 4
PAPER = {"in": 12_500, "out": 19}  # transitions and minibatches of 512 in a second
VECTORS = DQNConfig(sampler="proportional", n_step=3, capacity=100_000)
PICTURES = VECTORS.replace(env="ALE/Pong-v5", capacity=20_000)
STUDY = Study(
    name="two-nodes",
    question="How long does it take?",
    arms={"per": DQNConfig(sampler="proportional", steps=8000)},
    comparisons=(),
    metric="score over training",
    failed_below=0,
    seeds=range(8),
    stack=1,
)
SETTLING = 10.0  # seconds; the agents of a new node go on importing what they need


def vectors(count):
    """NStepBatch of CartPole's shape."""
    random = np.random.default_rng(0)
    return NStepBatch(
        random.random((count, 4), np.float32),
        random.integers(0, 2, count),
        random.random(count, np.float32),
        random.random((count, 4), np.float32),
        random.random(count) < 0.02,
        np.full(count, 3),
        random.random(count),
    )


def pictures(count):
    """NStepBatch from pixels: noise, which nothing can make smaller."""
    random = np.random.default_rng(0)
    frames = random.integers(0, 256, (count + 7, 84, 84), np.uint8)
    frames[0] = 0
    places = np.arange(1, count + 1, dtype=np.int32)[:, None] + np.arange(4, dtype=np.int32)
    alike = vectors(count)
    return alike._replace(
        observations=places, next_observations=places + np.int32(3), frames=frames
    )


# Settings, shape of an observation, what makes a message, and of how many windows
KINDS = {
    "vectors": (VECTORS, (4,), vectors, (100, 400, 1600)),
    "pictures": (PICTURES, (4, 84, 84), pictures, (50, 100, 400)),
}


class Sender:
    """Sends what actors would, as fast as the memory takes it."""

    def send(self, memory, windows, seconds):
        """How many windows arrived within these seconds."""
        import ray

        sent, arrived = [], 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sent.append(memory.add.remote(windows, 0))
            if len(sent) == MAX_IN_FLIGHT:
                ray.get(sent.pop(0))
                arrived += len(windows.actions)
        ray.get(sent)
        return arrived


class Memory(MemoryProcess):
    """A memory that knows how long it has computed."""

    def computed(self):
        return time.process_time()


def receive(memory, seconds):
    """How many minibatches a learner was given within these seconds."""
    import ray

    asked = [memory.sample.remote(BATCH, 0.4) for _ in range(AHEAD)]
    errors = np.random.default_rng(0).random((1, BATCH))
    received, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        minibatch = ray.get(asked.pop(0))
        asked.append(memory.sample.remote(BATCH, 0.4))
        # What the learner does with it before it computes
        float(sum(field.reshape(-1)[::4096].sum() for field in minibatch.batch[:2]))
        answer = memory.update.remote(minibatch.batch.indices, errors, received)
        received += 1
        if received % AHEAD == 0:
            ray.get(answer)
    ray.get(asked)
    return received


def measure_kind(kind, counts, seconds, rounds):
    """[(windows in a message, {what: rates of each round})] of one memory."""
    import ray

    config, shape, make, _ = KINDS[kind]
    memory = ray.remote(num_cpus=1)(Memory).remote(config, config.capacity, shape, 0, None)
    senders = [ray.remote(num_cpus=1)(Sender).remote() for _ in range(SENDERS)]
    found = []
    for count in counts:
        windows = make(count)
        full = -(-config.capacity // count)
        for start in range(0, full, 50):
            ray.get([memory.add.remote(windows, 0) for _ in range(min(50, full - start))])
        rates = {name: [] for name in ("in alone", "out alone", "in", "out", "busy")}
        for number in range(rounds + 1):
            one = measure_once(memory, senders, windows, seconds if number else seconds / 4)
            for name, rate in one.items() if number else ():  # the first one warms up
                rates[name].append(rate)
        found.append((count, rates))
    for process in (memory, *senders):
        ray.kill(process)
    return found


def measure_once(memory, senders, windows, seconds):
    """{what: its rate}, each measured for ``seconds``."""
    import ray

    def sending():
        return [each.send.remote(memory, windows, seconds) for each in senders]

    arrived_alone = sum(ray.get(sending()))
    received_alone = receive(memory, seconds)
    before, start = ray.get(memory.computed.remote()), time.monotonic()
    meanwhile = sending()
    received = receive(memory, seconds)
    arrived = sum(ray.get(meanwhile))
    computed = ray.get(memory.computed.remote()) - before
    return {
        "in alone": arrived_alone / seconds,
        "out alone": received_alone / seconds,
        "in": arrived / seconds,
        "out": received / seconds,
        "busy": computed / (time.monotonic() - start),
    }


@contextmanager
def two_nodes():
    """A cluster of two nodes with one CPU each, to which this process is connected."""
    from per_tutorial.distributed.cluster import connected, import_ray

    import_ray()
    from ray.cluster_utils import Cluster

    one = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=one)
    try:
        cluster.add_node(**one)
        with connected(cluster.address):
            time.sleep(SETTLING)
            yield
    finally:
        cluster.shutdown()


def study_seconds(study, **how):
    """What a study takes that nobody has begun."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run_study(study, folder, **how)
        return time.perf_counter() - start


def measure_study(study, rounds):
    """{how it was trained: seconds in each round}."""
    from per_tutorial.distributed.studies import RayStacks

    def on_cluster():
        with two_nodes():
            return study_seconds(study, executor=RayStacks())

    return alternate(
        {"two processes": lambda: study_seconds(study, processes=2), "two nodes": on_cluster},
        rounds,
    )


def measure(quick):
    """A dict of all that the report needs."""
    # Before Ray is imported: nodes must not take this machine's address for 127.0.0.1.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    from per_tutorial.distributed.cluster import connected

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    seconds, rounds = (0.3, 1) if quick else (2.0, 3)
    with connected("local", cpus=SENDERS + 1):
        found = [
            (kind, *each)
            for kind, (*_, counts) in KINDS.items()
            for each in measure_kind(kind, counts[:1] if quick else counts, seconds, rounds)
        ]
    study = STUDY
    if quick:
        small = study.arms["per"].replace(steps=600)
        study = dataclasses.replace(study, arms={"per": small}, seeds=range(2))
    return {
        "machine": machine(PACKAGES),
        "cores": os.cpu_count(),
        "load": load,
        "seconds": seconds,
        "rounds": rounds,
        "rates": found,
        "study": measure_study(study, rounds),
    }


def report(data):
    """The text of distributed_speed.md."""
    lines = [
        "# Many machines, measured on one",
        "",
        "Written by `python -m benchmarks distributed` (`benchmarks/distributed.py`, which "
        "describes the work),",
        f"on {data['cores']} cores of {data['machine']}.",
        "",
    ]
    if data["load"] is not None:
        lines += [
            f"At the start, the load of other processes was {data['load']:.1f}.",
            "",
        ]
    lines += [
        "## What one memory of Ape-X carries",
        "",
        f"Medians of {data['rounds']} rounds. *Alone*: this direction only; else both at once.",
        "*Busy*: the share of a processor that the memory's process used meanwhile.",
        "",
        "| observations | windows per message | transitions/s in, alone | minibatches/s out, alone "
        "| transitions/s in | minibatches of 512/s out | busy |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for kind, count, rates in data["rates"]:
        median = {name: statistics.median(each) for name, each in rates.items()}
        lines.append(
            f"| {kind} | {count:,} | {median['in alone']:,.0f} | {median['out alone']:,.0f} "
            f"| {median['in']:,.0f} | {median['out']:.0f} | {median['busy']:.0%} |"
        )
    lines.append(f"| the paper's total | 50 | | | {PAPER['in']:,} | {PAPER['out']} | |")
    middle, low, high = ratios(data["study"]["two nodes"], data["study"]["two processes"])
    seconds = {name: statistics.median(each) for name, each in data["study"].items()}
    lines += [
        "",
        "## What a study takes",
        "",
        f"Medians of {data['rounds']} rounds: on a cluster of two nodes "
        f"{seconds['two nodes']:.1f} s, start of the cluster aside, and by two processes "
        f"{seconds['two processes']:.1f} s. Within a round the cluster took {middle:.2f} times as "
        f"long (median; {low:.2f} to {high:.2f}).",
    ]
    return "\n".join(lines) + "\n"


def run(folder, *, quick=False, redraw=False):
    """Measure (or read what was measured) and write the report into `folder`."""
    data = None if redraw else measure(quick)
    write_report(folder, "distributed_speed", data, report)
