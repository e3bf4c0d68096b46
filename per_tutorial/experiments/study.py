"""Studies: a question, its metric stated beforehand, and many paired runs that answer it.

A study is trained stack by stack from the command line (`python -m per_tutorial study NAME`), for
minutes or hours. Every finished stack is a file of its own, so that a study continues where it was
stopped; when all are there they become one tidy file, which the package ships for notebooks to read.
"""

import csv
import dataclasses
import gzip
import io
import json
import os
import platform
import re
import shutil
import signal
import threading
import time
import zlib
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from per_tutorial.common.arguments import one_of, real_number, whole_number
from per_tutorial.common.files import atomic_write
from per_tutorial.common.provenance import processor
from per_tutorial.dqn.checkpoints import Checkpoints
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import MEASURES

SHIPPED = Path(__file__).parents[1] / "results"
GRID_POINTS = 50  # steps at which a curve is kept
SCORE_WINDOW = 20  # episodes
EVALUATION_EPISODES = 20
COLUMNS = ("arm", "seed", "measure", "at", "value")

# What a study may declare as the one number of a run that decides.
METRICS = {
    "score over training": "mean of the score curve; the score is the mean return of the last "
    f"{SCORE_WINDOW} episodes",
    "greedy score": f"mean return of the final greedy policy over {EVALUATION_EPISODES} episodes",
}


@dataclass(frozen=True)
class Study:
    """What is compared with what, and how it will be judged; declared before anything runs.

    What does not fit raises ValueError or TypeError.

    Args:
        name: of the study and its files, of a–z, 0–9, "-" and ".", as are those of the arms.
        question: one sentence.
        arms: name → `DQNConfig`, all with the same number of steps.
        comparisons: pairs (arm, arm that it is compared with).
        metric: one of `METRICS`.
        failed_below: a run whose greedy score is lower counts as failed.
        seeds: the same for every arm, which makes the runs pairs; at least two.
        stack: runs trained side by side in one process.
        episodes: if not None, the score after every 20 episodes is kept as well, up to this many.
        curves: measures of `History` that are kept over time beside the score, of its `MEASURES`.
        checkpoint_every: if not None, environment steps between `Checkpoints` of a stack in training:
            a study that was killed then continues inside its stacks too, and keeps their agents.
    """

    name: str
    question: str
    arms: dict[str, DQNConfig]
    comparisons: tuple[tuple[str, str], ...]
    metric: str
    failed_below: float
    seeds: range = range(30)
    stack: int = 30
    episodes: int | None = None
    curves: tuple[str, ...] = ("q_value",)
    checkpoint_every: int | None = None

    def __post_init__(self):
        one_of("metric", self.metric, METRICS)
        whole_number("stack", self.stack)
        real_number("failed_below", self.failed_below)
        if self.episodes is not None:
            whole_number("episodes", self.episodes, SCORE_WINDOW)
        for curve in self.curves:
            one_of("curves", curve, MEASURES)
        if self.checkpoint_every is not None:
            whole_number("checkpoint_every", self.checkpoint_every)
        if len(self.seeds) < 2:
            raise ValueError(f"seeds: an interval needs at least two, got {self.seeds}")
        for name in (self.name, *self.arms):
            if not re.fullmatch(r"[a-z0-9.-]+", name):  # it becomes the name of a file
                raise ValueError(f"name, arms: must be of a–z, 0–9, '-' and '.', got {name!r}")
        steps = {config.steps for config in self.arms.values()}
        if len(steps) != 1:
            raise ValueError(f"arms: must all have the same number of steps, got {sorted(steps)}")
        for arm, other in self.comparisons:
            one_of("comparisons", arm, self.arms)
            one_of("comparisons", other, self.arms)

    def fast(self):
        """The same study at a size that runs in seconds, to try the whole path."""

        def small(config):
            return config.replace(
                # A multiple of any number of environments, and each of them ends an episode.
                steps=max(300, 60 * config.environments),
                max_episode_steps=50,
                hidden=(16,),
                learning_starts=min(config.learning_starts, 100),
            )

        arms = {name: small(config) for name, config in self.arms.items()}
        return dataclasses.replace(
            self, name=f"{self.name}-fast", arms=arms, seeds=self.seeds[:3], stack=2
        )

    def on(self, device):
        """The same study on another PyTorch device."""
        arms = {name: config.replace(device=device) for name, config in self.arms.items()}
        return dataclasses.replace(self, arms=arms)

    @property
    def stacks(self):
        """(arm, seeds) of every stack, in the order in which they are trained."""
        chunks = [self.seeds[k : k + self.stack] for k in range(0, len(self.seeds), self.stack)]
        return [(arm, list(chunk)) for arm in self.arms for chunk in chunks]


def run_study(study, folder, *, processes=1, progress=lambda done, total: None):
    """Train what `folder` does not hold yet; returns the `StudyResults`.

    Args:
        study: a `Study`.
        folder: where the results go: ``folder/NAME/*.csv``, a file a stack, and in the end
            ``folder/NAME.csv.gz``. It is made if need be. With ``study.checkpoint_every``, the agents
            of a stack go to a ``*.safetensors`` file beside it (`DQNLearner.load`), and its
            checkpoints are there until it is done. The stack's heading then says whether it was
            "continued" from one; if so, its "seconds" are those of the last sitting alone.
        processes: stacks trained at the same time, each in a process with one thread (on a CPU two
            such processes get more done than one with two threads). 1 trains in this process.
        progress: called with the environment steps done and in all, at the start and whenever a
            stack is finished.

    Raises:
        ValueError: ``folder`` holds results of this study made with other settings, or a damaged
            file. Nothing has been trained or written then. Or the checkpoints of a stack were made
            with other settings, or all are damaged; that shows when its turn comes.
    """
    processes = whole_number("processes", processes)
    parts = Path(folder) / study.name
    parts.mkdir(parents=True, exist_ok=True)
    whole = Path(folder) / f"{study.name}.csv.gz"
    if whole.exists():  # perhaps its parts do not
        for heading in _read(whole)[0]["stacks"]:
            if heading["arm"] in study.arms:
                wanted = _identity(study, heading["arm"], heading["seeds"])
                _refuse_other_settings(whole, heading, wanted)
    jobs = []
    for arm, seeds in study.stacks:
        path = _stack_path(parts, arm, seeds)
        if path.exists():
            _refuse_other_settings(path, _read(path)[0], _identity(study, arm, seeds))
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


def _finished(jobs, processes):
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
        except BaseException:  # an error or Ctrl-C; the pool would finish what it has begun
            end.close()
            raise


def _start_worker(lifeline):
    import torch

    # Threads of several processes that wait for one another on the same cores cost more than they
    # bring.
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent acts on it
    threading.Thread(target=_exit_with, args=(lifeline,), daemon=True).start()


def _exit_with(lifeline):
    """End this process as soon as the parent closes its end of the pipe, or is killed."""
    with suppress(EOFError):
        lifeline.recv()
    os._exit(1)


def _train_stack(study, arm, seeds, path):
    """Train one stack, write its rows, and return its (arm, seeds)."""
    from per_tutorial.dqn.training import evaluate, train

    heading, checkpoints = _identity(study, arm, seeds), None
    if study.checkpoint_every is not None:
        folder = path.with_suffix("")
        heading["continued"] = any(folder.glob("*.npz"))
        checkpoints = Checkpoints(folder, every=study.checkpoint_every)
    start = time.perf_counter()
    history = train(study.arms[arm], seeds, checkpoints=checkpoints)
    greedy = evaluate(history.agent, EVALUATION_EPISODES).mean(axis=1)
    rows = [(arm, *row) for row in _measures(study, history, greedy)]
    packages = ("torch", "numpy", "numba", "gymnasium")
    heading |= {
        "seconds": round(time.perf_counter() - start, 1),
        "processor": processor(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }
    if checkpoints is not None:
        history.agent.save(path.with_suffix(".safetensors"))
    with atomic_write(path) as file:  # last, since with this file the stack counts as done
        file.write(_text(heading, rows).encode())
    if checkpoints is not None:
        shutil.rmtree(folder)
    return arm, seeds


def _stack_path(parts, arm, seeds):
    return parts / f"{arm}.seeds-{seeds[0]}-{seeds[-1]}.csv"


def _measures(study, history, greedy):
    """What is kept of a stack of runs: (seed, measure, at, value)."""
    # Unique, for a training of fewer steps than there are points.
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
            for count in range(SCORE_WINDOW, min(len(returns), study.episodes) + 1, SCORE_WINDOW):
                score = returns[count - SCORE_WINDOW : count].mean()
                yield seed, "score after episodes", count, f"{score:.5g}"
        yield seed, "greedy", history.config.steps, f"{greedy[run]:.5g}"


def _identity(study, arm, seeds):
    """What must agree for a finished stack to count as done."""
    return {
        "study": study.name,
        "arm": arm,
        "seeds": seeds,
        "episodes": study.episodes,
        "curves": list(study.curves),
        "settings": _settings(study.arms[arm]),
    }


def _settings(config):
    """The fields of a `DQNConfig`, as JSON gives them back."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def _refuse_other_settings(path, heading, wanted):
    def flat(heading):
        others = {name: heading[name] for name in heading if name in wanted and name != "settings"}
        return others | heading["settings"]

    # What the file does not name is newer than the file; its default was used.
    defaults = {"curves": list(Study.curves)} | _settings(DQNConfig())
    found, wanted = defaults | flat(heading), flat(wanted)
    differences = [
        f"{name} = {found.get(name)!r}, not {wanted.get(name)!r}"
        for name in found | wanted
        if found.get(name) != wanted.get(name)
    ]
    if differences:
        raise ValueError(
            f"folder: {os.fspath(path)!r} was made with {'; '.join(differences)}; "
            "choose another folder or remove the file"
        )


def _collect(study, parts, path):
    """Make one file of all stacks."""
    headings, rows = [], []
    for arm, seeds in study.stacks:
        part = _stack_path(parts, arm, seeds)
        heading, stack = _read(part)
        # Checkpoints are left if the process was killed just before it removed them.
        shutil.rmtree(part.with_suffix(""), ignore_errors=True)
        headings.append(heading)
        rows += stack
    facts = {
        "study": study.name,
        "question": study.question,
        "metric": study.metric,
        "failed_below": study.failed_below,
        "comparisons": study.comparisons,
        "seconds": round(sum(heading["seconds"] for heading in headings), 1),
        "stacks": headings,
    }
    with atomic_write(path) as file:
        # Without the time of writing, so that the same results make the same file.
        file.write(gzip.compress(_text(facts, rows).encode(), mtime=0))


def _text(heading, rows):
    text = io.StringIO()
    text.write(f"# {json.dumps(heading | {'rows': len(rows)})}\n")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(rows)
    return text.getvalue()


def _read(path):
    """The heading and the rows of a file that `_text` made, gzipped or not."""
    data = Path(path).read_bytes()
    try:
        if Path(path).suffix == ".gz":
            data = gzip.decompress(data)
        text = data.decode()
        if not text.endswith("\n"):  # a number cut short would still be a number
            raise ValueError("the last line is not whole")
        lines = text.splitlines()
        heading = json.loads(lines[0].removeprefix("# "))
        rows = list(csv.reader(lines[1:]))
        if tuple(rows[0]) != COLUMNS or len(rows) - 1 != heading["rows"]:
            raise ValueError(f"{len(rows) - 1} rows under {rows[0]}")
    except (ValueError, KeyError, IndexError, TypeError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"path: {os.fspath(path)!r} holds no results ({error})") from error
    return heading, rows[1:]


class StudyResults:
    """The results of a study, read from its file.

    Attributes:
        facts: dict of what was declared and what the runs were made with.
        arms: name → `DQNConfig`.
        seeds: of the runs, in their order everywhere below.
    """

    def __init__(self, facts, rows):
        self.facts = facts
        stacks = facts["stacks"]
        self.arms = {stack["arm"]: DQNConfig(**stack["settings"]) for stack in stacks}
        self.seeds = sorted({seed for stack in stacks for seed in stack["seeds"]})
        self._values = {}  # measure → {(arm, at, seed): value}
        for arm, seed, measure, at, value in rows:
            self._values.setdefault(measure, {})[arm, int(at), int(seed)] = float(value)

    @property
    def comparisons(self):
        """The declared pairs (arm, arm that it is compared with)."""
        return [tuple(pair) for pair in self.facts["comparisons"]]

    def curve(self, arm, measure="score"):
        """A measure over time: the grid (points,), the same for all arms, and the values (points, runs).

        Args:
            arm: its name.
            measure: "score" and the study's curves over environment steps; "score after episodes"
                over episodes, where the study keeps it. NaN where a run has nothing to tell yet.
        """
        one_of("arm", arm, self.arms)
        values = self._values[one_of("measure", measure, self._values)]
        grid = sorted({at for _, at, _ in values})
        missing = float("nan")
        curve = [[values.get((arm, at, seed), missing) for seed in self.seeds] for at in grid]
        return np.array(grid), np.array(curve)

    def scores(self, arm, metric=None):
        """The one number of each run, (runs,): ``metric`` of `METRICS`, by default the declared one.

        A curve counts from the first episode that the run finished; NaN if it finished none.
        """
        metric = one_of("metric", metric or self.facts["metric"], METRICS)
        if metric == "greedy score":
            return self.curve(arm, "greedy")[1][-1]
        return np.nanmean(self.curve(arm)[1], axis=0)


def load_study(name, folder=SHIPPED):
    """The `StudyResults` of a study; those that come with the package unless another folder is given.

    Raises:
        ValueError: there are none of this name, or the file is damaged.
    """
    path = Path(folder) / f"{name}.csv.gz"
    if not path.is_file():
        known = sorted(found.name.removesuffix(".csv.gz") for found in Path(folder).glob("*.csv.gz"))
        there = f"there are {', '.join(known)}" if known else "there are none of any"
        raise ValueError(f"name: no results of a study {name!r}, {there}")
    return StudyResults(*_read(path))


def report(results):
    """What came out, as text: a line for each arm, then a line for each declared comparison."""
    from per_tutorial.experiments.estimates import (
        failure_rate,
        paired_difference,
        probability_of_improvement,
        summary,
    )

    def shown(estimate, form="9.1f"):
        value, low, high = (format(number, form) for number in estimate)
        return f"{value} [{low.strip()}, {high.strip()}]"

    facts = results.facts
    scores = {arm: results.scores(arm) for arm in results.arms}
    lines = [f"{facts['metric']}, {len(results.seeds)} runs an arm, 95 % intervals"]
    for arm, values in scores.items():
        parts = [f"{name} {shown(value)}" for name, value in summary(values).items()]
        failed = failure_rate(results.scores(arm, "greedy score"), facts["failed_below"])
        lines.append(f"{arm:28} {'  '.join(parts)}  failed {shown(failed, '.0%')}")
    lines.append("paired differences of the mean, and how likely a run of the first is the better one")
    for arm, other in results.comparisons:
        difference = paired_difference(scores[arm], scores[other])
        better = probability_of_improvement(scores[arm], scores[other])
        name = f"{arm} − {other}"
        lines.append(f"{name:48} {shown(difference, '+9.1f')}  P(better) {shown(better, '.2f')}")
    return "\n".join(lines)
