"""What is promised of a cluster: tried in a process of its own, which ends with all that it has
started.

Ray's processes may hang or be left over, above all on a busy machine. So the cases of
`on_a_cluster/` have a time limit, are known by a mark in their environment, and are tried twice.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from importlib.util import find_spec
from pathlib import Path

import pytest

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
ray_only = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
pytestmark = [linux_only, ray_only, pytest.mark.slow]

CASES = Path(__file__).parent / "on_a_cluster"
SECONDS = 600
MARK = "PER_TUTORIAL_CLUSTER"


def marked(mark):
    """The processes with this mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}\0".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def end(mark):
    """Kill what has this mark."""
    deadline = time.monotonic() + 30
    while (left := marked(mark)) and time.monotonic() < deadline:
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
    assert not left


def run_cases(cases):
    """Run cases; returns the names of those that passed, and what pytest printed."""
    mark = uuid.uuid4().hex
    ray = {
        # Ray reads it when it is imported: nodes must not take this machine's address for
        # 127.0.0.1.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # workers do not come after all else that runs here
        "RAY_prestart_worker_first_driver": "0",  # no more processes than there is work for
    }
    command = [sys.executable, "-u", "-m", "pytest", "-v", "-p", "no:cacheprovider", *cases]
    # Short, since the names of sockets begin with it
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        printed = Path(folder) / "printed"
        try:
            with printed.open("wb") as file:
                process = subprocess.Popen(
                    command,
                    env=os.environ | ray | {MARK: mark, "TMPDIR": folder},
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                )
                try:
                    process.wait(SECONDS)
                except subprocess.TimeoutExpired:
                    pass
        finally:
            end(mark)
        text = printed.read_text(encoding="utf-8", errors="replace")
    return set(re.findall(r"::(test_\w+) PASSED", text)), text


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["studies", "apex"])
def test_whatever_is_lost_it_goes_on(name):
    path = CASES / f"{name}.py"
    wanted = set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    passed, text = run_cases([str(path)])
    if passed != wanted:
        again, more = run_cases([f"{path}::{case}" for case in sorted(wanted - passed)])
        passed, text = passed | again, text + more
    assert passed == wanted, text
