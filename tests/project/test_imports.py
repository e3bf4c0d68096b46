"""An import changes nothing in the process, whatever module it is of."""

import os
import pkgutil
import subprocess
import sys

import pytest

import per_tutorial
from per_tutorial.common.lazy import EXTRAS

# What other packages change when they are imported is not ours, so they come first.
OTHERS = {module for modules in EXTRAS.values() for module in modules} - {"ray"} | {
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    "moviepy.video.io.ImageSequenceClip",
    "torch.utils.tensorboard",
}
CODE = """
import contextlib, os, random, signal, sys, warnings
from importlib import import_module

others, ours = (names.split() for names in sys.argv[1:])
for name in others:
    with contextlib.suppress(ImportError), contextlib.redirect_stdout(None):
        import_module(name)
import matplotlib, numpy, torch

torch.set_num_threads(2)

def state():
    return {
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "torch": (torch.get_default_dtype(), torch.is_grad_enabled()),
        "os.environ": dict(os.environ),
        "warnings": list(warnings.filters),
        "random": random.getstate(),
        "numpy.random": repr(numpy.random.get_state()),
        "torch.random": torch.random.get_rng_state().tolist(),
        "numpy": numpy.geterr(),
        "rcParams": dict(matplotlib.rcParams),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
    }

before = state()
for name in ours:
    with contextlib.suppress(ImportError):  # its extra is not installed
        import_module(name)
    after = state()
    for what in before:
        if before[what] != after[what]:
            print(name, what)
    before = after
"""


@pytest.mark.slow
def test_an_import_changes_nothing_in_the_process():
    found = pkgutil.walk_packages(per_tutorial.__path__, "per_tutorial.", onerror=lambda _: None)
    ours = [module.name for module in found if not module.name.endswith("__main__")]
    assert len(ours) > 80
    hidden = ("OMP_NUM_THREADS", "SDL_VIDEODRIVER", "SDL_AUDIODRIVER", "PYGAME_HIDE_SUPPORT_PROMPT")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-c", CODE, " ".join(sorted(OTHERS)), " ".join(ours)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
