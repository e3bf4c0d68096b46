"""Studies on a cluster: the same files as here, whatever is lost on the way."""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from platforms import posix_only
from small_study import CONFIG, STACKS, STUDY, contents, rows_of

from per_tutorial.experiments.runner import run_study
from per_tutorial.experiments.study import Study

pytest.importorskip("ray")
pytestmark = [posix_only, pytest.mark.slow]

LONG = dataclasses.replace(
    STUDY,
    name="long",
    arms={name: config.replace(steps=3000) for name, config in STUDY.arms.items()},
    seeds=range(2),
    checkpoint_every=250,
)


def ray_stacks(shared=None):
    from per_tutorial.distributed import RayStacks

    return RayStacks(shared)


def test_a_study_on_two_nodes_leaves_what_a_local_one_leaves(cluster, tmp_path):
    from per_tutorial.distributed import connected

    cluster.add(1), cluster.add(1)
    calls, stacks = [], ray_stacks()
    with connected(cluster.address) as nodes:
        assert len(nodes) == 3
        run_study(
            STUDY,
            tmp_path / "there",
            executor=stacks,
            progress=lambda done, total: calls.append((done, stacks.nodes_at_work)),
        )
        again = run_study(STUDY, tmp_path / "there", executor=stacks)  # nothing is left to do
    run_study(STUDY, tmp_path / "here")
    assert rows_of(tmp_path / "there" / "small.csv.gz") == rows_of(
        tmp_path / "here" / "small.csv.gz"
    )
    assert sorted(contents(tmp_path / "there")) == sorted(contents(tmp_path / "here"))
    assert sorted(contents(tmp_path / "there")) == [
        "small.csv.gz",
        *(f"small/{one}.csv" for one in STACKS),
    ]
    assert [done for done, _ in calls] == [0, 600, 1200, 1800, 2400]
    assert max(at_work for _, at_work in calls) == 2 and calls[-1][1] == 0
    assert again.seeds == list(STUDY.seeds)


def test_a_lost_node_costs_its_own_stack_which_goes_on_from_its_checkpoint(
    cluster, tmp_path, eventually, meanwhile
):
    first, second = cluster.add(1), cluster.add(1)
    shared, stacks = tmp_path / "shared", ray_stacks(tmp_path / "shared")

    def kill_one():
        # Both stacks are in the middle
        eventually(lambda: len({path.parent for path in shared.rglob("step-*.npz")}) == 2)
        cluster.kill(first)

    meanwhile(kill_one)
    facts = run_study(LONG, tmp_path / "there", executor=stacks).facts
    assert second in cluster.added and first not in cluster.added
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
    """The processes whose command line has a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in path.read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_a_killed_driver_continues_and_leaves_no_process(cluster, tmp_path, eventually):
    from per_tutorial.__main__ import main

    cluster.add(1)
    parts, out = tmp_path / "there" / f"{KILLED}-fast", ("--out", str(tmp_path / "there"))
    process = subprocess.Popen(command("--ray", cluster.address, *out), stderr=subprocess.PIPE)
    eventually(lambda: list(parts.glob("*.csv")) or process.poll() is not None, 240)
    assert process.poll() is None, process.stderr.read().decode()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    eventually(lambda: not running("ray::_train") and not running("ray::beta"))
    kept = contents(parts)
    assert kept
    main(command("--processes", "1", *out)[3:])
    assert contents(parts).items() >= kept.items()
    main(command("--processes", "1", "--out", str(tmp_path / "here"))[3:])
    name = f"{KILLED}-fast.csv.gz"
    assert rows_of(tmp_path / "there" / name) == rows_of(tmp_path / "here" / name)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
@pytest.mark.cluster
def test_a_local_cluster_ends_with_its_study_and_leaves_nothing(tmp_path):
    import tempfile

    # Short, since sockets are in it
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        out = tmp_path / "out"
        subprocess.run(
            command("--ray", "local", "--processes", "2", "--out", str(out)),
            env=os.environ | {"TMPDIR": folder},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        assert (out / f"{KILLED}-fast.csv.gz").exists()
        assert running(folder) == []
        assert not list(Path(folder).glob("ray-*"))


def failing(**changes):
    """A study of one arm that cannot be trained on a node."""
    arms = {"wrong": CONFIG.replace(**changes)}
    return Study("failing", "", arms, (), "greedy score", 0, seeds=range(2), stack=2)


def test_an_error_names_the_node_and_leaves_no_result(cluster, tmp_path):
    from per_tutorial.distributed import ClusterError

    cluster.add(1)
    wrong = "ray: wrong.seeds-0-1 failed on node 127.0.0.1 .*: no environment 'Cartpole-v1', did"
    with pytest.raises(ClusterError, match=wrong):
        run_study(failing(env="Cartpole-v1"), tmp_path, executor=ray_stacks())
    assert contents(tmp_path) == {}


def test_too_few_resources_are_named_at_once(cluster, tmp_path):
    from per_tutorial.distributed import ClusterError

    wrong = "no node can take a stack of wrong, which needs 1 CPU: node 127.0.0.1 .* has 0 CPU"
    with pytest.raises(ClusterError, match=wrong):
        run_study(failing(), tmp_path, executor=ray_stacks())
    cluster.add(1)
    with pytest.raises(ClusterError, match="needs 1 CPU and 1 GPU: .* has 1 CPU and 0 GPU"):
        run_study(failing(device="cuda"), tmp_path, executor=ray_stacks())


# What a node finds in place of the package
OTHERS = {
    "lacks per_tutorial .No module named": """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name == "per_tutorial":
            raise ModuleNotFoundError("No module named 'per_tutorial'", name=name)

sys.meta_path.insert(0, Nothing())
""",
    "must have per_tutorial .* as this process has, got 0.0.1": """
import sys, types

sys.modules["per_tutorial"] = types.ModuleType("per_tutorial")
sys.modules["per_tutorial"].__version__, sys.modules["per_tutorial"].__path__ = "0.0.1", []
""",
}


@pytest.mark.parametrize("message", OTHERS, ids=["no package", "another version"])
def test_a_node_with_another_package_is_named(message, cluster, tmp_path):
    from per_tutorial.distributed import ClusterError, connected

    (tmp_path / "sitecustomize.py").write_text(OTHERS[message], encoding="utf-8")
    cluster.add(1, env_vars={"PYTHONPATH": str(tmp_path)})
    with pytest.raises(ClusterError, match=f"ray: node 127.0.0.1 .* {message}"):
        with connected(cluster.address):
            pass


@pytest.mark.parametrize("address", ["somewhere", "http://127.0.0.1:80", "127.0.0.1:"])
def test_what_is_no_address_is_refused(address):
    from per_tutorial.distributed import connected

    with pytest.raises(ValueError, match="ray: must be local, auto or HOST:PORT, got"):
        with connected(address):
            pass


def test_a_wrong_address_is_named_at_once():
    from per_tutorial.distributed import ClusterError, connected

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"ray: nothing answers at '{address}'"):
            with connected(address):
                pass


def test_ray_is_not_imported_without_need(tmp_path):
    script = (
        "import sys; from per_tutorial.__main__ import main; main(sys.argv[1:]); "
        "sys.exit('ray' in sys.modules)"
    )
    options = command("--processes", "1", "--out", str(tmp_path))[3:]
    subprocess.run([sys.executable, "-c", script, *options], check=True, stdout=subprocess.DEVNULL)
