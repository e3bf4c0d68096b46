"""Interrupts at random moments of a tight loop: a call has either happened or not happened.

A timer's signal raises KeyboardInterrupt wherever Python is then, as Ctrl-C and a notebook's stop
button do. Afterwards the buffer's state must be that of a twin, which nobody interrupts, before or
after the call.
"""

import copy
import random
import signal
from collections.abc import Callable

import numpy as np

from attacks.readers import BUFFERS, ENVIRONMENTS, SHAPE, bits, next_stacks
from per_tutorial.replay import FrameStorage, Replay

COUNT = 10_000
LONGEST_DELAY = 400e-6  # seconds; several calls fit in

Call = Callable[[Replay], object]


def attack(count: int = COUNT, seed: int = 0, *, log: Callable[[str], object] = print) -> list[str]:
    """Interrupt ``count`` times, each kind of buffer as often; returns what had come apart."""
    findings = []
    kinds = list(BUFFERS)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    inside = 0
    try:
        for number, kind in enumerate(kinds):
            share = count // len(kinds) + (number < count % len(kinds))
            found, caught = _interrupted(kind, share, random.Random(f"{seed}/{kind}"))
            findings += found
            inside += caught
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    log(f"interrupts: {count}, {inside} of them inside a call, {len(findings)} findings")
    return findings


def _interrupted(kind: str, count: int, rng: random.Random) -> tuple[list[str], int]:
    """The findings, and how many interrupts came inside a call."""
    findings: list[str] = []
    inside = 0
    buffer = BUFFERS[kind]()
    calls = _calls(buffer, rng)
    for call in calls:  # fill, and compile all: an interrupt meanwhile would harm numba itself
        call(buffer)
    twin = copy.deepcopy(buffer)
    for _ in range(count):
        begun = finished = 0
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, LONGEST_DELAY))
            while True:
                call = calls[begun % len(calls)]
                begun += 1
                call(buffer)
                finished += 1
        except KeyboardInterrupt:
            pass
        except Exception as error:
            signal.setitimer(signal.ITIMER_REAL, 0)
            findings.append(f"{kind}: {calls[(begun - 1) % len(calls)].__name__}: {error!r}")
            buffer = copy.deepcopy(twin)
            continue
        inside += begun > finished
        for number in range(finished):
            calls[number % len(calls)](twin)
        state = bits(buffer)
        if state != bits(twin):
            name = calls[finished % len(calls)].__name__
            calls[finished % len(calls)](twin)
            after = bits(twin)
            if state != after:
                changed = [each for each in after if state[each] != after[each]]
                findings.append(
                    f"{kind}: interrupted in {name}: neither before nor after: {changed}"
                )
                buffer = copy.deepcopy(twin)
        calls = calls[rng.randrange(len(calls)) :] + calls[: rng.randrange(len(calls))]
        calls = calls if len(calls) > 20 else _calls(buffer, rng)
    return findings, inside


def _calls(buffer: Replay, rng: random.Random) -> list[Call]:
    """Calls that do the same to a buffer and to its twin, whatever happened before."""
    made = [_an_add, _a_sample, _an_update] * 16 + [_a_cut] * 3
    made += [] if isinstance(buffer.storage, FrameStorage) else [_an_extend] * 6
    return [one(buffer, rng) for one in made]


def _fields(buffer: Replay, rng: random.Random, length: tuple[int, ...] = ()) -> list[np.ndarray]:
    runs, frames = buffer.runs or 1, isinstance(buffer.storage, FrameStorage)
    axes = (runs, ENVIRONMENTS) if frames else (runs,)
    shape = SHAPE if frames else (2,)
    kind = np.uint8 if frames else np.float32
    numbers = np.random.default_rng(rng.randrange(2**32))
    full = (*axes, *length)
    made = [
        numbers.integers(0, 200, (*full, *shape)).astype(kind),
        numbers.integers(0, 5, full),
    ]
    made += [numbers.normal(size=full), made[0] + 1]
    made += [numbers.random(full) < 0.1, numbers.random(full) < 0.1]
    return made if buffer.runs else [each[0] for each in made]


def _an_add(buffer: Replay, rng: random.Random) -> Call:
    values = _fields(buffer, rng)

    def add(one: Replay) -> None:
        one.add(*values)

    def add_frames(one: Replay) -> None:
        seen, following = next_stacks(one, values[0][:, :, -1:])
        one.add(seen, *values[1:3], following, *values[4:])

    return add_frames if isinstance(buffer.storage, FrameStorage) else add


def _an_extend(buffer: Replay, rng: random.Random) -> Call:
    values = _fields(buffer, rng, (rng.choice([1, 4, 30]),))

    def extend(one: Replay) -> None:
        one.extend(*values)

    return extend


def _a_sample(buffer: Replay, rng: random.Random) -> Call:
    size = rng.randint(1, 3)

    def sample(one: Replay) -> None:
        if len(one) >= size:
            one.sample(size)

    return sample


def _an_update(buffer: Replay, rng: random.Random) -> Call:
    back, value = rng.randint(0, 12), rng.choice([0.0, 0.5, -3.0, 40.0])
    shape = (buffer.runs, 2) if buffer.runs else (2,)

    def update(one: Replay) -> None:
        newest = one.storage.added.min() - 1
        if newest >= 0:
            indices = np.full(shape, max(0, newest - back))
            one.update_priorities(indices, np.full(shape, value))

    return update


def _a_cut(buffer: Replay, rng: random.Random) -> Call:
    def cut(one: Replay) -> None:
        one.truncate_episodes()

    return cut
