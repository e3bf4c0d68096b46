"""Studies on a cluster: the same files as here, whatever is lost on the way."""

import dataclasses
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from small_study import CONFIG, STACKS, STUDY, contents, rows_of

from per_tutorial.__main__ import main
from per_tutorial.distributed import ClusterError, RayStacks, connected
from per_tutorial.experiments.studies.declared import STUDIES
from per_tutorial.experiments.studies.runner import run_study
from per_tutorial.experiments.studies.study import Study

LONG = dataclasses.replace(
    STUDY,
    name="long",
    arms={name: config.replace(steps=3000) for name, config in STUDY.arms.items()},
    seeds=range(2),
    checkpoint_every=250,
)


def test_a_study_leaves_what_a_local_one_leaves(cluster, tmp_path):
    cluster.block(2)  # one process for all stacks
    calls, stacks = [], RayStacks()
    with connected(cluster.address) as nodes:
        assert len(nodes) == 1
        run_study(
            STUDY,
            tmp_path / "there",
            executor=stacks,
            progress=lambda done, total: calls.append((done, stacks.nodes_at_work)),
        )
        again = run_study(STUDY, tmp_path / "there", executor=stacks)  # nothing is left to do
    run_study(STUDY, tmp_path / "here")
    here, there = (tmp_path / each / "small.csv.gz" for each in ("here", "there"))
    assert rows_of(there) == rows_of(here)
    assert sorted(contents(tmp_path / "there")) == sorted(contents(tmp_path / "here"))
    assert sorted(contents(tmp_path / "there")) == [
        "small.csv.gz",
        *(f"small/{one}.csv" for one in STACKS),
    ]
    assert [done for done, _ in calls] == [0, 600, 1200, 1800, 2400]
    assert calls[-1][1] == 0
    assert again.seeds == list(STUDY.seeds)


def test_a_lost_node_costs_its_own_stack_which_goes_on_from_its_checkpoint(
    cluster, tmp_path, eventually, meanwhile
):
    other = cluster.add(1)
    cluster.block(2)  # so that each node has one of the two stacks
    shared, stacks = tmp_path / "shared", RayStacks(tmp_path / "shared")
    names = [f"{arm}.seeds-0-1" for arm in LONG.arms]

    def is_in_the_middle():
        there = [names[job] for job, node in stacks._at.items() if node == other.node_id]
        return any(list((shared / LONG.name / name).glob("step-*.npz")) for name in there)

    def kill_one():
        eventually(is_in_the_middle, 200)
        assert stacks.nodes_at_work in (1, 2)  # the head may have finished its own
        cluster.kill(other)

    meanwhile(kill_one)
    facts = run_study(LONG, tmp_path / "there", executor=stacks).facts
    assert stacks.lost == 1
    assert sorted(stack["continued"] for stack in facts["stacks"]) == [False, True]
    assert not list(shared.rglob("*.npz"))
    run_study(LONG, tmp_path / "here")
    here, there = contents(tmp_path / "here"), contents(tmp_path / "there")
    assert sorted(here) == sorted(there)
    agents = [name for name in here if name.endswith(".safetensors")]
    assert len(agents) == 2 and all(here[name] == there[name] for name in agents)
    assert rows_of(tmp_path / "there" / "long.csv.gz") == rows_of(tmp_path / "here" / "long.csv.gz")


KILLED = "beta-schedules"


def command(*options):
    return [sys.executable, "-m", "per_tutorial", "study", KILLED, "--fast", "--quiet", *options]


def running(text):
    """Whether there is a process whose command line has a text."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in path.read_bytes():
                return True
        except OSError:
            pass
    return False


def test_a_killed_driver_continues_and_leaves_no_process(
    cluster, ray_processes, tmp_path, eventually
):
    cluster.block(2)  # one stack after another, so that some are left
    names = STUDIES[KILLED].arms  # which Ray's processes are named after, with seeds
    parts, out = tmp_path / "there" / f"{KILLED}-fast", ("--out", str(tmp_path / "there"))
    process = subprocess.Popen(command("--ray", cluster.address, *out), stderr=subprocess.PIPE)
    try:
        eventually(lambda: list(parts.glob("*.csv")) or process.poll() is not None, 200)
        assert process.poll() is None, process.stderr.read().decode()
    finally:
        process.kill()
    process.communicate(timeout=60)
    eventually(lambda: not any(map(ray_processes, ("_train", *names))))
    kept = contents(parts)
    assert kept
    main(command("--processes", "1", *out)[3:])
    assert contents(parts).items() >= kept.items()
    main(command("--processes", "1", "--out", str(tmp_path / "here"))[3:])
    name = f"{KILLED}-fast.csv.gz"
    assert rows_of(tmp_path / "there" / name) == rows_of(tmp_path / "here" / name)


def test_a_local_cluster_ends_with_its_study_and_leaves_nothing(tmp_path):
    # Short, since sockets are in it
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        out = tmp_path / "out"
        options = ("--ray", "local", "--processes", "1", "--out", str(out))
        subprocess.run(
            command(*options),
            env=os.environ | {"TMPDIR": folder},
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=120,
        )
        assert (out / f"{KILLED}-fast.csv.gz").exists()
        assert not running(folder)
        assert not list(Path(folder).glob("ray-*"))


def test_no_more_stacks_train_at_once_than_there_are_cpus(
    cluster, ray_processes, tmp_path, meanwhile
):
    cluster.block(2)  # one is left
    seen, over = [], threading.Event()

    def watch():
        while not over.wait(0.02):
            seen.append(sum(len(ray_processes(stack)) for stack in STACKS))

    meanwhile(watch)
    try:
        run_study(STUDY, tmp_path, executor=RayStacks())
    finally:
        over.set()
    assert max(seen) == 1


def failing(**changes):
    """A study of one arm that cannot be trained on a node."""
    arms = {"wrong": CONFIG.replace(**changes)}
    return Study("failing", "", arms, (), "greedy score", 0, seeds=range(2), stack=2)


def test_an_error_names_the_node_and_leaves_no_result(cluster, tmp_path):
    wrong = "ray: wrong.seeds-0-1 failed on node 127.0.0.1 .*: no environment 'Cartpole-v1', did"
    with pytest.raises(ClusterError, match=wrong):
        run_study(failing(env="Cartpole-v1"), tmp_path, executor=RayStacks())
    assert contents(tmp_path) == {}


def test_a_stack_that_ends_its_process_again_and_again_is_named(cluster, tmp_path, monkeypatch):
    def ends(*_):  # before it has said where it is
        os._exit(1)

    ends.__module__ = "__main__"  # sent as code
    monkeypatch.setattr("per_tutorial.distributed.studies._train", ends)
    stacks = RayStacks()
    wrong = "trains wrong.seeds-0-1 crashed 3 times, most recently on a node that it did not name"
    with pytest.raises(ClusterError, match=wrong):
        run_study(failing(), tmp_path, executor=stacks)
    assert stacks.lost == 0 and contents(tmp_path) == {}


def test_too_few_resources_are_named_at_once(cluster, tmp_path):
    with pytest.raises(ClusterError, match="needs 1 CPU and 1 GPU: .* has 3 CPU and 0 GPU"):
        run_study(failing(device="cuda"), tmp_path, executor=RayStacks())


# What a node finds in place of the package: first nothing, then another version
OTHER = """
import importlib.abc, importlib.machinery, pathlib, sys

class Other(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name == "per_tutorial":
            if not (pathlib.Path(__file__).parent / "another version").exists():
                raise ModuleNotFoundError("No module named 'per_tutorial'", name=name)
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def exec_module(self, module):
        module.__version__ = "0.0.1"

sys.meta_path.insert(0, Other())
"""


def test_a_node_with_another_package_is_named(cluster, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(OTHER, encoding="utf-8")
    node = cluster.add(1, env_vars={"PYTHONPATH": str(tmp_path)})
    messages = (
        "lacks per_tutorial .No module named",
        "must have per_tutorial .* as this process has, got 0.0.1",
    )
    for message in messages:
        with pytest.raises(ClusterError, match=f"ray: node 127.0.0.1 .* {message}"):
            with connected(cluster.address):
                pass
        (tmp_path / "another version").touch()
    cluster.kill(node)
