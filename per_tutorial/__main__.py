"""Train, evaluate and compare agents; `python -m per_tutorial COMMAND --help` says more."""

import argparse
import dataclasses
import io
import os
import sys
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any

from per_tutorial.common.arguments import whole_number
from per_tutorial.common.files import check_writable
from per_tutorial.conformance.adapters import ADAPTERS
from per_tutorial.distributed.command_line import add_apex, add_study_options, study_on_ray
from per_tutorial.dqn.config import AUTO, PRECISIONS, DQNConfig
from per_tutorial.dqn.pretrained import agent_names
from per_tutorial.experiments.studies.declared import STUDIES

# More is a slip of the fingers, and would be found out only after hours or with a full memory.
MOST_RUNS = 100_000
MOST_EPISODES = 100_000
MOST_PROCESSES = 1024
LONGEST_WALK = 20  # states; twice the memory and time with each more

# In place of those of `DQNConfig`: whoever trains from here looks for speed, not for the same bits.
DEFAULTS = {"compiled": AUTO}


def add_settings(parser: argparse._ArgumentGroup) -> None:
    """One option for each field of `DQNConfig`."""
    kinds = typing.get_type_hints(DQNConfig)
    for field in dataclasses.fields(DQNConfig):
        option = f"--{field.name.replace('_', '-')}"
        default = DEFAULTS.get(field.name, field.default)
        choices = getattr(field.metadata["check"], "keywords", {}).get("allowed", ())
        text = f"{', '.join(choices)}: " if choices else ""
        text += f"{field.metadata['help'].replace('%', '%%')} (default: {_shown(default)})"
        kind = kinds[field.name]
        if isinstance(field.default, bool):
            parser.add_argument(
                option, action=argparse.BooleanOptionalAction, default=default, help=text
            )
        elif kind == tuple[int, ...]:
            parser.add_argument(option, type=int, nargs="*", default=default, help=text)
        else:
            parser.add_argument(option, type=_plain(kind), default=default, help=text)


def _plain(kind: Any) -> Any:
    """`int | None` → int: the type that a text is turned into."""
    if isinstance(kind, types.UnionType):
        return next(one for one in typing.get_args(kind) if one is not types.NoneType)
    return kind


def _shown(default: Any) -> Any:
    return " ".join(map(str, default)) if isinstance(default, tuple) else default


def _check_folders(**options: str | None) -> None:
    """An option that names a folder must name one; None: it was not given."""
    for option, path in options.items():
        if path == "":
            raise ValueError(f"--{option}: must name a folder, got nothing")
        if path and os.path.exists(path) and not os.path.isdir(path):
            raise NotADirectoryError(f"--{option}: {path!r} is no folder")


def _check_targets(**options: str | None) -> None:
    """Say now, rather than after hours, that a result could not be written; None: nothing to write."""
    targets: dict[str, str] = {}
    for option, path in options.items():
        if path is None:
            continue
        if not path:
            raise ValueError(f"--{option}: must name a file, got nothing")
        check_writable(path, f"--{option}")
        other = targets.setdefault(os.path.realpath(path), option)
        if other != option:
            raise ValueError(f"--{option}: must not be the file of --{other}, {path!r}")


def _write_all(*writers: Callable[[], None]) -> None:
    """Call every one, even where an earlier one cannot write; raise what went wrong at the end."""
    failures = []
    for write in writers:
        try:
            write()
        except OSError as error:
            failures.append(str(error))
    if failures:
        raise OSError("; ".join(failures))


def command_train(arguments: argparse.Namespace) -> None:
    settings = {
        field.name: getattr(arguments, field.name) for field in dataclasses.fields(DQNConfig)
    }
    config = DQNConfig(**settings | {"hidden": tuple(settings["hidden"])})
    runs = whole_number("--runs", arguments.runs, minimum=0, maximum=MOST_RUNS)
    episodes = whole_number("--episodes", arguments.episodes, maximum=MOST_EPISODES)
    copy = arguments.checkpoint_copy
    _check_folders(
        checkpoint=arguments.checkpoint,
        tensorboard=arguments.tensorboard,
        **{"checkpoint-copy": copy},
    )
    if copy and not arguments.checkpoint:
        raise ValueError("--checkpoint-copy: needs --checkpoint, the folder to copy from")
    if copy and os.path.realpath(copy) == os.path.realpath(arguments.checkpoint):
        raise ValueError(f"--checkpoint-copy: must be another folder than --checkpoint, {copy!r}")
    _check_targets(out=arguments.out, save=arguments.save)

    import numpy as np

    from per_tutorial.dqn.callbacks import Callback, ProgressBar, TensorBoard
    from per_tutorial.dqn.checkpoints import Checkpoints
    from per_tutorial.dqn.training import evaluate, train

    checkpoints = None
    if arguments.checkpoint:
        checkpoints = Checkpoints(
            arguments.checkpoint,
            every=arguments.checkpoint_every,
            copy_to=copy,
        )
    callbacks: list[Callback] = [] if arguments.quiet else [ProgressBar(config.sampler)]
    if arguments.tensorboard:
        callbacks.append(TensorBoard(arguments.tensorboard))
    seeds = range(arguments.first_seed, arguments.first_seed + runs)
    history = train(config, seeds, callbacks=callbacks, checkpoints=checkpoints)
    agent = history.agent
    assert agent is not None  # it was trained just now, not read from a file
    writers = []
    if arguments.out:
        writers.append(lambda: history.save(arguments.out))
    if arguments.save:
        writers.append(lambda: agent.save(arguments.save))
    _write_all(*writers)
    greedy = evaluate(agent, episodes).mean(axis=1)
    for seed, value in zip(history.seeds, greedy, strict=True):
        print(f"seed {seed}: greedy return {value:.1f}")
    tenth, median = np.percentile(greedy, (10, 50))
    print(
        f"greedy return over {len(greedy)} runs, the mean of {episodes} episodes each: "
        f"median {median:.1f}, 10th percentile {tenth:.1f}, lowest {greedy.min():.1f}"
    )


def command_evaluate(arguments: argparse.Namespace) -> None:
    episodes = whole_number("--episodes", arguments.episodes, minimum=2, maximum=MOST_EPISODES)

    from per_tutorial.dqn.pretrained import load_agent
    from per_tutorial.dqn.training import evaluate
    from per_tutorial.experiments.statistics.estimates import estimate

    agent = load_agent(arguments.agent, arguments.device, precision=arguments.precision)
    returns = evaluate(agent, episodes)[0]
    print(" ".join(f"{value:g}" for value in returns))
    mean, low, high = estimate(returns)
    print(
        f"{arguments.agent}: mean return {mean:.1f}, 95 % interval [{low:.1f}, {high:.1f}], "
        f"{len(returns)} episodes"
    )


def command_study(arguments: argparse.Namespace) -> None:
    processes = arguments.processes
    if processes is None:
        processes = (os.cpu_count() or 1) if arguments.device == "cpu" else 1
    processes = whole_number("--processes", processes, maximum=MOST_PROCESSES)
    _check_folders(out=arguments.out, shared=arguments.shared)
    if arguments.shared and not arguments.ray:
        raise ValueError("--shared: needs --ray")

    from tqdm import tqdm

    from per_tutorial.dqn.autotune import slow_precision
    from per_tutorial.experiments.studies.results import report
    from per_tutorial.experiments.studies.runner import run_study
    from per_tutorial.experiments.studies.study import METRICS

    study = STUDIES[arguments.study].on(arguments.device)
    if arguments.fast:
        study = study.fast()
    print(f"{study.question}\nMetric: {study.metric}, {METRICS[study.metric]}.")
    declared = [config for config in study.arms.values() if isinstance(config, DQNConfig)]
    for line in {line for config in declared if (line := slow_precision(config))}:
        print(line, file=sys.stderr)
    # No smoothing: stacks finish rarely and several at once, so the time left follows the average.
    bar = None

    def progress(done: int, total: int, note: str = "") -> None:
        nonlocal bar
        if bar is None:  # what was there already says nothing about the speed
            bar = tqdm(
                total=total,
                initial=done,
                unit="step",
                unit_scale=True,
                smoothing=0,
                disable=arguments.quiet,
            )
        bar.set_postfix_str(note, refresh=False)
        bar.update(done - bar.n)

    try:
        if arguments.ray:
            results = study_on_ray(study, arguments, progress)
        else:
            results = run_study(study, arguments.out, processes=processes, progress=progress)
    finally:
        if bar is not None:
            bar.close()
    print(report(results))


def command_cliffwalk(arguments: argparse.Namespace) -> None:
    longest = whole_number("--longest", arguments.longest, minimum=2, maximum=LONGEST_WALK)
    picture = f"{arguments.out}.png"
    _check_targets(out=arguments.out, **{"out, the picture": picture if arguments.out else None})

    from matplotlib.figure import Figure

    from per_tutorial.common.files import atomic_write
    from per_tutorial.experiments.cliffwalk.figures import draw_figures, ratio_table
    from per_tutorial.experiments.cliffwalk.measurements import Point, measure_walks

    def progress(point: Point) -> None:
        if not arguments.quiet:
            alpha = f", α {point.alpha}" if point.alpha else ""
            print(f"{point.figure}: {point.sampler}{alpha}, {point.n} states", file=sys.stderr)

    walks = measure_walks(arguments.out, longest, progress)
    print(ratio_table(walks))
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    draw_figures(figure, walks)
    with atomic_write(picture) as file:
        figure.savefig(file, format="png", dpi=110)


def command_examine(arguments: argparse.Namespace) -> None:
    from per_tutorial.conformance import Answer, examine, find_adapter

    def progress(answer: Answer) -> None:
        if not arguments.quiet:
            print(f"{answer.question.name}: {answer.verdict.value}", file=sys.stderr)

    report = examine(find_adapter(arguments.name), arguments.seed, progress=progress)
    print(report)
    if report.failures:
        sys.exit(1)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; an error becomes one line and the exit status 1, Ctrl-C 130."""
    parser = argparse.ArgumentParser(prog="python -m per_tutorial", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    trainer = commands.add_parser(
        "train", help="train a stack of runs and evaluate the greedy policies"
    )
    trainer.set_defaults(command=command_train)
    trainer.add_argument("--runs", type=int, default=10, help="runs side by side (default: 10)")
    trainer.add_argument("--first-seed", type=int, default=0, help="seed of the first (default: 0)")
    trainer.add_argument("--out", metavar="FILE", help="write the history, a tidy CSV file")
    trainer.add_argument("--save", metavar="FILE", help="write the trained networks (safetensors)")
    trainer.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="write the whole training there at intervals, and continue the one that is there",
    )
    trainer.add_argument(
        "--checkpoint-every",
        type=int,
        metavar="STEPS",
        default=10_000,
        help="environment steps between checkpoints (default: %(default)s)",
    )
    trainer.add_argument(
        "--checkpoint-copy",
        metavar="FOLDER",
        help="copy each checkpoint there as well, such as to a mounted drive",
    )
    trainer.add_argument("--tensorboard", metavar="FOLDER", help="write TensorBoard scalars")
    trainer.add_argument(
        "--episodes", type=int, default=20, help="episodes to evaluate each agent on (default: 20)"
    )
    trainer.add_argument("--quiet", action="store_true", help="no progress bar")
    add_settings(trainer.add_argument_group("settings of the runs"))

    evaluator = commands.add_parser(
        "evaluate", help="let an agent that comes with the package play, greedily"
    )
    evaluator.set_defaults(command=command_evaluate)
    evaluator.add_argument(
        "agent", metavar="AGENT", choices=agent_names(), help=", ".join(agent_names())
    )
    evaluator.add_argument(
        "--episodes", type=int, default=30, help="how many (default: %(default)s)"
    )
    evaluator.add_argument("--device", default="cpu", help="PyTorch device (default: %(default)s)")
    evaluator.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="float32",
        help="of the arithmetic in the network; auto: the faster one here (default: %(default)s)",
    )

    studier = commands.add_parser(
        "study", help="train the arms of a declared study, or continue, and report what came out"
    )
    studier.set_defaults(command=command_study)
    studier.add_argument("study", metavar="STUDY", choices=STUDIES, help=", ".join(STUDIES))
    studier.add_argument(
        "--out",
        metavar="FOLDER",
        default="results",
        help="where results are written, and continued if there are some (default: %(default)s)",
    )
    studier.add_argument(
        "--processes",
        type=int,
        help="stacks trained at once (default: one for each processor, 1 on another device)",
    )
    studier.add_argument(
        "--device", default="cpu", help="PyTorch device of every arm (default: %(default)s)"
    )
    add_study_options(studier)
    studier.add_argument("--fast", action="store_true", help="a tiny form that takes seconds")
    studier.add_argument("--quiet", action="store_true", help="no progress bar")

    add_apex(commands, add_settings)
    walker = commands.add_parser(
        "cliffwalk", help="reproduce the paper's figures 1 and 2 on the Blind Cliffwalk"
    )
    walker.set_defaults(command=command_cliffwalk)
    walker.add_argument(
        "--out",
        metavar="FILE",
        default="cliffwalk.csv",
        help="results, continued if they exist; the picture goes to FILE.png (default: %(default)s)",
    )
    walker.add_argument(
        "--longest", type=int, default=16, help="states of the longest walk (default: 16)"
    )
    walker.add_argument("--quiet", action="store_true", help="no progress lines")

    examiner = commands.add_parser(
        "examine", help="examine a prioritised replay buffer: is it what the paper describes?"
    )
    examiner.set_defaults(command=command_examine)
    examiner.add_argument(
        "name",
        metavar="NAME",
        help=f"{', '.join(ADAPTERS)}, or FILE.py:CLASS, an adapter of your own "
        "(per_tutorial.conformance.Adapter)",
    )
    examiner.add_argument("--seed", type=int, default=0, help="of the examination (default: 0)")
    examiner.add_argument("--quiet", action="store_true", help="no progress lines")

    chosen = parser.parse_args(arguments)
    usual = warnings.formatwarning
    try:
        # One line each, as errors are: where in the package it arose says nothing to a user.
        warnings.formatwarning = lambda message, *_: f"{parser.prog}: warning: {message}\n"
        chosen.command(chosen)
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted", file=sys.stderr)
        sys.exit(130)
    except (ValueError, TypeError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except ImportError as error:
        if (error.name or "").startswith("per_tutorial"):  # not a missing extra, but our own slip
            raise
        sys.exit(f"{parser.prog}: {error}")
    except (MemoryError, RuntimeError) as error:
        if not _is_about_memory(error):
            raise
        sys.exit(f"{parser.prog}: not enough memory for these settings ({_first_line(error)})")
    finally:
        warnings.formatwarning = usual


def _is_about_memory(error: Exception) -> bool:
    """Whether memory ran out; PyTorch says so with a RuntimeError like any other."""
    return isinstance(error, MemoryError) or "alloc" in str(error) or "out of memory" in str(error)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):  # a pipe on Windows may know no α
        sys.stdout.reconfigure(errors="replace")
    main()
