"""`train`: a stack of runs, and what their greedy policies reach."""

import argparse
import os

from per_tutorial.cli.files import check_folders, check_targets, save_results
from per_tutorial.cli.settings import MAX_EPISODES, add_settings, chosen_settings
from per_tutorial.common.arguments import whole_number

HELP = "train a stack of runs and evaluate the greedy policies"
DESCRIPTION = (
    "Train a stack of runs of DQN side by side, then let their greedy policies play. Without "
    "options that is uniform replay on CartPole; for PER, say --sampler proportional. Example: "
    "python -m per_tutorial train --sampler proportional --double --runs 2 --save "
    "agent.safetensors"
)

MAX_RUNS = 100_000  # more would fill the memory


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the training, then its settings."""
    parser.description = DESCRIPTION
    parser.usage = "%(prog)s [options]"  # there are too many to list twice
    parser.add_argument("--runs", type=int, default=10, help="runs side by side (default: 10)")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first (default: 0)")
    parser.add_argument("--out", metavar="FILE", help="write the history, a tidy CSV file")
    parser.add_argument(
        "--save",
        metavar="FILE",
        help="write the trained networks (safetensors); the command evaluate plays them",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="write the whole training there at intervals, and continue the one that is there",
    )
    parser.add_argument(
        "--checkpoint-every",
        type=int,
        metavar="STEPS",
        default=10_000,
        help="environment steps between checkpoints (default: %(default)s)",
    )
    parser.add_argument(
        "--checkpoint-copy",
        metavar="FOLDER",
        help="copy each checkpoint there as well, such as to a mounted drive",
    )
    parser.add_argument("--tensorboard", metavar="FOLDER", help="write TensorBoard scalars")
    parser.add_argument(
        "--episodes", type=int, default=20, help="episodes to evaluate each agent on (default: 20)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_settings(parser)


def run(arguments: argparse.Namespace) -> None:
    """Train, write the requested files, evaluate, and print the next steps."""
    config = chosen_settings(arguments)
    runs = whole_number("--runs", arguments.runs, maximum=MAX_RUNS)
    episodes = whole_number("--episodes", arguments.episodes, maximum=MAX_EPISODES)
    copy = arguments.checkpoint_copy
    check_folders(
        checkpoint=arguments.checkpoint,
        tensorboard=arguments.tensorboard,
        **{"checkpoint-copy": copy},
    )
    if copy and not arguments.checkpoint:
        raise ValueError("--checkpoint-copy: needs --checkpoint, the folder to copy from")
    if copy and os.path.realpath(copy) == os.path.realpath(arguments.checkpoint):
        raise ValueError(f"--checkpoint-copy: must be another folder than --checkpoint, {copy!r}")
    check_targets(out=arguments.out, save=arguments.save)

    import numpy as np

    from per_tutorial.dqn.callbacks import Callback, ProgressBar, TensorBoard
    from per_tutorial.dqn.checkpoints import Checkpoints
    from per_tutorial.dqn.training import evaluate, train

    checkpoints = None
    if arguments.checkpoint:
        every = arguments.checkpoint_every
        checkpoints = Checkpoints(arguments.checkpoint, every=every, copy_to=copy)
    callbacks: list[Callback] = [] if arguments.quiet else [ProgressBar(config.sampler)]
    if arguments.tensorboard:
        callbacks.append(TensorBoard(arguments.tensorboard))
    seeds = range(arguments.first_seed, arguments.first_seed + runs)
    history = train(config, seeds, callbacks=callbacks, checkpoints=checkpoints)
    save_results(history, arguments.out, arguments.save)
    assert history.agent is not None  # only a history read from a file has none
    greedy = evaluate(history.agent, episodes).mean(axis=1)
    for seed, value in zip(history.seeds, greedy, strict=True):
        print(f"seed {seed}: greedy return {value:.1f}")
    tenth, median = np.percentile(greedy, (10, 50))
    print(
        f"greedy return over {counted(len(greedy), 'run')}, "
        f"the mean of {counted(episodes, 'episode')} each: "
        f"median {median:.1f}, 10th percentile {tenth:.1f}, lowest {greedy.min():.1f}"
    )
    print(next_steps(arguments.save))


def counted(number: int, what: str) -> str:
    """A number with its noun, such as "1 run" or "2 runs"."""
    return f"{number} {what}{'s' * (number != 1)}"


def next_steps(saved: str | None) -> str:
    """What to do with the trained agents, in one or two lines.

    Args:
        saved: the file with the agents; None if they were not saved.
    """
    if saved is None:
        return "the agents were not kept: with --save FILE they can be evaluated and filmed"
    play = f"python -m per_tutorial evaluate {_quoted(saved)}"
    return f"play them again: {play}\nfilm the first:  {play} --video episode.mp4"


def _quoted(path: str) -> str:
    return f'"{path}"' if " " in path else path
