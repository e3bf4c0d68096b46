"""All settings of a training, in one frozen dataclass; the command line reads it as it is."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Self, get_type_hints

from per_tutorial.common.arguments import one_of, real_number, whole_number
from per_tutorial.dqn.env_specs import SMALLEST_FRAME, env_spec
from per_tutorial.replay.samplers.proportional import epsilon_number

#: The samplers by name (`replay.samplers.SAMPLERS`), and the settings that each of them takes.
SAMPLER_SETTINGS = {
    "uniform": (),
    "proportional": ("alpha", "priority_epsilon", "normalize"),
    "rank": ("alpha", "normalize"),
    "lap": ("alpha", "kappa"),
}

Check = Callable[[str, Any], Any]  # (name, value) of a setting → the value to keep, or an error


def _optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name}: must be a non-empty string, got {value!r}")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}: must be True or False, got {value!r}")
    return value


def _sizes(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name}: must be a tuple of integers, got {value!r}")
    return tuple(whole_number(name, size) for size in value)


def _choice(*allowed: str) -> Check:
    return partial(one_of, allowed=allowed)


_unit = partial(real_number, low=0, high=1)
_positive = partial(real_number, above=0)

# Types of settings: the type of the value, and its check.
Text = Annotated[str, _text]
Flag = Annotated[bool, _flag]
Sizes = Annotated[tuple[int, ...], _sizes]
Count = Annotated[int, whole_number]
CountOrNone = Annotated[int | None, _optional(whole_number)]
Unit = Annotated[float, _unit]
Positive = Annotated[float, _positive]
PositiveOrNone = Annotated[float | None, _optional(_positive)]
Epsilon = Annotated[float, epsilon_number]


def _linear(step: int, start: float, end: float, steps: int) -> float:
    """From ``start`` at step 0 to ``end`` at step ``steps``, constant from there on."""
    return end if step >= steps else start + (end - start) * step / steps


@dataclass(frozen=True)
class DQNConfig:
    """Settings of a training run; a wrong value raises TypeError or ValueError.

    `python -m per_tutorial train --help` prints every field with its default and the text below it.
    The defaults learn CartPole (notebooks 02 and 03). A *step* is one environment step of a run, an
    *update* one minibatch. If E environments feed a run, they make E steps at once.

    Example:
        >>> from per_tutorial import DQNConfig
        >>> config = DQNConfig(sampler="proportional", double=True, steps=10_000)
        >>> config.replace(steps=20_000).steps
        20000
        >>> DQNConfig(alpha=2)
        Traceback (most recent call last):
        ValueError: alpha: must be ...
    """

    env: Text = "CartPole-v1"
    """Gymnasium environment; ALE/… and MinAtar/… from pixels or boards"""
    max_episode_steps: CountOrNone = None
    """time limit of an episode in place of the environment's own"""
    terminal_reward: Annotated[float | None, _optional(real_number)] = None
    """reward to learn from where an episode terminates, instead of the environment's"""
    steps: Count = 20_000
    """environment steps of each run, of all its environments together"""
    environments: Count = 1
    """environments that feed each run, side by side (Atari games only)"""

    frame_size: Annotated[int, partial(whole_number, minimum=SMALLEST_FRAME)] = 84
    """height and width of an Atari frame in pixels; less than 64 takes smaller convolutions"""

    hidden: Sizes = (128, 128)
    """units of each hidden layer"""
    dueling: Flag = False
    """Q = V + A − mean(A) (Wang et al. 2016)"""
    double: Flag = False
    """the online network chooses the next action, the target network rates it (van Hasselt et al.
    2016)"""
    loss: Annotated[str, _choice("huber", "squared")] = "squared"
    """loss of δ: squared or huber"""
    kappa: Epsilon = 1.0
    """κ: beyond this |δ|, the Huber loss is straight; below, priorities of lap are all the same"""
    td_error_clip: PositiveOrNone = None
    """|δ| is clipped to this, in the priority and in the gradient"""
    discount: Unit = 0.99
    """γ"""
    n_step: Count = 1
    """steps whose rewards are summed before bootstrapping"""
    learning_rate: Positive = 1e-3
    """η of Adam, at step 0"""
    learning_rate_end: Annotated[float, partial(real_number, low=0)] = 0.0
    """η at the end, reached linearly"""
    max_grad_norm: PositiveOrNone = None
    """clip the gradient of each run to this norm"""
    batch_size: Count = 32
    """transitions of each run in an update"""
    learning_starts: Count = 100
    """steps before the first update"""
    update_every: Count = 1
    """steps between updates"""
    target_update_every: Count = 1
    """updates between target updates"""
    tau: Annotated[float, partial(real_number, low=0, high=1, above=0)] = 0.02
    """share of the online network in a target update: 1 copies it, less is a soft update"""

    capacity: Count = 20_000
    """transitions in the replay memory of each run"""
    sampler: Annotated[str, _choice(*SAMPLER_SETTINGS)] = "uniform"
    """which are replayed: uniform, proportional (PER), rank or lap"""
    alpha: Annotated[float | None, _optional(_unit)] = None
    """α, how strongly priorities count; None: 0.7 for rank, else 0.6"""
    beta_start: Unit = 0.4
    """β, the exponent of the weights, at step 0; each call of train begins there"""
    beta_end: Unit = 1.0
    """β at the end, reached linearly"""
    priority_epsilon: Epsilon = 1e-6
    """ε in p = |δ| + ε"""
    normalize: Annotated[str, _choice("batch", "buffer", "none")] = "batch"
    """what the weights are normalised over: batch, buffer or none"""

    epsilon_schedule: Annotated[str, _choice("linear", "exponential")] = "linear"
    """how exploration decays: linear or exponential"""
    epsilon_start: Unit = 1.0
    """share of random actions at step 0"""
    epsilon_end: Unit = 0.05
    """share of random actions at the end"""
    epsilon_steps: Count = 5_000
    """steps of the linear schedule"""
    epsilon_decay: Unit = 5e-4
    """rate of the exponential schedule, per step"""

    precision: Annotated[str, _choice("float32", "bfloat16")] = "float32"
    """precision of the network's arithmetic; bfloat16 is faster from pixels, on processors made for
    it"""
    compiled: Flag = False
    """on a GPU, record an update as one CUDA graph: the same numbers, faster; elsewhere it changes
    nothing"""
    device: Text = "cpu"
    """PyTorch device"""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self), include_extras=True).items():
            check: Check = kind.__metadata__[0]
            object.__setattr__(self, name, check(name, getattr(self, name)))
        self._at_least("learning_starts", "batch_size")
        self._at_least("capacity", "learning_starts")  # learning would never start
        self._at_least("capacity", "n_step")
        self._at_least("capacity", "environments")
        if self.environments > 1 and not env_spec(self.env).side_by_side:
            raise ValueError(
                f"environments: must be 1 unless env is an Atari game (ALE/…), "
                f"got {self.environments} with {self.env!r}"
            )
        if self.steps % self.environments:
            raise ValueError(
                f"steps: must be a multiple of environments ({self.environments}), got {self.steps}"
            )

    def _at_least(self, name: str, other: str) -> None:
        value, smallest = getattr(self, name), getattr(self, other)
        if value < smallest:
            raise ValueError(f"{name}: must be at least {other} ({smallest}), got {value}")

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def epsilon(self, step: int) -> float:
        """ε of the policy at an environment step."""
        if self.epsilon_schedule == "linear":
            return _linear(step, self.epsilon_start, self.epsilon_end, self.epsilon_steps)
        gap = self.epsilon_start - self.epsilon_end
        return self.epsilon_end + gap * math.exp(-self.epsilon_decay * step)

    def step_size(self, step: int) -> float:
        """The learning rate η at an environment step."""
        return _linear(step, self.learning_rate, self.learning_rate_end, self.steps)

    def beta(self, step: int) -> float:
        """β of the importance-sampling weights at an environment step."""
        return _linear(step, self.beta_start, self.beta_end, self.steps)
