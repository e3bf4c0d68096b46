"""What "auto" means on this machine: the precision, and whether updates are compiled.

The choice replaces "auto" in the settings before anything is made with them. Files hold the choice,
never "auto", so a continued training keeps it.
"""

import importlib.util
import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from per_tutorial.dqn.config import AUTO, DQNConfig
from per_tutorial.dqn.environments import env_spec
from per_tutorial.dqn.networks import SMALLEST_FRAME, Inputs, QNetwork

BENCHMARK_BATCH = 32  # a larger one hardly changes which precision is faster
BENCHMARK_ROUNDS = 3
CLEAR = 1.5  # times as fast: no further round is needed
SLOWER = 1.05  # times as slow: worth reporting
# From this many updates, compiling saves more time than it takes: 10 to 28 s on two busy cores. It
# saved 0.2 to 0.35 ms per update of one 128-128 network, and 2 to 3 ms from pixels.
ENOUGH_UPDATES, ENOUGH_FROM_PIXELS = 80_000, 10_000


class Choice(NamedTuple):
    """Settings without "auto", and one line per choice: what was chosen, and why."""

    config: DQNConfig
    lines: list[str]


def choose(
    config: DQNConfig, observation_shape: Sequence[int], actions: int, runs: int = 1
) -> Choice:
    """Replace "auto" with what suits this machine.

    The precision is found by timing a network of these sizes in both, and whether code can be
    compiled by compiling some. The answers are cached until the process ends.
    """
    lines = []
    if config.precision == AUTO:
        float32, bfloat16 = precision_seconds(config, observation_shape, actions, runs)
        faster = bfloat16 < float32
        ratio = float32 / bfloat16 if faster else bfloat16 / float32
        chosen, other = ("bfloat16", "float32") if faster else ("float32", "bfloat16")
        lines.append(f"precision: {chosen}, {ratio:.1f} times as fast as {other} here")
        config = config.replace(precision=chosen)
    if config.compiled == AUTO:
        against = _reason_against_compiling(config, observation_shape)
        updates = f"for {_updates(config):,} updates"
        lines.append(f"compiled: no, {against}" if against else f"compiled: yes, {updates}")
        config = config.replace(compiled=against is None)
    return Choice(config, lines)


def precision_seconds(
    config: DQNConfig, observation_shape: Sequence[int], actions: int, runs: int = 1
) -> tuple[float, float]:
    """Seconds of a forward and a backward pass in float32 and in bfloat16, on the device."""
    return _precision_seconds(
        env_spec(config.env).network_inputs(observation_shape),
        actions,
        config.hidden,
        runs,
        min(config.batch_size, BENCHMARK_BATCH),
        config.device,
        torch.get_num_threads(),
    )


def slow_precision(config: DQNConfig) -> str | None:
    """A warning if these settings ask for bfloat16 and it is slower here; else None."""
    if config.precision != "bfloat16":
        return None
    environments = env_spec(config.env).module().evaluation_environments(config, [0])
    environments.close()
    float32, bfloat16 = precision_seconds(
        config, environments.observation_shape, environments.actions
    )
    if bfloat16 <= SLOWER * float32:
        return None
    return (
        f"precision: bfloat16 takes {bfloat16 / float32:.1f} times as long as float32 here; "
        "it is kept because the settings ask for it"
    )


@cache
def _precision_seconds(
    inputs: Inputs,
    actions: int,
    hidden: tuple[int, ...],
    runs: int,
    batch: int,
    device: str,
    threads: int,
) -> tuple[float, float]:
    shape, kind = ((inputs,), torch.float32) if isinstance(inputs, int) else (inputs, torch.uint8)
    observations = torch.zeros((runs, batch, *shape), dtype=kind, device=device)
    networks = [
        QNetwork(inputs, actions, hidden, range(runs), bfloat16=each).to(device)
        for each in (False, True)
    ]
    best = [float("inf"), float("inf")]
    for count in range(1 + BENCHMARK_ROUNDS):  # in turns, after a warm-up that doesn't count
        for number, network in enumerate(networks):
            try:
                seconds = _forward_and_back(network, observations)
            except RuntimeError:  # the device doesn't have this precision
                continue
            if count:
                best[number] = min(best[number], seconds)
        if count and max(best) > CLEAR * min(best):
            break
    return best[0], best[1]


def _forward_and_back(network: QNetwork, observations: torch.Tensor) -> float:
    start = time.perf_counter()
    q_values = network(observations)
    gradients = torch.autograd.grad(q_values.sum(), list(network.parameters()))
    gradients[0].sum().item()  # waits until the device has finished
    return time.perf_counter() - start


def _updates(config: DQNConfig) -> int:
    """How many updates a training makes."""
    return max(0, config.steps - config.learning_starts) // config.update_every


def _reason_against_compiling(config: DQNConfig, observation_shape: Sequence[int]) -> str | None:
    # The networks for MinAtar's boards are as small as those for vectors.
    pixels = env_spec(config.env).frames and observation_shape[-1] >= SMALLEST_FRAME
    enough = ENOUGH_FROM_PIXELS if pixels else ENOUGH_UPDATES
    if _updates(config) < enough:
        return f"it takes longer than it would save in {_updates(config):,} updates"
    return why_not_compiled(config.device)


@cache
def why_not_compiled(device: str) -> str | None:
    """Why code cannot be compiled for this device here, in a few words; None if it can."""
    kind = torch.device(device).type
    if kind == "cpu":
        usual = {"win32": "cl", "darwin": "clang++"}.get(sys.platform, "g++")
        if shutil.which(os.environ.get("CXX", usual)) is None:
            return "there is no C++ compiler"
        if not Path(sysconfig.get_path("include"), "Python.h").is_file():
            return "there is no Python.h, which the C++ compiler needs"
    elif kind != "cuda":
        return f"compiling on {kind!r} is untested"
    elif importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    try:
        compiled = torch.compile(lambda numbers: 2 * numbers + 1)
        compiled(torch.ones(8, device=device))
    except Exception as error:  # depends on what is missing or too old
        return f"a test compilation failed ({type(error).__name__})"
    return None
