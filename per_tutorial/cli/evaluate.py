"""`evaluate`: let agents play greedily, from a file or one that comes with the repository."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from per_tutorial.cli.files import check_targets
from per_tutorial.cli.settings import MAX_EPISODES
from per_tutorial.common.arguments import whole_number
from per_tutorial.dqn.config import PRECISIONS
from per_tutorial.dqn.pretrained import agent_names, load_agent

if TYPE_CHECKING:
    from per_tutorial.dqn.learner import DQNLearner

HELP = "let agents play greedily: those of a file, or one that comes with the repository"

VIDEO_SEED = 1  # of the episode that is filmed
MAX_VIDEO_FRAMES = 1_000  # the episode itself is played to its end


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the agent, the number of episodes, and the video."""
    parser.add_argument(
        "agent",
        metavar="AGENT",
        help=f"a file that `train --save FILE` wrote, or a name: {', '.join(agent_names())}",
    )
    parser.add_argument(
        "--episodes", type=int, default=30, help="how many, 2 or more (default: %(default)s)"
    )
    parser.add_argument(
        "--video", metavar="FILE", help="film an episode of the first agent (MP4, without sound)"
    )
    parser.add_argument(
        "--trusted",
        action="store_true",
        help="the file may name an environment as module:Name-v0, whose module is then imported",
    )
    parser.add_argument("--device", default="cpu", help="PyTorch device (default: %(default)s)")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="float32",
        help="of the arithmetic in the network; auto: the faster one here (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Load, play, print, and film an episode if requested."""
    episodes = whole_number("--episodes", arguments.episodes, minimum=2, maximum=MAX_EPISODES)
    check_targets(video=arguments.video)
    if arguments.video and not arguments.video.lower().endswith(".mp4"):
        raise ValueError(f"--video: must end in .mp4, got {arguments.video!r}")

    from per_tutorial.dqn.training import evaluate
    from per_tutorial.experiments.statistics.estimates import estimate

    agent = _load(arguments)
    if arguments.video:
        _check_filmable(agent.config.env)
    stack = evaluate(agent, episodes)
    for seed, returns in zip(agent.seeds, stack, strict=True):
        which = arguments.agent if len(stack) == 1 else f"seed {seed}"
        if len(stack) == 1:
            print(" ".join(f"{value:g}" for value in returns))
        mean, low, high = estimate(returns)
        print(
            f"{which}: mean return {mean:.1f}, 95 % interval [{low:.1f}, {high:.1f}], "
            f"{len(returns)} episodes"
        )
    if arguments.video:
        value = _film(agent, arguments.video)
        print(f"{arguments.video}: an episode of seed {agent.seeds[0]}, return {value:g}")


def _load(arguments: argparse.Namespace) -> "DQNLearner":
    """The agents of a file or a name; those of the repository are trusted."""
    name = arguments.agent
    options = {"precision": arguments.precision}
    if name in agent_names():
        return load_agent(name, arguments.device, **options)
    if not os.path.isfile(name):
        names = ", ".join(agent_names())
        raise ValueError(
            f"AGENT: must be a file of `train --save`, or one of {names}, got {name!r}"
        )

    from per_tutorial.dqn.learner import DQNLearner

    return DQNLearner.load(name, arguments.device, trusted=arguments.trusted, **options)


def _check_filmable(env: str) -> None:
    """Raise ValueError, before anything is played, if the environment renders no pictures."""
    import gymnasium as gym

    if env.startswith("ALE/"):
        return
    modes = [] if env.startswith("MinAtar/") else gym.make(env).metadata.get("render_modes", [])
    if "rgb_array" not in modes:
        raise ValueError(f"--video: {env!r} draws no pictures, it cannot be filmed")


def _film(agent: "DQNLearner", path: str) -> float:
    """Film one episode of the first agent; returns the episode's return."""
    from per_tutorial.dqn.recording import record_episode

    config = agent.config
    env: Any = config.env
    if env.startswith("ALE/"):
        from per_tutorial.dqn.environments.atari import game_options, make_atari_reference

        env = make_atari_reference(config.env, **game_options(config), render_mode="rgb_array")
    return record_episode(
        agent.policy(0),
        env,
        path,
        seed=VIDEO_SEED,
        max_episode_steps=config.max_episode_steps,
        max_frames=MAX_VIDEO_FRAMES,
    )
