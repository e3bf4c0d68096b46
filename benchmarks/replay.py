"""Replay speed: prioritised and uniform replay beside every peer, and beside what memory allows.

    make bench ARGS=replay

Work: full buffers of N transitions, α = 0.6, β = 0.4, every transition with a TD error of its own.
A step is what an agent does at each of its steps: one transition is added, B are sampled, and
(prioritised) the same B get new TD errors. The buffers of one capacity and kind have a process of
their own, with one thread. In a round every contestant works for a block of fixed time, in turns,
and its median time in the block counts; ratios are taken within a round (`benchmarks/harness.py`).
What each is given and returns is in `benchmarks/buffers.py`.
"""

import gc
import itertools
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np
import torch

from benchmarks.buffers import CONTESTANTS, filled, transitions
from benchmarks.harness import alternate, machine

ROWS = {"4 floats": ((4,), np.float32), "Atari frames": ((4, 84, 84), np.uint8)}


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    sizes: tuple = (10**4, 10**5, 10**6)
    batches: tuple = (32, 256, 1024)
    atari_size: int = 10**4
    rounds: int = 11
    block: float = 0.03  # seconds that a contestant works in each round
    alone: bool = True  # each capacity and kind in a process of its own


QUICK = Plan(sizes=(10**3, 10**4), atari_size=300, rounds=2, block=0.005, alone=False)


def step_of(buffer, prioritized, columns, td_errors, seconds):
    """The median µs of a step: add one transition, sample, update what was drawn.

    Args:
        columns: transitions, added in turn.
        td_errors: (n, B), used in turn; B are drawn.
        seconds: how long it is repeated; at least three times.
    """
    transition = itertools.cycle(list(zip(*columns, strict=True)))
    errors = itertools.cycle(td_errors)
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        fields, new = next(transition), next(errors)
        start = time.perf_counter()
        buffer.add(*fields)
        batch = buffer.sample(td_errors.shape[1])
        if prioritized:
            buffer.update(buffer.indices(batch), new)
        times.append(time.perf_counter() - start)
    # The median: what other processes take from us now and then does not count.
    return round(1e6 * statistics.median(times), 3)


def measure(quick):
    """``cells`` is a list of settings with their ``times``, {contestant: [µs in each round]}."""
    plan = QUICK if quick else Plan()
    torch.set_num_threads(1)  # nobody uses more
    cells = []
    work = [("4 floats", size) for size in plan.sizes] + [("Atari frames", plan.atari_size)]
    for (rows, size), kind in itertools.product(work, ("prioritized", "uniform")):
        print(f"{kind} replay, {rows}, N = {size:,}", flush=True)
        if plan.alone:  # what earlier buffers left of the heap would slow down some contestants
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                cells += pool.submit(measure_buffers, plan, rows, size, kind).result()
        else:
            cells += measure_buffers(plan, rows, size, kind)
    packages = dict.fromkeys(each.distribution for each in CONTESTANTS)
    return {
        "machine": machine(["torch", "numba", *packages]),
        "rounds": plan.rounds,
        "cells": cells,
    }


def measure_buffers(plan, rows, size, kind):
    """The cells of one kind of rows, one capacity and one kind of replay."""
    shape, dtype = ROWS[rows]
    prioritized = kind == "prioritized"
    buffers = {
        each.name: filled(each, size, shape, dtype, prioritized)
        for each in CONTESTANTS
        if kind in each.kinds and each.installed()
    }
    cells = []
    torch.set_num_threads(1)
    gc.collect()
    gc.disable()

    random = np.random.default_rng(0)
    columns = transitions(np.arange(256), shape, dtype)
    for batch in plan.batches:
        if batch <= size:
            errors = random.standard_normal((64, batch), dtype=np.float32)
            turns = {
                name: partial(step_of, buffer, prioritized, columns, errors, plan.block)
                for name, buffer in buffers.items()
            }
            setting = {"rows": rows, "kind": kind, "size": size, "batch": batch}
            times = alternate(turns, plan.rounds)
            cells.append({**setting, "operation": "step", "times": times})
    gc.enable()
    return cells
