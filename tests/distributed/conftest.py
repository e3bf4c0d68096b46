"""A Ray cluster of several nodes in this machine, shared by the tests of a worker."""

import contextlib
import os
import socket
import time

import pytest

# This machine's own address may lead nowhere; nodes must not take it in place of 127.0.0.1.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Mark what uses the fixture `cluster`."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)


def small():
    """The settings of a node that starts little beside what it needs, and waits for little of that."""
    ports = ("metrics_agent", "metrics_export", "runtime_env_agent", "dashboard_agent_listen")
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in ports]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        numbers = [each.getsockname()[1] for each in sockets]
    tell_port(numbers[-1])
    return {
        "node_ip_address": "127.0.0.1",
        "include_dashboard": False,
        "include_log_monitor": False,
        "no_monitor": True,
        "object_store_memory": 120 * 2**20,
        **{f"{name}_port": number for name, number in zip(ports, numbers, strict=True)},
    }


def tell_port(number):
    """Let the next node know the port of its dashboard's agent, for which it would wait 15 seconds.

    Ray tells it the other ports. Then it gives up, and on a busy machine the agent takes longer.
    """
    from ray._private import services

    start = getattr(services.start_ray_process, "original", services.start_ray_process)

    def told(command, process_type, *args, **options):
        if process_type == "raylet":
            command = [*command, f"--dashboard_agent_listen_port={number}"]
        return start(command, process_type, *args, **options)

    told.original = start
    services.start_ray_process = told


def patiently(start):
    """Start a node; on a busy machine a part of it may give up on another one."""
    for _ in range(3):
        try:
            return start()
        except Exception as error:  # Ray raises no other
            if "timed out during startup" not in str(error):
                raise
    return start()


class Nodes:
    """A cluster whose head takes no work, and the nodes that a test adds to it."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.added = []

    @property
    def address(self):
        return self._cluster.address

    def add(self, cpus, **options):
        node = patiently(lambda: self._cluster.add_node(num_cpus=cpus, **small(), **options))
        self.added.append(node)
        return node

    def kill(self, node):
        """End a node as a power cut would."""
        self.added.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="session")
def head():
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = patiently(
        lambda: Cluster(
            initialize_head=True, connect=False, head_node_args={"num_cpus": 0, **small()}
        )
    )
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield Nodes(cluster)
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def cluster(head):
    """The cluster, without any node but its head."""
    yield head
    for node in list(head.added):
        head.kill(node)


@pytest.fixture
def eventually():
    """Wait for something to be true."""

    def wait(condition, seconds=300):
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
