"""Runs that Stable-Baselines3's DQN trains, with its own replay or with ours.

Running them needs the extra [sb3]; reading their results does not.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import real_number, whole_number
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History

if TYPE_CHECKING:
    from stable_baselines3 import DQN
    from stable_baselines3.common.monitor import Monitor

LIBRARY = "stable-baselines3"
THEIRS = "sb3"  # SB3's own agent with its own replay buffer
EVALUATION_SEED = 10_000  # as in `per_tutorial.dqn.training.evaluate`


@dataclass(frozen=True)
class SB3Config:
    """Settings of one run; everything else has the default of the installed SB3.

    Invalid settings raise ValueError or TypeError.

    Args:
        replay: "sb3" for SB3's own agent, unchanged; or the name of a sampler, for the agent
            `per_tutorial.integrations.sb3.PrioritizedDQN` with that sampler's defaults.
        env: id of a Gymnasium environment.
        max_episode_steps: time limit of an episode in place of the environment's own.
        steps: environment steps.
        hidden: units of each hidden layer.
        learning_rate: η, constant.
        learning_starts: steps of random actions before the first update.
        options: other arguments of SB3's agent, by name.
        device: PyTorch device.
    """

    replay: str = THEIRS
    env: str = "CartPole-v1"
    max_episode_steps: int | None = None
    steps: int = 10_000
    hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 1e-3
    learning_starts: int = 200
    options: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    environments: ClassVar[int] = 1

    def __post_init__(self) -> None:
        whole_number("steps", self.steps)
        whole_number("learning_starts", self.learning_starts, 0)
        real_number("learning_rate", self.learning_rate, above=0)
        if self.max_episode_steps is not None:
            whole_number("max_episode_steps", self.max_episode_steps)
        taken = self.options.keys() & {each.name for each in dataclasses.fields(self)}
        if taken:
            raise ValueError(f"options: must not hold what has a field, got {sorted(taken)}")

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


def train(
    config: SB3Config, seeds: Iterable[int], episodes: int
) -> tuple[History, NDArray[np.float64]]:
    """Train one run after another, and evaluate each greedily.

    A run depends on its own seed alone. SB3 also seeds the global generators of Python, NumPy and
    PyTorch.

    Args:
        config: of every run.
        seeds: one for each run.
        episodes: evaluation episodes of each run; the same ones for every arm.

    Returns:
        The episodes of all runs, in a `History` without measures, and the mean greedy return
        (runs,).
    """
    # A history holds settings of our own learner; here only its steps are read.
    history = History(DQNConfig(env=config.env, steps=config.steps), seeds)
    greedy = []
    for run, seed in enumerate(history.seeds):
        model, played = _train_one(config, seed)
        lengths, returns = played.get_episode_lengths(), played.get_episode_rewards()
        history.episodes += [
            (run, end, float(value), length)
            for end, value, length in zip(
                np.cumsum(lengths).tolist(), returns, lengths, strict=True
            )
        ]
        greedy.append(_evaluate(model, config, seed, episodes))
    history.step = config.steps
    return history, np.array(greedy)


def _train_one(config: SB3Config, seed: int) -> "tuple[DQN, Monitor]":
    """The trained agent, and its environment, which has recorded the episodes."""
    from stable_baselines3 import DQN
    from stable_baselines3.common.logger import Logger

    from per_tutorial.integrations.sb3 import PrioritizedDQN

    agent, options = DQN, config.options
    if config.replay != THEIRS:
        agent = PrioritizedDQN
        options = options | {"replay_buffer_kwargs": {"sampler": config.replay}}
    environment = _make_environment(config)
    model = agent(
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
    model.learn(config.steps)
    return model, environment


def _make_environment(config: SB3Config) -> "Monitor":
    """A new environment, which records the return and the length of each episode."""
    import gymnasium as gym
    from stable_baselines3.common.monitor import Monitor

    return Monitor(gym.make(config.env, max_episode_steps=config.max_episode_steps))


def _evaluate(model: "DQN", config: SB3Config, seed: int, episodes: int) -> float:
    """The mean return of the greedy policy over new episodes, whose seeds follow from the run's."""
    environment = _make_environment(config)
    for episode in range(episodes):
        observation, _ = environment.reset(seed=EVALUATION_SEED + seed * episodes + episode)
        done = False
        while not done:
            action, _ = model.predict(observation, deterministic=True)  # 0-d
            observation, _, terminated, truncated, _ = environment.step(action[()])
            done = terminated or truncated
    return float(np.mean(environment.get_episode_rewards()))
