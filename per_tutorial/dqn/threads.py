"""The number of threads that PyTorch works with."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.env_specs import env_spec

F = TypeVar("F", bound=Callable[..., Any])

THREADS = torch.get_num_threads()  # what PyTorch chose, one per core


def one_thread_if_small(function: F) -> F:
    """Let a function of a `DQNConfig`, or of an agent, use one thread if its network is small.

    That is a network without convolutions on a CPU. A second thread hardly helps it, and each waits
    for the other while another program has its core: 1,500 steps of CartPole (two cores, hidden
    layers of 64) took 2.3 s with one thread and 2.9 s with two on an idle machine, and 18 s and
    over 300 s on a busy one. Networks for frames are up to 1.6 times as fast with two.

    Who set `OMP_NUM_THREADS`, or called ``torch.set_num_threads`` after importing this, gets that.
    """

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        given = (getattr(each, "config", each) for each in (*args, *kwargs.values()))
        config = next((each for each in given if isinstance(each, DQNConfig)), None)
        small = config and config.device.startswith("cpu") and not env_spec(config.env).frames
        threads = torch.get_num_threads()
        if "OMP_NUM_THREADS" in os.environ or threads != THREADS or not small:
            return function(*args, **kwargs)
        torch.set_num_threads(1)
        try:
            return function(*args, **kwargs)
        finally:
            torch.set_num_threads(threads)

    return limited  # type: ignore[return-value]
