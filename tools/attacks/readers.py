"""The kinds of files that the package reads: an honest one, its spoiling and its use."""

import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attacks import mutations
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner
from per_tutorial.dqn.training import train
from per_tutorial.experiments.cliffwalk import measurements
from per_tutorial.experiments.cliffwalk.figures import ratio_table
from per_tutorial.experiments.studies import runner
from per_tutorial.experiments.studies.results import load_study, report
from per_tutorial.experiments.studies.study import Study
from per_tutorial.replay import (
    FrameStorage,
    PrioritizedReplayBuffer,
    ProportionalSampler,
    RankBasedReplayBuffer,
    RankBasedSampler,
    Replay,
    ReplayBuffer,
)

DOCUMENTED = (ValueError, FileNotFoundError)


class Reader(NamedTuple):
    """A kind of file.

    Attributes:
        name: of the kind, for the findings.
        file: its name in the folder of the attack.
        make: makes an honest one in a folder, and returns its content.
        spoil: changes the content.
        read: reads and uses it. Yields True if it was taken, False if it was refused as documented,
            and in words what should not be.
    """

    name: str
    file: str
    make: Callable[[Path], bytes]
    spoil: Callable[[bytes, random.Random], mutations.Mutation]
    read: Callable[[Path], Iterator[bool | str]]


# ---------------------------------------------------------------- replay buffers

RUNS, SHAPE, ENVIRONMENTS = 3, (2, 3, 3), 2


def frame_buffer(sampler: type) -> Replay:
    storage = FrameStorage(12, SHAPE, 2, environments=ENVIRONMENTS, n_step=3)
    return Replay(storage, sampler(12, [5, 6]), 2)


BUFFERS: dict[str, Callable[[], Replay]] = {
    "uniform": partial(ReplayBuffer, 9, 2, seed=1, n_step=2),
    "proportional": partial(PrioritizedReplayBuffer, 9, 2, seed=1),
    "proportional stack": partial(
        PrioritizedReplayBuffer, 9, 2, seed=1, runs=RUNS, normalize="buffer", n_step=3
    ),
    "rank": partial(RankBasedReplayBuffer, 9, 2, seed=1, normalize="buffer"),
    "rank stack": partial(RankBasedReplayBuffer, 9, 2, seed=1, runs=RUNS, sort_every=4, n_step=2),
    "frames": partial(frame_buffer, ProportionalSampler),
    "frames by rank": partial(frame_buffer, RankBasedSampler),
}


def next_stacks(buffer: Replay, newest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The stacks of the step after the last one that was added, if it shows these newest frames.

    An episode goes on with the last next stack, and a new one begins with a black one.
    """
    len(buffer)  # finishes a call that was interrupted
    storage = buffer.storage
    seen = np.zeros((*storage.leading_axes, *SHAPE), dtype=np.uint8)
    if storage.added[0]:
        numbers = storage.added[:, None] + np.arange(-storage.environments, 0)
        rows, _ = storage.n_step_transitions(numbers % storage.capacity)
        running = ~(rows["terminated"] | rows["truncated"])
        seen[running] = rows["next_observation"][running]
    return seen, np.concatenate([seen[:, :, 1:], newest], axis=2)


def live(buffer: Replay, steps: int, batch: int = 3) -> Replay:
    """Add, sample and update a few times."""
    runs = buffer.runs or 1
    for step in range(steps):
        if isinstance(buffer.storage, FrameStorage):
            axes = (runs, ENVIRONMENTS)
            newest = np.full((*axes, 1, *SHAPE[1:]), step + 1, dtype=np.uint8)
            seen, following = next_stacks(buffer, newest)
            fields = [seen, np.ones(axes, int), np.ones(axes), following]
        else:
            axes = (runs,)
            fields = [
                np.full((runs, 2), float(step)),
                np.full(runs, step),
                np.ones(runs),
                np.ones((runs, 2)),
            ]
        fields += [np.full(axes, step % 5 == 3), np.full(axes, step % 7 == 5)]
        buffer.add(*(fields if buffer.runs else [field[0] for field in fields]))
        if len(buffer) >= batch:
            drawn = buffer.sample(batch)
            buffer.update_priorities(drawn.indices, np.sin(drawn.indices + 1.0))
    return buffer


def make_buffer(kind: str, folder: Path) -> bytes:
    """The file of a buffer that has wrapped around, or ("rank") of one that is partly full."""
    path = folder / "honest"
    live(BUFFERS[kind](), 6 if kind == "rank" else 14).save(path)
    return path.read_bytes()


def bits(buffer: Replay) -> dict[str, tuple]:
    return {name: (each.dtype, each.shape, each.tobytes()) for name, each in buffer.state.items()}


def read_buffer(kind: str, path: Path) -> Iterator[bool | str]:
    buffer = live(BUFFERS[kind](), 4)
    before = bits(buffer)
    try:
        buffer.load(path)
    except DOCUMENTED as error:
        yield False
        if bits(buffer) != before:
            yield f"refused ({error}), but the buffer has changed"
        if "path" not in str(error):
            yield f"the error names no file: {error}"
        live(buffer, 2)
        return
    yield True
    yield from _misbehaviour(buffer)
    loaded = bits(buffer)
    other = BUFFERS[kind]()
    copy = path.with_name("copy")
    buffer.save(copy)
    other.load(copy)
    if bits(other) != loaded:
        yield "what was loaded is another one when it is saved and loaded again"
    live(buffer, 16)
    yield from _misbehaviour(buffer)
    buffer.storage.truncate_episodes()
    live(buffer, 2)


def _misbehaviour(buffer: Replay) -> Iterator[str]:
    probabilities = np.atleast_2d(buffer.probabilities)
    sizes = buffer.storage.ring.sizes
    totals = probabilities.sum(axis=1)
    if not np.allclose(totals[sizes > 0], 1) or (probabilities < 0).any():
        yield f"the probabilities have the sums {totals}"
    for size in (1, min(4, len(buffer))):
        if size > len(buffer):
            return
        batch = buffer.sample(size, 1.0)
        if not (np.isfinite(batch.weights).all() and (batch.weights > 0).all()):
            yield f"weights {batch.weights.ravel()[:4]}"
        added = buffer.storage.added.reshape(-1, 1)
        numbers = batch.indices.reshape(len(added), -1)
        if (
            (numbers < 0).any()
            or (numbers >= added).any()
            or (numbers < added - buffer.capacity).any()
        ):
            yield f"indices {numbers.ravel()[:4]} of {added.ravel()} added"
        buffer.update_priorities(batch.indices, np.cos(batch.indices))


# ---------------------------------------------------------------- checkpoints

SEEDS = [3, 4]
CONFIG = DQNConfig(
    steps=60,
    hidden=(8,),
    batch_size=4,
    learning_starts=20,
    max_episode_steps=11,
    update_every=4,
    capacity=30,
    epsilon_steps=40,
    sampler="proportional",
)
CONFIGS = {
    "proportional": CONFIG,
    "rank": CONFIG.replace(sampler="rank", dueling=True, n_step=3, normalize="buffer"),
    "vectorised": CONFIG.replace(sampler="uniform", vectorization="vector_entry_point"),
}


class Stop(Exception):
    """The training is interrupted here."""


class Interrupted(Checkpoints):
    """A training that ends right after its first checkpoint."""

    def save_if_due(self, training):
        super().save_if_due(training)
        if any(self.folder.iterdir()):
            raise Stop


class Watched(Checkpoints):
    """Says what the restoring came to."""

    said: tuple[bool | str, ...] = ()

    def restore(self, training):
        before = {name: array.tobytes() for name, array in training.state.items()}
        try:
            super().restore(training)
        except DOCUMENTED:
            self.said = (False,)
            after = {name: array.tobytes() for name, array in training.state.items()}
            changed = [name for name in before if before[name] != after.get(name)]
            if changed:
                self.said = (False, f"refused, but changed: {', '.join(changed[:5])}")
            raise
        self.said = (True,)


def make_checkpoint(name: str, folder: Path) -> bytes:
    place = folder / "made"
    try:
        train(CONFIGS[name], SEEDS, checkpoints=Interrupted(place, every=40))
    except Stop:
        pass
    (path,) = place.glob("*.npz")
    content = path.read_bytes()
    shutil.rmtree(place)
    return content


def read_checkpoint(name: str, path: Path) -> Iterator[bool | str]:
    folder = path.with_name("checkpoints")
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / f"step-{40:012d}.npz")
    watched = Watched(folder, every=10)
    try:
        history = train(CONFIGS[name], SEEDS, checkpoints=watched)
        history.save(path.with_name("history"))
    except (
        ValueError
    ) as error:  # also where networks of 1e38 or NaN were taken: their TD errors say so
        if watched.said[:1] == (True,) and not str(error).startswith(("td_errors:", "reward:")):
            yield f"taken, then {error}"
    finally:
        shutil.rmtree(folder)
    yield from watched.said


# ---------------------------------------------------------------- agents

OTHER = CONFIG.replace(env="MountainCar-v0", hidden=(8, 4), dueling=True)


AGENTS = {
    "flat": (OTHER, (2,), 3),
    "from pixels": (OTHER.replace(env="ALE/Pong-v5", frame_size=17, hidden=(6,)), (4, 17, 17), 6),
}


def make_agent(kind: str, folder: Path) -> bytes:
    path = folder / "honest"
    DQNLearner(*AGENTS[kind], SEEDS).save(path)
    return path.read_bytes()


def read_agent(path: Path) -> Iterator[bool | str]:
    try:
        agent = DQNLearner.load(path)
    except DOCUMENTED as error:
        yield False
        if "path" not in str(error):
            yield f"the error names no file: {error}"
        return
    yield True
    runs = len(agent.seeds)
    kind = np.uint8 if len(agent.observation_shape) == 3 else np.float32
    observations = np.zeros((runs, 1, *agent.observation_shape), kind)
    q_values = agent.q_values(observations)
    if q_values.shape != (runs, 1, agent.actions):
        yield f"Q has the shape {q_values.shape}"
    if not 0 <= agent.policy(0)(observations[0, 0]) < agent.actions:
        yield "the action is none"
    agent.save(path.with_name("copy"))
    DQNLearner.load(path.with_name("copy"))


# ---------------------------------------------------------------- histories


def make_history(file: str, folder: Path) -> bytes:
    path = folder / file
    train(CONFIG, SEEDS).save(path)
    return path.read_bytes()


def read_history(path: Path) -> Iterator[bool | str]:
    try:
        history = History.load(path)
    except DOCUMENTED as error:
        yield False
        if "path" not in str(error):
            yield f"the error names no file: {error}"
        return
    yield True
    history.learning_curve(np.array([0, 30, 60]))
    for run in range(len(history.seeds)):
        history.returns(run)
    for name in history.measures:
        if history.measure(name).shape != (len(history.log_steps), len(history.seeds)):
            yield f"{name} has the shape {history.measure(name).shape}"
    copy = path.with_name("copy")
    history.save(copy)
    History.load(copy)


# ---------------------------------------------------------------- results of studies

STUDY = Study(
    name="spoiled",
    question="Which is better?",
    arms={"uniform": CONFIG.replace(sampler="uniform"), "per": CONFIG},
    comparisons=(("per", "uniform"),),
    metric="score over training",
    failed_below=12,
    seeds=range(2),
    stack=2,
)


def make_study(file: str, folder: Path) -> bytes:
    """A study's collected file, or that of one stack; the others stay in ``folder``."""
    place = folder / "study"
    if not place.exists():
        runner.run_study(STUDY, place)
    return (place / file).read_bytes()


def read_study(path: Path) -> Iterator[bool | str]:
    folder = path.with_name("alone")
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / "spoiled.csv.gz")
    try:
        results = load_study("spoiled", folder)
        yield True
        report(results)
        for arm in results.arms:
            results.curve(arm)
    except DOCUMENTED:
        yield False
    finally:
        shutil.rmtree(folder)


def read_part(file: str, path: Path) -> Iterator[bool | str]:
    """One file of a finished study is another one; the rest is honest."""
    folder = path.with_name("part")
    shutil.copytree(path.with_name("study"), folder)
    shutil.copy(path, folder / file)
    if file != "spoiled.csv.gz":
        (folder / "spoiled.csv.gz").unlink()
    before = sorted(each.read_bytes() for each in folder.rglob("*.*"))
    try:
        results = runner.run_study(STUDY, folder)
        yield True
        report(results)
    except DOCUMENTED:
        yield False
        if sorted(each.read_bytes() for each in folder.rglob("*.*"))[: len(before)] != before:
            yield "refused, but the folder has changed"
    finally:
        shutil.rmtree(folder)


# ---------------------------------------------------------------- the Blind Cliffwalk


def make_walks(folder: Path) -> bytes:
    path = folder / "honest.csv"
    measurements.measure_walks(path, longest=5)
    return path.read_bytes()


def read_walks(path: Path) -> Iterator[bool | str]:
    try:
        walks = measurements.load_results(path)
    except DOCUMENTED as error:
        yield False
        if "path" not in str(error):
            yield f"the error names no file: {error}"
        return
    yield True
    measurements.updates_by_point(walks)
    ratio_table(walks)


PART = "spoiled/per.seeds-0-1.csv"
READERS = [
    *(
        Reader(
            f"buffer, {kind}", f"{kind}.npz", partial(make_buffer, kind),
            partial(mutations.spoil_npz, heading="settings"), partial(read_buffer, kind),
        )
        for kind in BUFFERS
    ),
    *(
        Reader(
            f"checkpoint, {name}", f"{name}.checkpoint", partial(make_checkpoint, name),
            partial(mutations.spoil_npz, heading="made_with"), partial(read_checkpoint, name),
        )
        for name in CONFIGS
    ),
    *(
        Reader(
            f"agent, {kind}", f"{kind}.safetensors", partial(make_agent, kind),
            mutations.spoil_agent, read_agent,
        )
        for kind in AGENTS
    ),
    *(
        Reader(file, file, partial(make_history, file), mutations.spoil_table, read_history)
        for file in ("history.csv", "history.csv.gz")
    ),
    Reader(
        "study", "study.csv.gz", partial(make_study, "spoiled.csv.gz"), mutations.spoil_table,
        read_study,
    ),
    Reader(
        "study, continued", "whole", partial(make_study, "spoiled.csv.gz"), mutations.spoil_table,
        partial(read_part, "spoiled.csv.gz"),
    ),
    Reader(
        "stack", "stack", partial(make_study, PART), mutations.spoil_table, partial(read_part, PART)
    ),
    Reader("walks", "walks.csv", make_walks, mutations.spoil_table, read_walks),
]  # fmt: skip
