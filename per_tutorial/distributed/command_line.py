"""What the command line offers on a cluster. Ray is imported when one of these commands runs."""

import argparse
from collections.abc import Callable
from typing import Any

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
    from per_tutorial.experiments.runner import run_study

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
