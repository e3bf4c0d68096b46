"""`study`: a declared comparison."""

import difflib
import os
from pathlib import Path
from typing import Annotated

import tyro

from per_tutorial.cli.files import check_folders
from per_tutorial.common.arguments import whole_number

RECORDED = Path("notebooks/results")  # in the folder of the repository


def study(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")],
    out: str = "results",
    processes: int | None = None,
    device: str = "cpu",
    fast: bool = False,
    quiet: bool = False,
) -> None:
    """Train the arms of a declared study, or continue, and report what came out.

    Args:
        name: such as ablation-cartpole; an unknown name is answered by the known ones
        out: folder where results are written, and continued if there are some
        processes: groups of runs trained at once; one for each processor, 1 on another device
        device: PyTorch device of every arm
        fast: a tiny form that takes seconds
        quiet: no progress bar
    """
    from per_tutorial.studies.declared import STUDIES

    if name not in STUDIES:
        near = difflib.get_close_matches(name, STUDIES, n=3, cutoff=0.4) or list(STUDIES)
        raise ValueError(f"STUDY: must be a study, such as {', '.join(near)}, got {name!r}")
    if processes is None:
        processes = (os.cpu_count() or 1) if device == "cpu" else 1
    whole_number("--processes", processes, maximum=1024)
    check_folders(out=out)

    from tqdm import tqdm

    from per_tutorial.studies.results import report
    from per_tutorial.studies.runner import run_study
    from per_tutorial.studies.study import METRICS

    declared = STUDIES[name].on(device)
    if fast:
        declared = declared.fast()
    print(f"{declared.question}\nMetric: {declared.metric}, {METRICS[declared.metric]}.")
    runs = len(declared.arms) * len(declared.seeds)
    print(f"{len(declared.parts)} parts, {processes} at once. {_duration(declared.name, runs)}")
    kept = "finished parts" if declared.checkpoint_every is None else "checkpoints"
    print(f"Ctrl-C stops it: {kept} stay, the rest is lost. The same command continues.")
    # No smoothing: groups finish rarely and several at once.
    bar = tqdm(unit="step", unit_scale=True, smoothing=0, disable=quiet)

    def progress(done: int, total: int) -> None:
        if bar.total is None:  # what was done before does not count as speed
            bar.total, bar.initial, bar.n = total, done, done
        bar.update(done - bar.n)

    with bar:
        results = run_study(declared, out, processes=processes, progress=progress)
    print(report(results))


def _duration(name: str, runs: int) -> str:
    """How long the recorded runs took, if their results are here."""
    from per_tutorial.studies.results import load_study

    if not (RECORDED / f"{name}.csv.gz").is_file():
        return "Their duration is shown as soon as the first is finished."
    facts = load_study(name, RECORDED).facts
    minutes = facts["seconds"] / sum(len(part["seeds"]) for part in facts["stacks"]) * runs / 60
    return f"Where they were recorded, all took {minutes:,.0f} minutes on one core."
