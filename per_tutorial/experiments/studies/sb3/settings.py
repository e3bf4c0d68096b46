"""The settings of a run that Stable-Baselines3 trains, and the version of SB3 that it needs."""

import dataclasses
import json
import re
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Self

from per_tutorial.common.arguments import one_of, real_number, whole_number
from per_tutorial.replay.samplers import SAMPLERS

LIBRARY = "stable-baselines3"
OLDEST = (2, 8)  # as in the extra [sb3]

AGENTS = ("DQN", "SAC", "TD3")
THEIRS = "sb3"  # SB3's own agent with its own replay buffer

# Arguments of SB3's agents that `options` must not hold: they have a field, or the study sets them.
NO_OPTIONS = (
    *("policy", "env", "seed", "device", "verbose", "learning_rate", "learning_starts"),
    *("policy_kwargs", "action_noise", "replay_buffer_class", "replay_buffer_kwargs"),
    *("alpha", "beta"),
)


@dataclass(frozen=True)
class SB3Config:
    """Settings of one run; everything else has the default of the installed SB3.

    Invalid settings raise ValueError or TypeError.

    Args:
        agent: one of `AGENTS`.
        replay: "sb3" for SB3's own agent, unchanged; or the name of a sampler, for the agent of
            `per_tutorial.integrations.sb3` (`PrioritizedDQN` etc.) with that sampler's defaults.
        env: id of a Gymnasium environment.
        env_options: keyword arguments of `gymnasium.make`.
        max_episode_steps: time limit of an episode in place of the environment's own.
        steps: environment steps.
        hidden: units of each hidden layer, of every network.
        learning_rate: η, constant.
        learning_starts: steps of random actions before the first update.
        action_noise: standard deviation of the normal noise on actions; None: SB3 adds none.
        options: other arguments of SB3's agent, by name.
        device: PyTorch device.
    """

    agent: str = "DQN"
    replay: str = THEIRS
    env: str = "CartPole-v1"
    env_options: dict[str, Any] = field(default_factory=dict)
    max_episode_steps: int | None = None
    steps: int = 10_000
    hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 1e-3
    learning_starts: int = 200
    action_noise: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    environments: ClassVar[int] = 1

    def __post_init__(self) -> None:
        one_of("agent", self.agent, AGENTS)
        one_of("replay", self.replay, (THEIRS, *SAMPLERS))
        for name in ("env", "device"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                raise TypeError(f"{name}: must be a non-empty string, got {getattr(self, name)!r}")
        whole_number("steps", self.steps)
        whole_number("learning_starts", self.learning_starts, 0)
        real_number("learning_rate", self.learning_rate, above=0)
        if self.max_episode_steps is not None:
            whole_number("max_episode_steps", self.max_episode_steps)
        if self.action_noise is not None:
            real_number("action_noise", self.action_noise, above=0)
        if not isinstance(self.hidden, (tuple, list)):  # JSON gives back a list
            raise TypeError(f"hidden: must be a tuple of integers, got {self.hidden!r}")
        object.__setattr__(
            self, "hidden", tuple(whole_number("hidden", one) for one in self.hidden)
        )
        for name in ("env_options", "options"):
            _check_options(name, getattr(self, name))
        taken = [name for name in self.options if name in NO_OPTIONS]
        if taken:
            raise ValueError(f"options: must not hold what the study decides, got {taken}")

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


def _check_options(name: str, options: Any) -> None:
    """Raise a TypeError unless they survive JSON, as in the heading of a results file."""
    try:
        kept = isinstance(options, dict) and json.loads(json.dumps(options)) == options
    except (TypeError, ValueError):
        kept = False
    if not kept:
        raise TypeError(f"{name}: must be a dict that JSON can hold, got {options!r}")


def library_version() -> str:
    """The version of Stable-Baselines3 that is installed.

    Raises:
        ImportError: there is none, or it is too old.
    """
    needed = ".".join(map(str, OLDEST))
    try:
        found = version(LIBRARY)
    except PackageNotFoundError as error:
        raise ImportError(
            "This study trains agents of Stable-Baselines3, which is not installed: "
            'pip install "per_tutorial[sb3]"'
        ) from error
    if tuple(map(int, re.findall(r"\d+", found)[:2])) < OLDEST:
        raise ImportError(
            f"This study needs Stable-Baselines3 {needed} or newer, got {found}: "
            'pip install -U "per_tutorial[sb3]"'
        )
    return found
