"""The number of threads that PyTorch works with."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.env_specs import env_spec

THREADS = torch.get_num_threads()  # what PyTorch chose, one per core


@contextmanager
def one_thread_if_small(config: DQNConfig) -> Iterator[None]:
    """One thread inside the block, if the network of these settings is small.

    That is a network without convolutions on a CPU. A second thread hardly helps it, and each waits
    for the other while another program has its core: 1,500 steps of CartPole (two cores, hidden
    layers of 64) took 2.3 s with one thread and 2.9 s with two on an idle machine, and 18 s and
    over 300 s on a busy one. Networks for frames are up to 1.6 times as fast with two.

    Who set `OMP_NUM_THREADS`, or called ``torch.set_num_threads`` after importing this, gets that.
    """
    threads = torch.get_num_threads()
    small = config.device.startswith("cpu") and not env_spec(config.env).frames
    chosen = "OMP_NUM_THREADS" in os.environ or threads != THREADS
    if small and not chosen:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
