"""`apex`: one agent with many actors and a shared memory, on Ray."""

import argparse
import dataclasses
import warnings

from per_tutorial.cli.files import check_folders, check_targets, save_results
from per_tutorial.cli.settings import add_settings, chosen_settings
from per_tutorial.cli.study import ADDRESS
from per_tutorial.cli.train import next_steps
from per_tutorial.distributed.apex_settings import ApexConfig

HELP = "train one agent with many actors and a memory that they share, on Ray (Ape-X)"

# The fields of `ApexConfig`; its docstring says more.
EXPLAINED = {
    "actors": "processes that act, one CPU each",
    "shards": "memories that the transitions are spread over, one CPU each",
    "environments_each": "environments that each actor acts in side by side",
    "base": "ε of the first environment",
    "steepness": "how fast ε falls from one environment to the next: the last acts with "
    "base^(1 + steepness)",
    "fetch_every": "environment steps of an actor between fetches of the newest parameters",
    "prefetch": "minibatches that the learner asks for ahead of their use",
    "lead": "environment steps that all actors together may be ahead of the learner",
    "checkpoint_every": "environment steps between two checkpoints",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the cluster, the files, how the training is spread, and its settings."""
    parser.usage = "%(prog)s [options]"  # there are too many to list twice
    parser.add_argument("--ray", metavar="ADDRESS", default="local", help=f"the cluster: {ADDRESS}")
    parser.add_argument("--seed", type=int, default=0, help="of the training (default: 0)")
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="a folder that all nodes see: write checkpoints there, and continue from them",
    )
    parser.add_argument("--out", metavar="FILE", help="write the history, a tidy CSV file")
    parser.add_argument(
        "--save",
        metavar="FILE",
        help="write the trained network (safetensors); the command evaluate plays it",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    spread = parser.add_argument_group("how the training is spread (see ApexConfig)")
    for field in dataclasses.fields(ApexConfig):
        spread.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=type(field.default),
            default=field.default,
            help=f"{EXPLAINED[field.name]} (default: %(default)s)",
        )
    add_settings(parser)


def run(arguments: argparse.Namespace) -> None:
    """Train, write the requested files, and print what was lost and the next steps."""
    given = vars(arguments)
    config = chosen_settings(arguments)
    for field in dataclasses.fields(config):
        if field.name.startswith("epsilon_") and given[field.name] != field.default:
            option = f"--{field.name.replace('_', '-')}"
            said = f"{option}: no effect with apex, see --base and --steepness"
            warnings.warn(said, stacklevel=2)
    apex = ApexConfig(**{field.name: given[field.name] for field in dataclasses.fields(ApexConfig)})
    check_folders(checkpoint=arguments.checkpoint)
    check_targets(out=arguments.out, save=arguments.save)

    from per_tutorial.distributed.apex import train_apex
    from per_tutorial.dqn.callbacks import ProgressBar
    from per_tutorial.dqn.training import evaluate

    history = train_apex(
        config,
        apex,
        arguments.seed,
        address=arguments.ray,
        checkpoints=arguments.checkpoint,
        callbacks=[] if arguments.quiet else [ProgressBar("apex")],
    )
    save_results(history, arguments.out, arguments.save)
    assert history.agent is not None  # only a history read from a file has none
    print(
        f"greedy return, the mean of 20 episodes: {evaluate(history.agent, 20).mean():.1f}\n"
        f"replaced: {history.actors_replaced} actors, {history.shards_replaced} shards; "
        f"windows lost: {history.windows_lost}; the learner waited {history.waited:.1f} of "
        f"{history.seconds:.1f} s"
    )
    print(next_steps(arguments.save))
