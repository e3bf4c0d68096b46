"""Runs a study: trains the missing parts in one process or several; a stopped study can resume.

`python -m per_tutorial study NAME` trains a study part by part, for minutes or hours. A part is
some runs of one arm; when it is finished it is a file of its own. When all are there they are
merged into one file, which notebooks read (`results`).
"""

import dataclasses
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import whole_number
from per_tutorial.common.files import require_settings, write_table
from per_tutorial.common.provenance import processor, versions
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.history import History
from per_tutorial.studies.results import COLUMNS, StudyResults, load_study, read_results
from per_tutorial.studies.study import EVALUATION_EPISODES, GRID_POINTS, SCORE_WINDOW, Study

Job = tuple[Study, str, list[int], Path]  # one part: its arm, its seeds and its file


def run_study(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    processes: int = 1,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> StudyResults:
    """Train the parts that are missing from `folder`; returns the `StudyResults`.

    Args:
        study: a `Study`.
        folder: where the results go: ``folder/NAME/*.csv``, one file per part, and in the end
            ``folder/NAME.csv.gz``. It is created if missing. With ``study.checkpoint_every``, the
            agents of a part go to a ``*.safetensors`` file beside its own (`DQNLearner.load`), and
            its checkpoints are kept until it is done. The heading of the part then says whether it
            was "continued" from one; if so, its "seconds" count the last session alone.
        processes: parts trained at the same time, each in a process with one thread (on a CPU, two
            such processes do more than one with two threads). 1 trains in this process.
        progress: called with the environment steps done and their total, at the start and after
            each part.

    Raises:
        ValueError: ``folder`` holds results of this study made with other settings, or a damaged
            file; nothing has been trained then. Or a part's checkpoints, read when its turn comes,
            were made with other settings or are all damaged.
    """
    from per_tutorial.dqn.learner import check_device

    processes = whole_number("processes", processes)
    for device in {config.device for config in study.arms.values()}:
        check_device(device)
    parts, whole = Path(folder) / study.name, Path(folder) / f"{study.name}.csv.gz"
    parts.mkdir(parents=True, exist_ok=True)
    if whole.exists():  # perhaps without its parts
        for heading in read_results(whole, "stacks")[0]["stacks"]:
            if heading["arm"] in study.arms:
                wanted = _identity(study, heading["arm"], heading["seeds"])
                _refuse_other_settings(whole, heading, wanted)
    jobs = []
    for arm, seeds in study.parts:
        path, wanted = _part_path(parts, arm, seeds), _identity(study, arm, seeds)
        if path.exists():
            heading, _ = read_results(path, "settings", "seconds")
            _refuse_other_settings(path, heading, wanted)
        else:
            jobs.append((study, arm, seeds, path))
    total = sum(config.steps * len(study.seeds) for config in study.arms.values())
    done = total - sum(study.arms[arm].steps * len(seeds) for _, arm, seeds, _ in jobs)
    progress(done, total)
    for arm, seeds in _finished(jobs, processes):
        done += study.arms[arm].steps * len(seeds)
        progress(done, total)
    _collect(study, parts, whole)
    return load_study(study.name, folder)


def _finished(jobs: list[Job], processes: int) -> Iterator[tuple[str, list[int]]]:
    """Do the jobs and yield the (arm, seeds) of each as it finishes."""
    if processes == 1:
        for job in jobs:
            yield _do(*job)
        return
    context = get_context("spawn")  # because a forked PyTorch may hang
    lifeline, end = context.Pipe(duplex=False)
    with ProcessPoolExecutor(processes, context, _start_worker, (lifeline,)) as pool:
        try:
            for future in as_completed([pool.submit(_do, *job) for job in jobs]):
                yield future.result()
        except BaseException:  # an error or Ctrl-C; a plain pool would finish its jobs
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


def _do(study: Study, arm: str, seeds: list[int], path: Path) -> tuple[str, list[int]]:
    """Train one part, write its files, and return its (arm, seeds)."""
    from per_tutorial.dqn.training import evaluate, train

    heading, checkpoints = _identity(study, arm, seeds), None
    folder = path.with_suffix("")
    if study.checkpoint_every is not None:
        heading["continued"] = any(folder.glob("*.npz"))
        checkpoints = Checkpoints(folder, every=study.checkpoint_every)
    start = time.perf_counter()
    history = train(study.arms[arm], seeds, checkpoints=checkpoints)
    if history.step < history.config.steps:  # stopped, in an interactive session
        raise KeyboardInterrupt
    agent = history.agent
    greedy = evaluate(agent, EVALUATION_EPISODES).mean(axis=1)
    heading |= {
        "seconds": round(time.perf_counter() - start, 1),
        "processor": processor(),
        **versions("torch", "numpy", "numba", "gymnasium"),
    }
    if checkpoints is not None:
        agent.save(path.with_suffix(".safetensors"))
    # Last, as this file marks the part as done
    rows = ((arm, *row) for row in _measurements(study, history, greedy))
    write_table(path, heading, COLUMNS, rows)
    if checkpoints is not None:
        rmtree(folder)
    return arm, seeds


def _part_path(parts: Path, arm: str, seeds: list[int]) -> Path:
    return parts / f"{arm}.seeds-{seeds[0]}-{seeds[-1]}.csv"


def _measurements(
    study: Study, history: History, greedy: NDArray[np.float64]
) -> Iterator[tuple[int, str, int, str]]:
    """The rows that are kept of a part: (seed, measure, at, value)."""
    # Unique, because a training may have fewer steps than there are points.
    grid = np.unique(np.linspace(0, history.config.steps, GRID_POINTS + 1).astype(int))[1:]
    last_logged = np.searchsorted(history.log_steps, grid, side="right") - 1
    curves = {"score": history.learning_curve(grid, SCORE_WINDOW)}
    curves |= {name: history.measure(name)[last_logged] for name in study.curves}
    for run, seed in enumerate(history.seeds):
        for measure, curve in curves.items():
            for step, value in zip(grid.tolist(), curve[:, run].tolist(), strict=True):
                if value == value:
                    yield seed, measure, step, f"{value:.5g}"
        if study.episodes is not None:
            _, returns = history.returns(run)
            finished = min(len(returns), study.episodes)
            for count in range(SCORE_WINDOW, finished + 1, SCORE_WINDOW):
                score = returns[count - SCORE_WINDOW : count].mean()
                yield seed, "score after episodes", count, f"{score:.5g}"
        yield seed, "greedy", history.config.steps, f"{greedy[run]:.5g}"


def _identity(study: Study, arm: str, seeds: list[int]) -> dict[str, Any]:
    """What must agree for a finished part to count as done, as it comes back from JSON."""
    identity = {
        "study": study.name,
        "arm": arm,
        "seeds": seeds,
        "episodes": study.episodes,
        "curves": study.curves,
        "settings": dataclasses.asdict(study.arms[arm]),
    }
    return json.loads(json.dumps(identity))


def _refuse_other_settings(path: Path, heading: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise a ValueError that names every difference."""
    own, saved = (facts | facts["settings"] | {"settings": {}} for facts in (wanted, heading))
    require_settings(f"folder: {str(path)!r}", own, saved)


def _collect(study: Study, parts: Path, path: Path) -> None:
    """Merge all parts into one file."""
    headings: list[dict[str, Any]] = []
    rows: list[list[str]] = []
    for arm, seeds in study.parts:
        part = _part_path(parts, arm, seeds)
        heading, measured = read_results(part, "settings", "seconds")
        # Checkpoints are left if the process was killed just before it removed them.
        rmtree(part.with_suffix(""), ignore_errors=True)
        headings.append(heading)
        rows += measured
    facts = {
        "study": study.name,
        "question": study.question,
        "metric": study.metric,
        "failed_below": study.failed_below,
        "comparisons": study.comparisons,
        "seconds": round(sum(heading["seconds"] for heading in headings), 1),
        "stacks": headings,
    }
    write_table(path, facts, COLUMNS, rows)
