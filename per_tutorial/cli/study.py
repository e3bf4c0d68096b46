"""`study`: a declared comparison."""

import argparse
import difflib
import os
import sys
from typing import Any

from per_tutorial.cli.files import check_folders
from per_tutorial.common.arguments import whole_number
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.experiments.studies.declared import STUDIES

HELP = "train the arms of a declared study, or continue, and report what came out"

MAX_PROCESSES = 1024


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the study, its results, and the machines that compute them."""
    parser.add_argument("study", metavar="STUDY", type=_study_name, help=", ".join(STUDIES))
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        default="results",
        help="where results are written, and continued if there are some (default: %(default)s)",
    )
    parser.add_argument(
        "--processes",
        type=int,
        help="stacks trained at once (default: one for each processor, 1 on another device)",
    )
    parser.add_argument(
        "--device", default="cpu", help="PyTorch device of every arm (default: %(default)s)"
    )
    parser.add_argument("--fast", action="store_true", help="a tiny form that takes seconds")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _study_name(text: str) -> str:
    """The name of a study; an error suggests only the most similar ones, since there are many."""
    if text not in STUDIES:
        near = difflib.get_close_matches(text, STUDIES, n=3, cutoff=0.4) or list(STUDIES)[:3]
        names = ", ".join(map(repr, near))
        raise argparse.ArgumentTypeError(
            f"must be the name of a study (see --help), such as {names}, got {text!r}"
        )
    return text


def run(arguments: argparse.Namespace) -> None:
    """Print the question, run or continue the study, and print its report."""
    processes = arguments.processes
    if processes is None:
        processes = (os.cpu_count() or 1) if arguments.device == "cpu" else 1
    processes = whole_number("--processes", processes, maximum=MAX_PROCESSES)
    check_folders(out=arguments.out)

    from per_tutorial.dqn.autotune import slow_precision
    from per_tutorial.experiments.studies.results import report
    from per_tutorial.experiments.studies.runner import run_study
    from per_tutorial.experiments.studies.study import METRICS

    study = STUDIES[arguments.study].on(arguments.device)
    if arguments.fast:
        study = study.fast()
    print(f"{study.question}\nMetric: {study.metric}, {METRICS[study.metric]}.")
    declared = [config for config in study.arms.values() if isinstance(config, DQNConfig)]
    for line in dict.fromkeys(map(slow_precision, declared)):  # each once, in the arms' order
        if line:
            print(line, file=sys.stderr)
    progress = _Progress(arguments.quiet)
    try:
        results = run_study(study, arguments.out, processes=processes, progress=progress)
    finally:
        progress.close()
    print(report(results))


class _Progress:
    """A progress bar that starts at the first report: earlier results don't count as speed."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None

    def __call__(self, done: int, total: int, note: str = "") -> None:
        if self._bar is None:
            from tqdm import tqdm

            # No smoothing: stacks finish rarely and several at once.
            self._bar = tqdm(
                total=total,
                initial=done,
                unit="step",
                unit_scale=True,
                smoothing=0,
                disable=self._quiet,
            )
        self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
