"""Connect to a Ray cluster, and check its nodes before any work is sent."""

import os
import shutil
import socket
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = __name__.partition(".")[0]
LOCAL = "local"
CONNECT_SECONDS = 10.0
STARTS = 3  # attempts to start a local cluster; Ray gives each half a minute
PROBE_SECONDS = 120.0  # a node starts a process for its answer, which may take long if it is busy


class ClusterError(OSError):
    """The cluster or a node is unusable, or work failed there; the message says where."""


class Node(NamedTuple):
    """A machine of the cluster that is alive."""

    id: str
    address: str
    resources: dict[str, float]  # total, in use or not

    @property
    def name(self) -> str:
        """The name of the node in error messages."""
        return f"node {self.address} ({self.id[:8]})"

    def has(self, needs: dict[str, float]) -> bool:
        """Whether it can run a task with these needs when it is idle."""
        return all(self.resources.get(name, 0) >= amount for name, amount in needs.items())


def first_line(error: object) -> str:
    """The first line of an error; Ray's errors are pages long."""
    return str(error).partition("\n")[0]


def import_ray() -> Any:
    """The module `ray`; an ImportError says how to install it."""
    # Otherwise Ray sends usage statistics to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Otherwise the workers of a local cluster run at low priority (nice 15).
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            f"Ray is missing: pip install '{PACKAGE}[ray]' ({error})", name="ray"
        ) from error
    return ray


@contextmanager
def connected(address: str, cpus: int | None = None) -> Iterator[list[Node]]:
    """Connect to a cluster, check its nodes, and disconnect at the end.

    A process that is already connected keeps its cluster and its connection.

    Args:
        address: "local" starts a cluster on this machine for the block; "auto" is the one that this
            machine belongs to; HOST:PORT is its head node. This machine must be a part of it (``ray
            start --address=HOST:PORT``).
        cpus: CPUs of a local cluster; None: all of this machine.

    Yields:
        The nodes.

    Raises:
        ImportError: Ray is missing.
        ValueError: the address is invalid.
        ClusterError: no cluster answers there or can be started, or a node lacks this package, has
            another version of it, or does not answer.
    """
    if address not in (LOCAL, "auto"):
        _check_answers(address)  # before Ray, which would keep trying for minutes
    ray = import_ray()
    if ray.is_initialized():
        check_nodes()
        yield nodes()
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    folder = None
    try:
        if address == LOCAL:
            # A folder to remove, because Ray leaves its sockets and logs behind.
            folder = tempfile.mkdtemp(prefix="ray-")
            quiet |= {"include_dashboard": False, "num_cpus": cpus, "_temp_dir": folder}
            _start_here(quiet)
        else:
            try:
                ray.init(address=address, **quiet)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise ClusterError(
                    f"ray: no cluster could be joined at {address!r} ({first_line(error)})"
                ) from error
        check_nodes()
        yield nodes()
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _start_here(options: dict[str, Any]) -> None:
    """Start a cluster on this machine, in several attempts if it is too busy.

    A node waits 15 s for the ports of its agents, which import a lot; no setting changes that.
    """
    ray = import_ray()
    for left in reversed(range(STARTS)):
        try:
            ray.init(address=LOCAL, _node_ip_address="127.0.0.1", **options)
            return
        except Exception as error:  # Ray raises nothing more specific
            ray.shutdown()
            if "timed out during startup" not in str(error) or not left:
                raise ClusterError(
                    "ray: no cluster could be started here; this machine may be too busy, since "
                    f"Ray gives its parts 15 s ({first_line(error)})"
                ) from error


def _check_answers(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or "/" in host:
        raise ValueError(f"ray: must be local, auto or HOST:PORT, got {address!r}")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"ray: nothing answers at {address!r} ({error})") from error
    if host in ("localhost", "127.0.0.1") and "ray" not in sys.modules:
        # Otherwise Ray replaces such a host by this machine's address.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    # One attempt, which takes half a minute if something other than Ray answers.
    os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")


def nodes() -> list[Node]:
    """The nodes that are alive now."""
    ray = import_ray()
    return [
        Node(one["NodeID"], one["NodeManagerAddress"], dict(one["Resources"]))
        for one in ray.nodes()
        if one["Alive"]
    ]


def on_node(node_id: str) -> Any:
    """The scheduling strategy for tasks and actors that must run on a node."""
    import_ray()
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node_id, soft=False)


def check_nodes() -> None:
    """Raise ClusterError unless every node has this process's version of this package."""
    ray = import_ray()

    # A nested function, so that Ray sends its code: a node may lack the package.
    def describe() -> tuple[str, int]:
        """The version of the package, and a checksum of its modules, on the node."""
        package = import_module(PACKAGE)
        checksum = 0
        for folder in package.__path__:
            for path in sorted(Path(folder).rglob("*.py")):
                checksum = zlib.crc32(path.read_bytes(), checksum)
        return package.__version__, checksum

    ask = ray.remote(num_cpus=0, max_retries=0)(describe)
    asked = {ask.options(scheduling_strategy=on_node(node.id)).remote(): node for node in nodes()}
    ours = describe()
    ray.wait(list(asked), num_returns=len(asked), timeout=PROBE_SECONDS)
    for answer, node in asked.items():
        try:
            theirs = ray.get(answer, timeout=0)
        except ray.exceptions.GetTimeoutError:
            raise ClusterError(
                f"ray: {node.name} does not answer within {PROBE_SECONDS:.0f} s"
            ) from None
        except ray.exceptions.RayTaskError as error:
            reason = first_line(error.cause)
            raise ClusterError(f"ray: {node.name} lacks {PACKAGE} ({reason})") from None
        except ray.exceptions.RayError:
            continue  # the node was lost meanwhile: it will get no work
        # In an editable installation, our files may have changed since.
        if theirs not in (ours, describe()):
            raise ClusterError(
                f"ray: {node.name} must have {PACKAGE} {_shown(ours)} as this process has, "
                f"got {_shown(theirs)}"
            )


def _shown(package: tuple[str, int]) -> str:
    return f"{package[0]} (checksum {package[1]:08x})"


def require_resources(needs: dict[str, float], purpose: str) -> None:
    """Raise ClusterError unless some node can run a task with these needs."""
    found = nodes()
    if not any(node.has(needs) for node in found):
        wanted = " and ".join(f"{amount:g} {name}" for name, amount in needs.items())
        there = "; ".join(
            f"{node.name} has "
            + " and ".join(f"{node.resources.get(name, 0):g} {name}" for name in needs)
            for node in found
        )
        raise ClusterError(f"ray: no node can take {purpose}, which needs {wanted}: {there}")
