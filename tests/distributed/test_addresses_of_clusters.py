"""Errors about a cluster's address, without a cluster; Ray is imported only if needed."""

import socket
import subprocess
import sys

import pytest
from platforms import posix_only

from per_tutorial.distributed import ClusterError, connected

pytest.importorskip("ray")
pytestmark = [posix_only, pytest.mark.slow]


@pytest.mark.parametrize("address", ["somewhere", "http://127.0.0.1:80", "127.0.0.1:"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError, match="ray: must be local, auto or HOST:PORT, got"):
        with connected(address):
            pass


def test_a_wrong_address_is_named_at_once():
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
    options = "study hundred-runs --fast --quiet --processes 1 --out".split()
    command = [sys.executable, "-c", script, *options, str(tmp_path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)
