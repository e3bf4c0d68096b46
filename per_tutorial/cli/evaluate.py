"""`evaluate`: let the agents of a file play greedily."""

import os
from typing import TYPE_CHECKING, Annotated

import tyro

from per_tutorial.cli.files import check_targets
from per_tutorial.common.arguments import whole_number
from per_tutorial.dqn.env_specs import env_spec

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
    """Let the agents of a file play greedily.

    Args:
        agent: a file that `train --save FILE` wrote, or one of notebooks/results/*.safetensors
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
    if not os.path.isfile(agent):
        raise ValueError(f"AGENT: must be a file of `train --save`, got {agent!r}")

    from per_tutorial.dqn import training
    from per_tutorial.dqn.learner import DQNLearner
    from per_tutorial.statistics import t_interval

    learner = DQNLearner.load(agent, device, precision=precision, trusted=trusted)
    if video:  # what it needs is missed before 30 episodes are played, not after them
        try:
            import moviepy  # noqa: F401
            from imageio_ffmpeg import get_ffmpeg_version

            get_ffmpeg_version()
        except RuntimeError as error:  # there is no ffmpeg
            raise ValueError(f"--video: {error}") from error
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
        from per_tutorial.dqn.recording import record_episode

        policy, env = learner.policy(0), _film_environment(learner)
        value = record_episode(policy, env, video, seed=VIDEO_SEED, max_frames=MAX_VIDEO_FRAMES)
        print(f"{video}: an episode of seed {learner.seeds[0]}, return {value:g}")


def _film_environment(learner: "DQNLearner") -> "gym.Env":
    """The agents' environment, rendered; ValueError if it draws no pictures."""
    return env_spec(learner.config.env).module.film_environment(learner.config)
