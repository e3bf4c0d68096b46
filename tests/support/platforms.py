"""Tests that only some systems can run."""

import os
import sys

import pytest

# Windows has no permissions, pipes, sockets, signals and locks of this kind, and writes paths with
# \.
posix_only = pytest.mark.skipif(os.name != "posix", reason="what is tested is POSIX")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="what is tested is Linux")
