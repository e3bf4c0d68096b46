"""What the command line offers on a cluster. Ray is imported when one of these commands runs."""

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any

from per_tutorial.distributed.apex_settings import ApexConfig
from per_tutorial.dqn.config import DQNConfig

ADDRESS = "HOST:PORT, auto (the cluster of this machine), or local, which starts one here"


def add_study_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command `study` for a cluster."""
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help=f"train on a Ray cluster: {ADDRESS} for --processes stacks at once",
    )
    parser.add_argument(
        "--shared",
        metavar="FOLDER",
        help="with --ray: a folder that all nodes see, for checkpoints of stacks that take long",
    )


def study_on_ray(
    study: Any, arguments: argparse.Namespace, progress: Callable[[int, int, str], object]
) -> Any:
    """Run a study as the command's options say; ``progress`` is told which nodes work, in words."""
    from per_tutorial.distributed.cluster import connected
    from per_tutorial.distributed.studies import RayStacks
    from per_tutorial.experiments.studies.runner import run_study

    stacks = RayStacks(arguments.shared)
    with connected(arguments.ray, cpus=arguments.processes):
        return run_study(
            study,
            arguments.out,
            executor=stacks,
            progress=lambda done, total: progress(
                done, total, f"nodes at work: {stacks.nodes_at_work}"
            ),
        )


def add_apex(commands: Any, add_settings: Callable[[Any], None]) -> None:
    """The command `apex`."""
    parser = commands.add_parser(
        "apex", help="train one agent with many actors and a memory that they share, on Ray (Ape-X)"
    )
    parser.set_defaults(command=command_apex)
    parser.add_argument("--ray", metavar="ADDRESS", default="local", help=f"the cluster: {ADDRESS}")
    parser.add_argument("--seed", type=int, default=0, help="of the training (default: 0)")
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="a folder that all nodes see: write checkpoints there, and continue from them",
    )
    parser.add_argument("--out", metavar="FILE", help="write the history, a tidy CSV file")
    parser.add_argument("--save", metavar="FILE", help="write the trained network (safetensors)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    spread = parser.add_argument_group("how the training is spread (see ApexConfig)")
    for field in dataclasses.fields(ApexConfig):
        spread.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=type(field.default),
            default=field.default,
            help="(default: %(default)s)",
        )
    add_settings(parser.add_argument_group("settings of the training"))


def command_apex(arguments: argparse.Namespace) -> None:
    """Train, write what was asked for, and say what was lost."""
    given = vars(arguments)
    settings = {field.name: given[field.name] for field in dataclasses.fields(DQNConfig)}
    config = DQNConfig(**settings | {"hidden": tuple(settings["hidden"])})
    apex = ApexConfig(**{field.name: given[field.name] for field in dataclasses.fields(ApexConfig)})

    from per_tutorial.common.files import check_writable
    from per_tutorial.distributed.apex import train_apex
    from per_tutorial.dqn.callbacks import ProgressBar
    from per_tutorial.dqn.training import evaluate

    for option in ("out", "save"):
        if given[option] is not None:
            check_writable(given[option], f"--{option}")
    history = train_apex(
        config,
        apex,
        arguments.seed,
        address=arguments.ray,
        checkpoints=arguments.checkpoint,
        callbacks=[] if arguments.quiet else [ProgressBar("apex")],
    )
    assert history.agent is not None, "a training leaves its agent"
    if arguments.out is not None:
        history.save(arguments.out)
    if arguments.save is not None:
        history.agent.save(arguments.save)
    print(
        f"greedy return, the mean of 20 episodes: {evaluate(history.agent, 20).mean():.1f}\n"
        f"replaced: {history.actors_replaced} actors, {history.shards_replaced} shards; "
        f"windows lost: {history.windows_lost}; the learner waited {history.waited:.1f} of "
        f"{history.seconds:.1f} s"
    )
