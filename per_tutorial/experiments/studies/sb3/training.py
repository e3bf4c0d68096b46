"""Trains and evaluates agents of Stable-Baselines3, its own or ours."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import per_tutorial.experiments.cliffwalk.environment  # noqa: F401 - registers its environment
from per_tutorial.common.arguments import whole_number
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.experiments.studies.sb3.settings import THEIRS, SB3Config

if TYPE_CHECKING:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.type_aliases import MaybeCallback

EVALUATION_SEED = 10_000  # as in `per_tutorial.dqn.training.evaluate`


def train(
    config: SB3Config, seeds: Iterable[int], episodes: int
) -> tuple[History, NDArray[np.float64]]:
    """Train one run after another, and evaluate each greedily.

    A run depends on its own seed alone: on the same machine with the same versions, the same seed
    gives the same run. SB3 also seeds the global generators of Python, NumPy and PyTorch.

    Args:
        config: of every run.
        seeds: one for each run.
        episodes: evaluation episodes of each run; the same ones for every arm.

    Returns:
        The episodes of all runs, in a `History` without measures, and the mean greedy return
        (runs,).
    """
    episodes = whole_number("episodes", episodes)
    # A history holds settings of our own learner; here only its steps are read.
    history = History(DQNConfig(env=config.env, steps=config.steps), seeds)
    greedy = []
    for run, seed in enumerate(history.seeds):
        model, played = train_one(config, seed)
        lengths = played.get_episode_lengths()
        ends, returns = np.cumsum(lengths).tolist(), played.get_episode_rewards()
        history.episodes += [
            (run, end, float(value), length)
            for end, value, length in zip(ends, returns, lengths, strict=True)
        ]
        greedy.append(evaluate(model, config, seed, episodes))
        played.close()
    history.step = config.steps
    return history, np.array(greedy)


def train_one(
    config: SB3Config, seed: int, callback: "MaybeCallback" = None
) -> "tuple[OffPolicyAlgorithm, Monitor]":
    """Train one run; returns the agent and its environment, which has recorded the episodes.

    ``callback`` is one of SB3's; it may end the training.
    """
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.noise import NormalActionNoise

    environment = make_environment(config)
    options: dict[str, Any] = config.options
    if config.action_noise is not None:
        size = environment.action_space.shape
        assert size is not None, "noise is for continuous actions"
        noise = NormalActionNoise(np.zeros(size), np.full(size, config.action_noise))
        options = options | {"action_noise": noise}
    if config.replay != THEIRS:
        options = options | {"replay_buffer_kwargs": {"sampler": config.replay}}
    model = agent_class(config)(
        "MlpPolicy",
        environment,
        learning_rate=config.learning_rate,
        learning_starts=config.learning_starts,
        policy_kwargs={"net_arch": list(config.hidden)},
        seed=seed,
        device=config.device,
        **options,
    )
    model.set_logger(Logger(None, []))  # SB3's own would leave a temporary folder
    model.learn(config.steps, callback=callback)
    return model, environment


def agent_class(config: SB3Config) -> "type[Any]":
    """The class of the agent: SB3's own, or that of `per_tutorial.integrations.sb3`."""
    import stable_baselines3

    from per_tutorial.integrations import sb3

    if config.replay == THEIRS:
        return getattr(stable_baselines3, config.agent)
    return getattr(sb3, f"Prioritized{config.agent}")


def make_environment(config: SB3Config) -> "Monitor":
    """A new environment, which records the return and the length of each episode."""
    from stable_baselines3.common.monitor import Monitor

    options = dict(config.env_options)
    if config.max_episode_steps is not None:
        options["max_episode_steps"] = config.max_episode_steps
    return Monitor(gym.make(config.env, **options))


def evaluate(model: "OffPolicyAlgorithm", config: SB3Config, seed: int, episodes: int) -> float:
    """The mean return of the greedy policy over new episodes, whose seeds follow from the run's."""
    environment = make_environment(config)
    for episode in range(episodes):
        observation, _ = environment.reset(seed=EVALUATION_SEED + seed * episodes + episode)
        done = False
        while not done:
            action, _ = model.predict(observation, deterministic=True)  # 0-d if discrete
            observation, _, terminated, truncated, _ = environment.step(action[()])
            done = terminated or truncated
    environment.close()
    return float(np.mean(environment.get_episode_rewards()))
