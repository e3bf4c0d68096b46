"""Random lives of replay buffers, each beside its naive twin: after every call the two must agree.

A life is a random kind of buffer and a hundred random calls: add, extend, sample, update, cut,
copies of all sorts on which it goes on, saving and loading, and calls that are refused and must
change nothing.
"""

import copy
import pickle
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attacks.twins import DISCOUNT, EPSILON, NaiveBuffer, NaiveProportional, NaiveRank, normalized
from per_tutorial.replay import (
    FrameStorage,
    ProportionalSampler,
    RankBasedSampler,
    Replay,
    TransitionStorage,
    UniformSampler,
)

COUNT = 10_000_000
CALLS = 100  # of a life
STACK, SIDE = 3, 2  # of frames


class Mismatch(Exception):
    """Buffer and twin do not agree."""


class Life:
    """A buffer and its twins, one for each run.

    Attributes:
        elements: transitions added, drawn and updated so far.
    """

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.rng, self.folder = rng, folder
        self.capacity = rng.choice([1, 2, 3, 5, 8, 13, 21, 40])
        self.frames = rng.random() < 0.25
        self.runs = rng.choice([None, 1, 2, 3])
        self.environments = rng.randint(1, min(3, self.capacity)) if self.frames else 1
        self.n_step = rng.randint(1, min(4, self.capacity))
        self.kind = rng.choice(["uniform", "proportional", "rank"])
        self.normalize = rng.choice(["batch", "buffer", "none"])
        self.sort_every = rng.choice([1, 3, 10, self.capacity])
        self.seeds = [rng.randrange(2**63) for _ in range(self.runs or 1)]
        self.elements = 0
        self.step = 0
        self.drawn: tuple[list[list[int]], np.ndarray] | None = None
        self.buffer = self.make(self.seeds)
        self.twins = [self._twin(int(state)) for state in self.buffer.sampler.state["streams"]]
        # The frames that each environment of each run has shown, the newest last
        self.shown = [[[self._frame()] for _ in range(self.environments)] for _ in self.seeds]

    def __str__(self) -> str:
        return (
            f"{self.kind}, capacity {self.capacity}, runs {self.runs}, n_step {self.n_step}, "
            f"normalize {self.normalize}, sort_every {self.sort_every}, "
            f"{f'frames of {self.environments} environments' if self.frames else 'transitions'}"
        )

    def make(self, seeds: list[int]) -> Replay:
        options: dict[str, Any] = {"n_step": self.n_step, "discount": DISCOUNT}
        runs = self.runs or 1
        if self.frames:
            shape = (STACK, SIDE, SIDE)
            storage: Any = FrameStorage(
                self.capacity, shape, runs, environments=self.environments, **options
            )
        else:
            storage = TransitionStorage(self.capacity, 2, runs, **options)
        sampler: Any = UniformSampler(self.capacity, seeds)
        if self.kind == "proportional":
            sampler = ProportionalSampler(
                self.capacity, seeds, alpha=1.0, priority_epsilon=EPSILON, normalize=self.normalize
            )
        elif self.kind == "rank":
            sampler = RankBasedSampler(
                self.capacity, seeds, normalize=self.normalize, sort_every=self.sort_every
            )
        return Replay(storage, sampler, self.runs)

    def _twin(self, stream: int) -> NaiveBuffer:
        facts = (self.capacity, self.n_step, stream, self.environments)
        if self.kind == "rank":
            return NaiveRank(*facts, sort_every=self.sort_every)
        return {"uniform": NaiveBuffer, "proportional": NaiveProportional}[self.kind](*facts)

    # ------------------------------------------------------------ calls

    def one_call(self) -> str:
        """Do something at random with both; returns what."""
        calls = [
            (self.add, 6), (self.extend, 0 if self.frames else 2), (self.sample, 6),
            (self.update, 5), (self.cut, 0.5), (self.save_and_load, 0.4), (self.copy, 0.6),
            (self.refused, 1), (self.compare, 0.5),
        ]  # fmt: skip
        call = self.rng.choices([each for each, _ in calls], [weight for _, weight in calls])[0]
        call()
        self._agree(
            "transitions added", self.buffer.storage.added, [one.added for one in self.twins]
        )
        return call.__name__

    def add(self) -> None:
        """One step of all runs, or of those that are valid."""
        valid = None
        if self.frames:
            steps = [
                [self._frame_step(run, k) for k in range(self.environments)] for run in self._all
            ]
        else:
            steps = [[self._step()] for _ in self._all]
            if self.runs is not None and self.rng.random() < 0.3:
                valid = np.array([self.rng.random() < 0.6 for _ in self._all])
        fields = [
            np.array([[step[field] for step in row] for row in steps])
            for field in range(len(steps[0][0]))
        ]
        if not self.frames:
            fields = [field[:, 0] for field in fields]
        self.buffer.add(*self._of_runs(fields), **({} if valid is None else {"valid": valid}))
        for run in self._all:
            if valid is None or valid[run]:
                for step in steps[run]:
                    self.twins[run].add(step)
                    self.elements += 1

    def extend(self) -> None:
        length = self.rng.choice([0, 1, 2, 7, self.capacity, 2 * self.capacity + 1, 100])
        steps = [[self._step() for _ in range(length)] for _ in self._all]
        runs = len(self.seeds)
        shapes = [(runs, length, 2), (runs, length), (runs, length), (runs, length, 2)]
        shapes += [(runs, length), (runs, length)]
        types = [float, int, float, float, bool, bool]
        fields = [
            np.array([[step[field] for step in row] for row in steps], types[field]).reshape(shape)
            for field, shape in enumerate(shapes)
        ]
        self.buffer.extend(*self._of_runs(fields))
        for twin, row in zip(self.twins, steps, strict=True):
            for step in row:
                twin.add(step)
        self.elements += length * runs

    def sample(self) -> None:
        size = min(twin.size for twin in self.twins)
        if not size:
            return
        batch_size, beta = self.rng.randint(1, min(size, 32)), self.rng.choice([0.0, 0.4, 1.0])
        batch = self.buffer.sample(batch_size, beta)
        rows = [field[None] for field in batch] if self.runs is None else batch
        expected = [twin.sample(batch_size, beta) for twin in self.twins]
        self._agree("indices", rows[6], [numbers for numbers, _, _ in expected])
        kind = "none" if self.kind == "uniform" else self.normalize
        weights = [
            normalized(raw, twin.priorities(), kind, beta)
            for twin, (_, raw, _) in zip(self.twins, expected, strict=True)
        ]
        self._agree("weights", rows[5], weights, 1e-10)
        fields = (rows[0], rows[1], rows[2], rows[3], rows[4], rows[7])
        for number, field in enumerate(fields):
            self._agree(
                ("observation", "action", "reward", "next observation", "terminated", "steps")[
                    number
                ],
                field,
                [[window[number] for window in windows] for _, _, windows in expected],
            )
        self.drawn = [numbers for numbers, _, _ in expected], batch.indices
        self.elements += batch_size * len(self.seeds)

    def update(self) -> None:
        """Update the minibatch drawn last, some of which may have been overwritten meanwhile."""
        if self.drawn is None:
            return
        numbers, indices = self.drawn
        errors = [[self.rng.randint(-800, 800) / 8 for _ in row] for row in numbers]
        given = np.array(errors)
        self.buffer.update_priorities(indices, given[0] if self.runs is None else given)
        for twin, row, error in zip(self.twins, numbers, errors, strict=True):
            twin.update(row, error)
        self.elements += given.size

    def cut(self) -> None:
        self.buffer.truncate_episodes()
        for twin in self.twins:
            twin.cut()
        if self.frames and self.twins[0].added:
            self.shown = [[[self._frame()] for _ in row] for row in self.shown]

    def save_and_load(self) -> None:
        path = self.folder / "buffer.npz"
        self.buffer.save(path)
        loaded = self.make([seed + 1 for seed in self.seeds])
        loaded.load(path)
        self._same_state("loaded", loaded)
        if self.rng.random() < 0.7:
            self.buffer = loaded

    def copy(self) -> None:
        """Go on with a copy, or with the original while the copy lives on."""
        way = self.rng.choice(["deepcopy", "pickle", "state"])
        if way == "deepcopy":
            made = copy.deepcopy(self.buffer)
        elif way == "pickle":
            made = pickle.loads(pickle.dumps(self.buffer))
        else:
            made = self.make([seed + 1 for seed in self.seeds])
            made.restore(self.buffer.state)
        self._same_state(way, made)
        left, self.buffer = self.rng.sample([self.buffer, made], 2)
        # What is done to the one that is left must not be seen in the other.
        before = _bits(self.buffer)
        for array in _arrays(left):
            array[...] = np.zeros((), array.dtype)
        if _bits(self.buffer) != before:
            raise Mismatch(f"{way}: the two share memory")

    def refused(self) -> None:
        """A wrong call is refused, and changes nothing."""
        before, buffer = _bits(self.buffer), self.buffer
        added = int(buffer.storage.added.min())
        indices = (
            np.full((len(self.seeds), 1), added) if self.runs is not None else np.array([added])
        )
        wrong = [
            lambda: buffer.update_priorities(indices, np.ones(indices.shape)),
            lambda: buffer.update_priorities(indices * 0 - 1, np.ones(indices.shape)),
            lambda: buffer.update_priorities(indices * 0, np.full(indices.shape, np.nan)),
            lambda: buffer.sample(len(buffer) + 1),
            lambda: buffer.sample(0),
            lambda: buffer.add(0, 0, 0, 0, 0),
            lambda: buffer.restore({}),
            lambda: buffer.load(self.folder / "nothing"),
        ]
        try:
            self.rng.choice(wrong)()
        except (ValueError, IndexError, TypeError, FileNotFoundError):
            pass
        else:
            raise Mismatch("a wrong call was accepted")
        if _bits(buffer) != before:
            raise Mismatch("a refused call has changed the buffer")

    def compare(self) -> None:
        """All that is stored, and all probabilities."""
        found = np.atleast_2d(self.buffer.probabilities)
        for run, twin in enumerate(self.twins):
            priorities = twin.priorities()
            total = sum(priorities.values())
            expected = [0.0] * self.capacity
            for number, priority in priorities.items():
                expected[number % self.capacity] = priority / total
            self._agree("probabilities", found[run], expected, 1e-12)
            if priorities:
                slots = np.zeros((len(self.seeds), len(priorities)), dtype=np.int64)
                slots[run] = [number % self.capacity for number in priorities]
                if not all(one.added for one in self.twins):
                    continue
                rows, _ = self.buffer.storage.n_step_transitions(slots)
                windows = [twin.window(number) for number in priorities]
                self._agree(
                    "stored observations", rows["observation"][run], [w[0] for w in windows]
                )
                self._agree("stored rewards", rows["reward"][run], [w[2] for w in windows])

    # ------------------------------------------------------------ what is added

    @property
    def _all(self) -> range:
        return range(len(self.seeds))

    def _step(self) -> tuple:
        self.step += 1
        rng, k = self.rng, self.step % 2**20
        return (
            (float(k), float(-k)),
            rng.randrange(-3, 99),
            rng.randrange(-800, 800) / 8,
            (float(k + 1), float(-k)),
            rng.random() < 0.1,
            rng.random() < 0.1,
        )

    def _frame(self) -> tuple:
        self.step += 1
        numbers = [self.step % 251, self.step // 251 % 251, self.step % 7, 1]
        return tuple(map(tuple, np.array(numbers).reshape(SIDE, SIDE).tolist()))

    def _frame_step(self, run: int, environment: int) -> tuple:
        frames = self.shown[run][environment]
        observation = self._stacked(frames)
        frames.append(self._frame())
        next_observation = self._stacked(frames)
        terminated, truncated = self.rng.random() < 0.15, self.rng.random() < 0.1
        if terminated or truncated:
            self.shown[run][environment] = [self._frame()]
        reward = self.rng.randrange(-800, 800) / 8
        return observation, self.rng.randrange(6), reward, next_observation, terminated, truncated

    @staticmethod
    def _stacked(frames: list[tuple]) -> tuple:
        """The newest frames; those before the episode began are black."""
        black = ((0,) * SIDE,) * SIDE
        return tuple([*[black] * STACK, *frames][-STACK:])

    def _of_runs(self, fields: list[np.ndarray]) -> list[np.ndarray]:
        if self.frames:
            fields = [field.astype(np.uint8) if field.ndim > 2 else field for field in fields]
        return fields if self.runs is not None else [field[0] for field in fields]

    # ------------------------------------------------------------ comparisons

    def _agree(self, name: str, found: Any, expected: Any, tolerance: float = 0.0) -> None:
        found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
        if found.shape != expected.shape or not np.allclose(found, expected, tolerance, tolerance):
            raise Mismatch(f"{name}: {found.ravel()[:8]}, the twin has {expected.ravel()[:8]}")

    def _same_state(self, name: str, other: Replay) -> None:
        if _bits(other) != _bits(self.buffer):
            raise Mismatch(f"{name}: it is another one")


def _bits(buffer: Replay) -> dict[str, tuple]:
    return {name: (each.dtype, each.shape, each.tobytes()) for name, each in buffer.state.items()}


def _arrays(buffer: Replay) -> list[np.ndarray]:
    """All arrays of both parts, and of what these are made of."""
    found: list[np.ndarray] = []
    seen: set[int] = set()

    def look(value: Any) -> None:
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            if value.flags.writeable:
                found.append(value)
        elif isinstance(value, dict):
            list(map(look, value.values()))
        elif isinstance(value, tuple):
            list(map(look, value))
        elif type(value).__module__.startswith("per_tutorial"):
            look(vars(value))

    look(buffer)
    return found


def attack(count: int = COUNT, seed: int = 0, *, log: Callable[[str], object] = print) -> list[str]:
    """Lives until they come to ``count`` elements; returns the mismatches."""
    findings: list[str] = []
    elements = lives = 0
    with tempfile.TemporaryDirectory() as place:
        while elements < count and len(findings) < 20:
            life = Life(random.Random(f"{seed}/{lives}"), Path(place))
            done = []
            try:
                for _ in range(CALLS):
                    done.append(life.one_call())
            except Exception as error:
                told = f"{type(error).__name__}: {error}"
                calls = ", ".join(done[-5:])
                findings.append(f"life {lives} of seed {seed}: {life}\n    after {calls}: {told}")
            elements += max(life.elements, 1)
            lives += 1
    log(f"operations: {elements} elements in {lives} lives, {len(findings)} mismatches")
    return findings
