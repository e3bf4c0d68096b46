"""Runs a study: trains the missing stacks in one process or several; a stopped study can resume.

`python -m per_tutorial study NAME` trains a study stack by stack, for minutes or hours. Every
finished stack is a file of its own. When all are there they are merged into one file, which
notebooks read (`results`).
"""

import dataclasses
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import whole_number
from per_tutorial.common.provenance import processor, versions
from per_tutorial.common.tables import write_table
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.experiments.studies.results import COLUMNS, StudyResults, load_study, read_results
from per_tutorial.experiments.studies.sb3.settings import LIBRARY, SB3Config, library_version
from per_tutorial.experiments.studies.study import (
    EVALUATION_EPISODES,
    GRID_POINTS,
    SCORE_WINDOW,
    RunSettings,
    Study,
)

if TYPE_CHECKING:
    from per_tutorial.dqn.learner import DQNLearner

Job = tuple[Study, str, list[int], Path]  # one stack: its arm, its seeds and its file
# Does the jobs in any order and yields the (arm, seeds) of each once its file is written
Executor = Callable[[list[Job]], Iterator[tuple[str, list[int]]]]


class TrainedStack(NamedTuple):
    """The results of one stack of runs."""

    heading: dict[str, Any]
    rows: list[tuple[Any, ...]]  # of `COLUMNS`
    agent: "DQNLearner | None"  # None unless the study keeps its agents


def run_study(  # noqa: C901  (checks first, then one loop over stacks)
    study: Study,
    folder: str | os.PathLike[str],
    *,
    processes: int = 1,
    executor: Executor | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> StudyResults:
    """Train the stacks that are missing from `folder`; returns the `StudyResults`.

    Args:
        study: a `Study`.
        folder: where the results go: ``folder/NAME/*.csv``, one file per stack, and in the end
            ``folder/NAME.csv.gz``. It is created if missing. With ``study.checkpoint_every``, the
            agents of a stack go to a ``*.safetensors`` file beside its own (`DQNLearner.load`), and
            its checkpoints are kept until it is done. The heading of the stack then says whether it
            was "continued" from one; if so, its "seconds" count the last session alone.
        processes: stacks trained at the same time, each in a process with one thread (on a CPU, two
            such processes do more than one with two threads). 1 trains in this process.
        executor: trains the missing stacks instead of these processes, for example on other
            machines. It must leave the same files.
        progress: called with the environment steps done and their total, at the start and after
            each stack.

    Raises:
        ValueError: ``folder`` holds results of this study made with other settings, or a damaged
            file; nothing has been trained then. Or the study asks SB3 for checkpoints, bugs or
            curves. Or a stack's checkpoints, read when its turn comes, were made with other
            settings or are all damaged.
        ImportError: the study trains agents of Stable-Baselines3, which is missing or too old.
    """
    from per_tutorial.dqn.learner import check_device

    processes = whole_number("processes", processes)
    if executor is None:  # otherwise the devices may be on other machines
        for device in {config.device for config in study.arms.values()}:
            check_device(device)
    if any(isinstance(config, SB3Config) for config in study.arms.values()):
        library_version()
        if study.checkpoint_every is not None or study.bugs or study.curves:
            raise ValueError("study: runs of SB3 have no checkpoints, bugs or curves")
    parts = Path(folder) / study.name
    parts.mkdir(parents=True, exist_ok=True)
    whole = Path(folder) / f"{study.name}.csv.gz"
    if whole.exists():  # perhaps without its parts
        for heading in read_results(whole, "stacks")[0]["stacks"]:
            if heading["arm"] in study.arms:
                wanted = _identity(study, heading["arm"], heading["seeds"])
                _refuse_other_settings(whole, heading, wanted)
    jobs = []
    for arm, seeds in study.stacks:
        path = _stack_path(parts, arm, seeds)
        if path.exists():
            heading, _ = read_results(path, "settings", "seconds")
            _refuse_other_settings(path, heading, _identity(study, arm, seeds))
        else:
            jobs.append((study, arm, seeds, path))
    total = sum(config.steps * len(study.seeds) for config in study.arms.values())
    done = total - sum(study.arms[arm].steps * len(seeds) for _, arm, seeds, _ in jobs)
    progress(done, total)
    finished = _finished(jobs, processes) if executor is None else executor(jobs)
    for arm, seeds in finished:
        done += study.arms[arm].steps * len(seeds)
        progress(done, total)
    _collect(study, parts, whole)
    return load_study(study.name, folder)


def _finished(jobs: list[Job], processes: int) -> Iterator[tuple[str, list[int]]]:
    """Do the jobs and yield the (arm, seeds) of each as it finishes."""
    if processes == 1:
        for job in jobs:
            yield _train_stack(*job)
        return
    context = get_context("spawn")  # because a forked PyTorch may hang
    lifeline, end = context.Pipe(duplex=False)
    with ProcessPoolExecutor(processes, context, _start_worker, (lifeline,)) as pool:
        futures = [pool.submit(_train_stack, *job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:  # an error or Ctrl-C: without this, the pool finishes running jobs
            end.close()
            raise


def _start_worker(lifeline: Connection) -> None:
    import torch

    # Threads of several processes would wait for one another on the same cores.
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent acts
    threading.Thread(target=_exit_with, args=(lifeline,), daemon=True).start()


def _exit_with(lifeline: Connection) -> None:
    """End this process as soon as the parent closes its end of the pipe, or is killed."""
    with suppress(EOFError):
        lifeline.recv()
    os._exit(1)


def _train_stack(study: Study, arm: str, seeds: list[int], path: Path) -> tuple[str, list[int]]:
    """Train one stack, write its rows, and return its (arm, seeds)."""
    folder = None if study.checkpoint_every is None else path.with_suffix("")
    heading, rows, agent = train_stack(study, arm, seeds, folder)
    if agent is not None:
        agent.save(path.with_suffix(".safetensors"))
    write_table(path, heading, COLUMNS, rows)  # last: this file marks the stack as done
    if folder is not None:
        shutil.rmtree(folder)
    return arm, seeds


def train_stack(
    study: Study, arm: str, seeds: list[int], checkpoints_in: Path | None
) -> TrainedStack:
    """Train one stack; writes only its checkpoints, to ``checkpoints_in``."""
    heading, checkpoints = _identity(study, arm, seeds), None
    if study.checkpoint_every is not None:
        heading["continued"] = False
    if study.checkpoint_every is not None and checkpoints_in is not None:
        heading["continued"] = any(checkpoints_in.glob("*.npz"))
        checkpoints = Checkpoints(checkpoints_in, every=study.checkpoint_every)
    start = time.perf_counter()
    history, greedy = _train(study, arm, seeds, checkpoints)
    rows = [(arm, *row) for row in _measurements(study, history, greedy)]
    heading |= {
        "seconds": round(time.perf_counter() - start, 1),
        "processor": processor(),
        **versions("torch", "numpy", "numba", "gymnasium"),
    }
    return TrainedStack(heading, rows, None if study.checkpoint_every is None else history.agent)


def _train(
    study: Study, arm: str, seeds: list[int], checkpoints: Checkpoints | None
) -> tuple[History, NDArray[np.float64]]:
    """The `History` of one stack, and the mean greedy return of its runs, (runs,)."""
    from per_tutorial.dqn.training import evaluate, train

    config, bug = study.arms[arm], study.bugs.get(arm)
    if isinstance(config, SB3Config):
        from per_tutorial.experiments.studies.sb3 import training as sb3_training

        return sb3_training.train(config, seeds, EVALUATION_EPISODES)
    if bug is not None:  # `conformance.bugs` plants them in a plain buffer, not in this package's
        raise ValueError(
            f"study: {study.name!r} cannot run again here: {bug!r} is in its history only"
        )
    history = train(config, seeds, checkpoints=checkpoints)
    agent = history.agent
    assert agent is not None, "a training leaves its agent"
    return history, evaluate(agent, EVALUATION_EPISODES).mean(axis=1)


def _stack_path(parts: Path, arm: str, seeds: list[int]) -> Path:
    return parts / f"{arm}.seeds-{seeds[0]}-{seeds[-1]}.csv"


def _measurements(
    study: Study, history: History, greedy: NDArray[np.float64]
) -> Iterator[tuple[int, str, int, str]]:
    """The rows that are kept of a stack of runs: (seed, measure, at, value)."""
    # Unique, because a training may have fewer steps than there are points.
    grid = np.unique(np.linspace(0, history.config.steps, GRID_POINTS + 1).astype(int))[1:]
    last_logged = np.searchsorted(history.log_steps, grid, side="right") - 1
    curves = {"score": history.learning_curve(grid, study.score_window)}
    curves |= {name: history.measure(name)[last_logged] for name in study.curves}
    for run, seed in enumerate(history.seeds):
        for measure, curve in curves.items():
            for step, value in zip(grid.tolist(), curve[:, run].tolist(), strict=True):
                if value == value:
                    yield seed, measure, step, f"{value:.5g}"
        if study.episodes is not None:
            _, returns = history.returns(run)
            finished = min(len(returns), study.episodes)
            for count in range(study.score_window, finished + 1, SCORE_WINDOW):
                score = returns[count - study.score_window : count].mean()
                yield seed, "score after episodes", count, f"{score:.5g}"
        yield seed, "greedy", history.config.steps, f"{greedy[run]:.5g}"


def _identity(study: Study, arm: str, seeds: list[int]) -> dict[str, Any]:
    """What must agree for a finished stack to count as done."""
    config = study.arms[arm]
    # SB3's agents depend on its version, so one study must not mix runs of two versions.
    library = {LIBRARY: library_version()} if isinstance(config, SB3Config) else {}
    return {
        "study": study.name,
        "arm": arm,
        "seeds": seeds,
        "episodes": study.episodes,
        "curves": list(study.curves),
        "exhibit": study.bugs.get(arm),
        "score_window": study.score_window,
        **library,
        "settings": _settings(config),
    }


def _settings(config: RunSettings) -> dict[str, Any]:
    """The fields of a `DQNConfig` or an `SB3Config`, as they come back from JSON."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def _refuse_other_settings(path: Path, heading: dict[str, Any], wanted: dict[str, Any]) -> None:
    def flat(heading: dict[str, Any]) -> dict[str, Any]:
        others = {name: heading[name] for name in heading if name in wanted and name != "settings"}
        return others | heading["settings"]

    # A setting that the file lacks is newer than the file; its default was used.
    kind = SB3Config if LIBRARY in wanted else DQNConfig
    defaults = {
        "curves": list(Study.curves),
        "exhibit": None,
        "score_window": SCORE_WINDOW,
        **_settings(kind()),
    }
    found, wanted = defaults | flat(heading), flat(wanted)
    differences = [
        f"{name} = {found.get(name)!r}, not {wanted.get(name)!r}"
        for name in found | wanted
        if name not in wanted or found.get(name) != wanted[name]
    ]
    if differences:
        raise ValueError(
            f"folder: {os.fspath(path)!r} was made with {'; '.join(differences)}; "
            "choose another folder or remove the file"
        )


def _collect(study: Study, parts: Path, path: Path) -> None:
    """Merge all stacks into one file."""
    headings: list[dict[str, Any]] = []
    rows: list[list[str]] = []
    for arm, seeds in study.stacks:
        part = _stack_path(parts, arm, seeds)
        heading, stack = read_results(part, "settings", "seconds")
        # Checkpoints are left if the process was killed just before it removed them.
        shutil.rmtree(part.with_suffix(""), ignore_errors=True)
        headings.append(heading)
        rows += stack
    facts = {
        "study": study.name,
        "question": study.question,
        "metric": study.metric,
        "failed_below": study.failed_below,
        "score_window": study.score_window,
        "comparisons": study.comparisons,
        "seconds": round(sum(heading["seconds"] for heading in headings), 1),
        "stacks": headings,
    }
    write_table(path, facts, COLUMNS, rows)
