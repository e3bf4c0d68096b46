"""One cluster in this machine for all cases here, which `test_on_a_cluster.py` runs in a process of
its own.

Processes take seconds to start, so cases share the head, and add a node only to lose it. Every wait
ends.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

CPUS = 3  # of the head
CASE_SECONDS = 240
WAITING = 900  # seconds, in which all is over
# The head learns within seconds that a node is gone; one that is only slow stays.
QUICK = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000}
SMALL = {
    "node_ip_address": "127.0.0.1",
    "include_dashboard": False,
    "include_log_monitor": False,
    "no_monitor": True,
    "object_store_memory": 120 * 2**20,
    # Of agents that a node has beside its main process, and that `without_agents` leaves out
    "metrics_agent_port": 1025,
    "metrics_export_port": 1026,
    "runtime_env_agent_port": 1027,
}


def pytest_runtest_logreport(report):
    """Say at once what was wrong: the process may be killed before pytest says it."""
    if report.failed:
        print(report.longreprtext, flush=True)


@pytest.fixture(autouse=True)
def _limit():
    """No case takes longer."""

    def end(*_):
        raise TimeoutError(f"the case has taken {CASE_SECONDS} s")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(CASE_SECONDS)
    yield
    signal.alarm(0)


def without_agents():
    """Nodes without the agents for the dashboard and for environments, which none of this needs.

    Each takes seconds to start; a node waits for them, and gives up if that takes long. It also
    gives up when one ends: in their place something waits.
    """
    from ray._private import services

    start = services.start_ray_process
    agents = ("--dashboard_agent_command", "--runtime_env_agent_command")

    def start_without(command, process_type, *args, **options):
        if process_type == "raylet":
            command = [one for one in command if not one.startswith(agents)]
            command += [f"{each}=sleep {WAITING}" for each in agents]
            command += ["--dashboard_agent_listen_port=1028"]
        return start(command, process_type, *args, **options)

    services.start_ray_process = start_without


class Nodes:
    """A cluster of one node, and the nodes that a case adds to it."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._blocks = []

    @property
    def address(self):
        return self._cluster.address

    def add(self, cpus, **options):
        """Another node."""
        return self._cluster.add_node(num_cpus=cpus, **SMALL, **options)

    def kill(self, node):
        """End a node as a power cut would."""
        self._cluster.remove_node(node, allow_graceful=False)

    def block(self, cpus):
        """Take CPUs of the head, so that work goes to another node; `release` gives them back."""
        import ray

        from per_tutorial.distributed.cluster import on_node

        class Block:
            def ready(self):
                return True

        here = on_node(ray.get_runtime_context().get_node_id())
        block = ray.remote(num_cpus=cpus)(Block).options(scheduling_strategy=here).remote()
        ray.get(block.ready.remote(), timeout=60)
        self._blocks.append(block)

    def release(self):
        import ray

        while self._blocks:
            ray.kill(self._blocks.pop())


@pytest.fixture(scope="session")
def head():
    import ray
    from ray.cluster_utils import Cluster

    without_agents()
    arguments = {"num_cpus": CPUS, "_system_config": QUICK, **SMALL}
    cluster = Cluster(initialize_head=True, connect=False, head_node_args=arguments)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield Nodes(cluster)
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def cluster(head):
    """The cluster, whose head is free."""
    yield head
    head.release()


def _ancestors(pid):
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])
        except OSError:
            return
        yield pid


@pytest.fixture
def ray_processes():
    """The processes of the cluster that Ray has given a name, (name) -> process ids.

    Others may have a cluster on this machine: these are the descendants of this process.
    """

    def found(name):
        pids = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                named = path.read_bytes().startswith(f"ray::{name}".encode())
            except OSError:  # it has ended
                continue
            if named and os.getpid() in _ancestors(int(path.parent.name)):
                pids.append(int(path.parent.name))
        return pids

    return found


@pytest.fixture
def eventually():
    """Wait for something to be true."""

    def wait(condition, seconds=100):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.05)

    return wait


@pytest.fixture
def meanwhile():
    """Run a function in a thread, and see its error at the end."""
    from concurrent.futures import ThreadPoolExecutor

    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor())
        futures = []
        yield lambda function: futures.append(pool.submit(function)) or futures[-1]
        for future in futures:
            future.result(timeout=60)
