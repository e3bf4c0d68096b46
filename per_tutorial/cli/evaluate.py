"""`evaluate`: let agents play greedily, from a file or one that comes with the repository."""

import os
from typing import TYPE_CHECKING, Annotated

import tyro

from per_tutorial.cli.files import check_targets
from per_tutorial.common.arguments import whole_number
from per_tutorial.dqn.env_specs import env_spec
from per_tutorial.dqn.pretrained import AGENTS, load_agent

if TYPE_CHECKING:
    import gymnasium as gym

    from per_tutorial.dqn.learner import DQNLearner

VIDEO_SEED = 1  # of the episode that is filmed
MAX_VIDEO_FRAMES = 1_000  # the episode itself is played to its end


def evaluate(
    agent: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="AGENT")],
    episodes: int = 30,
    video: str | None = None,
    trusted: bool = False,
    device: str = "cpu",
    precision: str = "float32",
) -> None:
    """Let agents play greedily: those of a file, or one that comes with the repository.

    Args:
        agent: a file that `train --save FILE` wrote, or a name: long-cartpole, pong
        episodes: how many, 2 or more
        video: MP4 file for a film of an episode of the first agent, without sound
        trusted: the file may name an environment as module:Name-v0, whose module is then imported
        device: PyTorch device
        precision: of the arithmetic in the network, float32 or bfloat16
    """
    whole_number("--episodes", episodes, minimum=2)
    check_targets(video=video)
    if video and os.path.splitext(video)[1].lower() != ".mp4":
        raise ValueError(f"--video: must end in .mp4, got {video!r}")

    from per_tutorial.dqn import training
    from per_tutorial.statistics import t_interval

    learner = _load(agent, device, precision, trusted)
    if video:  # what it needs is missed before 30 episodes are played, not after them
        import moviepy  # noqa: F401

        _film_environment(learner).close()
    all_returns = training.evaluate(learner, episodes)
    for seed, returns in zip(learner.seeds, all_returns, strict=True):
        which = agent if len(all_returns) == 1 else f"seed {seed}"
        if len(all_returns) == 1:
            print(" ".join(f"{value:g}" for value in returns))
        mean, low, high = t_interval(returns)
        print(
            f"{which}: mean return {mean:.1f}, 95 % interval [{low:.1f}, {high:.1f}], "
            f"{len(returns)} episodes"
        )
    if video:
        value = _film(learner, video)
        print(f"{video}: an episode of seed {learner.seeds[0]}, return {value:g}")


def _load(name: str, device: str, precision: str, trusted: bool) -> "DQNLearner":
    """The agents of a file or a name; those of the repository are trusted."""
    if name in AGENTS:
        return load_agent(name, device, precision=precision)
    if not os.path.isfile(name):
        names = ", ".join(AGENTS)
        raise ValueError(
            f"AGENT: must be a file of `train --save`, or one of {names}, got {name!r}"
        )

    from per_tutorial.dqn.learner import DQNLearner

    return DQNLearner.load(name, device, precision=precision, trusted=trusted)


def _film_environment(learner: "DQNLearner") -> "gym.Env":
    """The agents' environment, rendered; ValueError if it draws no pictures."""
    return env_spec(learner.config.env).module().film_environment(learner.config)


def _film(learner: "DQNLearner", path: str) -> float:
    """Film one episode of the first agent; returns the episode's return."""
    from per_tutorial.dqn import recording

    return recording.record_episode(
        learner.policy(0),
        _film_environment(learner),
        path,
        seed=VIDEO_SEED,
        max_frames=MAX_VIDEO_FRAMES,
    )
