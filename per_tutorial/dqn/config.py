"""All settings of a training, in one frozen dataclass; the command line is generated from it."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Self

from per_tutorial.common.arguments import one_of, real_number, whole_number
from per_tutorial.dqn import schedules
from per_tutorial.dqn.environments import env_spec
from per_tutorial.replay.samplers import SAMPLERS
from per_tutorial.replay.samplers.proportional import epsilon_number

MAX_LAYERS = 100

LOSSES = ("huber", "squared", "pal")
OPTIMIZERS = ("adam", "rmsprop")
BETA_SCHEDULES = ("linear", "compounding")
EPSILON_SCHEDULES = ("linear", "exponential", "geometric")
AUTO = "auto"  # resolved when the networks are made (`autotune`)
PRECISIONS = (AUTO, "float32", "bfloat16")


Check = Callable[[str, Any], Any]  # (name, value) of a setting → the value to keep, or an error


def _setting(default: Any, check: Check, text: str) -> Any:
    return field(default=default, metadata={"check": check, "help": text})


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


def _flag_or_auto(name: str, value: Any) -> bool | str:
    if not isinstance(value, bool) and (not isinstance(value, str) or value != AUTO):
        raise TypeError(f"{name}: must be True, False or {AUTO!r}, got {value!r}")
    return value


def _sizes(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name}: must be a tuple of integers, got {value!r}")
    if len(value) > MAX_LAYERS:
        raise ValueError(f"{name}: must be at most {MAX_LAYERS} layers, got {len(value)}")
    return tuple(whole_number(name, size) for size in value)


_unit = partial(real_number, low=0, high=1)
_positive = partial(real_number, above=0)


@dataclass(frozen=True)
class DQNConfig:
    """Settings of a training run; a wrong value raises TypeError or ValueError.

    `python -m per_tutorial train --help` prints every field with its default and a help text. The
    defaults learn CartPole (notebooks 02 and 03). A *step* is one environment step of a run, an
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

    env: str = _setting(
        "CartPole-v1", _text, "Gymnasium environment; ALE/… and MinAtar/… from pixels or boards"
    )
    max_episode_steps: int | None = _setting(
        None, _optional(whole_number), "time limit of an episode in place of the environment's own"
    )
    terminal_reward: float | None = _setting(
        None,
        _optional(real_number),
        "reward to learn from where an episode terminates, instead of the environment's",
    )
    steps: int = _setting(
        20_000, whole_number, "environment steps of each run, of all its environments together"
    )
    environments: int = _setting(
        1, whole_number, "environments that feed each run, side by side (Atari games only)"
    )
    vectorization: str = _setting(
        "sync",
        partial(one_of, allowed=("sync", "vector_entry_point")),
        "sync: every run has an environment and a generator of its own; vector_entry_point: "
        "Gymnasium's vectorised version, faster for many runs, its generator shared by all",
    )

    frame_size: int = _setting(
        84,
        partial(whole_number, minimum=17),
        "height and width of an Atari frame in pixels; less than 64 takes smaller convolutions",
    )
    sticky_actions: float = _setting(
        0.0, _unit, "probability that an Atari emulator repeats the previous action, in each frame"
    )

    hidden: tuple[int, ...] = _setting((128, 128), _sizes, "units of each hidden layer")
    dueling: bool = _setting(False, _flag, "Q = V + A − mean(A) (Wang et al. 2016)")
    double: bool = _setting(
        False,
        _flag,
        "the online network chooses the next action, the target network rates it "
        "(van Hasselt et al. 2016)",
    )
    loss: str = _setting(
        "squared",
        partial(one_of, allowed=LOSSES),
        "loss of δ; pal, on uniform draws, moves the networks as lap does on average",
    )
    kappa: float = _setting(
        1.0,
        epsilon_number,
        "κ: beyond this |δ|, the Huber loss is straight; below, priorities of lap are all the same",
    )
    td_error_clip: float | None = _setting(
        None, _optional(_positive), "|δ| is clipped to this, in the priority and in the gradient"
    )
    discount: float = _setting(0.99, _unit, "γ")
    n_step: int = _setting(1, whole_number, "steps whose rewards are summed before bootstrapping")
    optimizer: str = _setting(
        "adam",
        partial(one_of, allowed=OPTIMIZERS),
        "adam, or rmsprop: centred, its decay 0.95 and its ε 0.01 as in Mnih et al. (2015)",
    )
    momentum: float = _setting(
        0.0, _unit, "momentum of rmsprop: share of a step that the next one repeats"
    )
    learning_rate: float = _setting(1e-3, _positive, "η of the optimiser, at step 0")
    learning_rate_end: float = _setting(
        0.0, partial(real_number, low=0), "η at the end, reached linearly"
    )
    max_grad_norm: float | None = _setting(
        None, _optional(_positive), "clip the gradient of each run to this norm"
    )
    batch_size: int = _setting(32, whole_number, "transitions of each run in an update")
    learning_starts: int = _setting(100, whole_number, "steps before the first update")
    update_every: int = _setting(1, whole_number, "steps between updates")
    target_update_every: int = _setting(1, whole_number, "updates between target updates")
    tau: float = _setting(
        0.02,
        partial(real_number, low=0, high=1, above=0),
        "share of the online network in a target update: 1 copies it, less is a soft update",
    )

    capacity: int = _setting(20_000, whole_number, "transitions in the replay memory of each run")
    sampler: str = _setting("uniform", partial(one_of, allowed=SAMPLERS), "which are replayed")
    alpha: float = _setting(0.6, _unit, "α, how strongly priorities count")
    beta_start: float = _setting(0.4, _unit, "β, the exponent of the weights, at step 0")
    beta_end: float = _setting(1.0, _unit, "β at the end")
    beta_steps: int | None = _setting(
        None, _optional(whole_number), "steps over which β changes; None: all"
    )
    beta_schedule: str = _setting(
        "linear",
        partial(one_of, allowed=BETA_SCHEDULES),
        "how β changes; compounding is a common mistake, kept for comparison",
    )
    priority_epsilon: float = _setting(1e-6, epsilon_number, "ε in p = |δ| + ε")
    normalize: str = _setting(
        "batch",
        partial(one_of, allowed=("batch", "buffer", "none")),
        "what the weights are normalised over",
    )

    epsilon_schedule: str = _setting(
        "linear", partial(one_of, allowed=EPSILON_SCHEDULES), "how exploration decays"
    )
    epsilon_start: float = _setting(1.0, _unit, "share of random actions at step 0")
    epsilon_end: float = _setting(0.05, _unit, "share of random actions at the end")
    epsilon_delay: int = _setting(
        0, partial(whole_number, minimum=0), "steps at epsilon_start before exploration decays"
    )
    epsilon_steps: int = _setting(5_000, whole_number, "steps of the linear schedule")
    epsilon_decay: float = _setting(5e-4, _unit, "rate of the other two schedules, per step")

    precision: str = _setting(
        AUTO,
        partial(one_of, allowed=PRECISIONS),
        "precision of the network's arithmetic; auto is float32, but from pixels the faster one of "
        "the two on this machine: bfloat16 on processors made for it",
    )
    compiled: bool | str = _setting(
        False,
        _flag_or_auto,
        "make an update one compiled function (torch.compile): faster after some seconds at the "
        "start; a CPU needs a C++ compiler and Python's headers; auto: if they are there and it is "
        "worth it",
    )
    device: str = _setting("cpu", _text, "PyTorch device")

    def __post_init__(self) -> None:
        for one in fields(self):
            value = one.metadata["check"](one.name, getattr(self, one.name))
            object.__setattr__(self, one.name, value)
        if self.precision == AUTO and not env_spec(self.env).frames:
            object.__setattr__(self, "precision", "float32")  # on any machine
        if self.learning_starts < self.batch_size:
            raise ValueError(
                f"learning_starts: must be at least batch_size ({self.batch_size}), "
                f"got {self.learning_starts}"
            )
        if self.capacity < self.learning_starts:  # learning would never start
            raise ValueError(
                f"capacity: must be at least learning_starts ({self.learning_starts}), "
                f"got {self.capacity}"
            )
        if self.capacity < self.n_step:
            raise ValueError(
                f"n_step: must be at most capacity ({self.capacity}), got {self.n_step}"
            )

        if self.environments > 1 and not env_spec(self.env).side_by_side:
            raise ValueError(
                f"environments: must be 1 unless env is an Atari game (ALE/…), "
                f"got {self.environments} with {self.env!r}"
            )
        if self.steps % self.environments:
            raise ValueError(
                f"steps: must be a multiple of environments ({self.environments}), got {self.steps}"
            )
        if self.capacity < self.environments:
            raise ValueError(
                f"environments: must be at most capacity ({self.capacity}), got {self.environments}"
            )

    @property
    def storage(self) -> str:
        """The storage of the transitions, a name in `dqn.training.STORAGES`."""
        return env_spec(self.env).storage

    @property
    def observation_dtype(self) -> str:
        """The dtype of stored observations, for storages that support several."""
        return env_spec(self.env).observation_dtype

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def epsilon(self, step: int) -> float:
        """ε of the policy at an environment step."""
        step = max(0, step - self.epsilon_delay)
        if self.epsilon_schedule == "linear":
            return schedules.linear(step, self.epsilon_start, self.epsilon_end, self.epsilon_steps)
        decay = getattr(schedules, self.epsilon_schedule)
        return decay(step, self.epsilon_start, self.epsilon_end, self.epsilon_decay)

    def step_size(self, step: int) -> float:
        """The learning rate η at an environment step."""
        return schedules.linear(step, self.learning_rate, self.learning_rate_end, self.steps)

    def beta(self, step: int) -> float:
        """β of the importance-sampling weights at an environment step."""
        change = getattr(schedules, self.beta_schedule)
        return change(step, self.beta_start, self.beta_end, self.beta_steps or self.steps)
