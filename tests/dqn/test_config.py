"""Settings: what is allowed, the errors, and how ε, β and η change with the step."""

import dataclasses
import inspect
import math
import re

import numpy as np
import pytest

from per_tutorial.dqn import schedules
from per_tutorial.dqn.config import EPSILON_SCHEDULES, DQNConfig
from per_tutorial.replay import SAMPLERS

SOURCE = inspect.getsource(DQNConfig)
FIELDS = [field.name for field in dataclasses.fields(DQNConfig)]

# Values that a field refuses, by what it holds: (value, exception, what the message says is
# allowed)
NO_TEXT = [(5, TypeError, "a non-empty string"), ("", TypeError, "a non-empty string")]
NO_FLAG = [(1, TypeError, "True or False"), ("yes", TypeError, "True or False")]
NO_COUNT = [
    (0, ValueError, "at least 1"),
    (-3, ValueError, "at least 1"),
    (2.0, TypeError, "an integer"),
    ("9", TypeError, "an integer"),
    (True, TypeError, "an integer"),
]
NO_NUMBER = [
    (math.nan, ValueError, ""),
    (math.inf, ValueError, ""),
    ("0.5", TypeError, "a number"),
    (True, TypeError, "a number"),
]
NO_SHARE = [
    (-0.1, ValueError, "in [0, 1]"),
    (1.1, ValueError, "in [0, 1]"),
    (None, TypeError, "a number"),
    *NO_NUMBER,
]
NOT_POSITIVE = [
    (0, ValueError, "greater than 0"),
    (-1e-3, ValueError, "greater than 0"),
    *NO_NUMBER,
]
NONE = (None, TypeError, "")


def none_of(*choices):
    allowed = ", ".join(map(repr, choices))
    return [
        ("nonsense", ValueError, allowed),
        (3, ValueError, allowed),
        (None, ValueError, allowed),
    ]


BAD = {
    "env": [*NO_TEXT, NONE],
    "max_episode_steps": NO_COUNT,
    "terminal_reward": NO_NUMBER,
    "steps": [*NO_COUNT, NONE],
    "environments": [*NO_COUNT, NONE],
    "vectorization": none_of("sync", "vector_entry_point"),
    "frame_size": [(16, ValueError, "at least 17"), *NO_COUNT[2:], NONE],
    "sticky_actions": NO_SHARE,
    "hidden": [
        (64, TypeError, "a tuple of integers"),
        ("64", TypeError, "a tuple of integers"),
        ((64, 0), ValueError, "at least 1"),
        ((64, 1.5), TypeError, "an integer"),
        NONE,
    ],
    "dueling": [*NO_FLAG, NONE],
    "double": [*NO_FLAG, NONE],
    "loss": none_of("huber", "squared"),
    "kappa": [(1e-21, ValueError, "in [1e-20, 1e+20]"), *NOT_POSITIVE, NONE],
    "td_error_clip": NOT_POSITIVE,
    "discount": NO_SHARE,
    "n_step": [*NO_COUNT, NONE],
    "optimizer": none_of("adam", "rmsprop"),
    "momentum": NO_SHARE,
    "learning_rate": [*NOT_POSITIVE, NONE],
    "learning_rate_end": [(-1e-3, ValueError, "in [0, inf]"), *NO_NUMBER, NONE],
    "max_grad_norm": NOT_POSITIVE,
    "batch_size": [*NO_COUNT, NONE],
    "learning_starts": [*NO_COUNT, NONE],
    "update_every": [*NO_COUNT, NONE],
    "target_update_every": [*NO_COUNT, NONE],
    "tau": [(0, ValueError, "greater than 0"), (1.1, ValueError, "in [0, 1]"), *NO_NUMBER, NONE],
    "capacity": [*NO_COUNT, NONE],
    "sampler": none_of(*SAMPLERS),
    "alpha": NO_SHARE,
    "beta_start": NO_SHARE,
    "beta_end": NO_SHARE,
    "beta_steps": NO_COUNT,
    "priority_epsilon": [*NOT_POSITIVE, NONE],
    "normalize": none_of("batch", "buffer", "none"),
    "epsilon_schedule": none_of(*EPSILON_SCHEDULES),
    "epsilon_start": NO_SHARE,
    "epsilon_end": NO_SHARE,
    "epsilon_delay": [(-1, ValueError, "at least 0"), *NO_COUNT[2:], NONE],
    "epsilon_steps": [*NO_COUNT, NONE],
    "epsilon_decay": NO_SHARE,
    "precision": none_of("float32", "bfloat16"),
    "compiled": [*NO_FLAG, NONE],
    "device": [*NO_TEXT, NONE],
}


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_checked_explained_and_in_the_table_above(name):
    field = DQNConfig.__dataclass_fields__[name]
    assert re.search(rf'^    {name}: .* = .*\n    """\S', SOURCE, re.MULTILINE)
    assert field.default is not dataclasses.MISSING
    assert BAD[name]


@pytest.mark.parametrize(
    "name, value, exception, allowed",
    [(name, *example) for name, examples in BAD.items() for example in examples],
)
def test_a_wrong_value_is_named_with_what_is_allowed(name, value, exception, allowed):
    with pytest.raises(exception) as caught:
        DQNConfig(**{name: value})
    message = str(caught.value)
    assert re.fullmatch(rf"{name}: must be .+, got .+", message)
    assert allowed in message
    wrong_part = value[-1] if isinstance(value, tuple) else value
    assert message.endswith(f"got {wrong_part!r}")


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"batch_size": 50, "learning_starts": 49},
            "learning_starts: must be at least batch_size (50), got 49",
        ),
        (  # or learning would never start
            {"learning_starts": 100, "capacity": 99},
            "capacity: must be at least learning_starts (100), got 99",
        ),
        ({"n_step": 101, "capacity": 100}, "capacity: must be at least n_step (101), got 100"),
    ],
)
def test_fields_that_do_not_fit_together(changes, message):
    with pytest.raises(ValueError) as caught:
        DQNConfig(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden": []},
        {"hidden": [np.int64(8)]},
        {"steps": np.int32(7)},
        {"discount": 1},
        {"discount": np.float32(0.5)},
        {"max_grad_norm": 10},
        {"td_error_clip": 1},
        {"n_step": 100, "capacity": 100},
        {"max_episode_steps": 200, "beta_steps": 5},
        {"batch_size": 7, "learning_starts": 7, "capacity": 7},
        {"tau": 1},
        {"terminal_reward": -100},
    ],
    ids=str,
)
def test_values_are_kept_as_plain_python_ones(changes):
    config = DQNConfig(**changes)
    for name, value in changes.items():
        kept = getattr(config, name)
        assert type(kept) in (int, float, tuple)
        assert kept == (tuple(value) if name == "hidden" else value)
        assert hash(config)


def test_a_sampler_registered_later_is_accepted(monkeypatch):
    with pytest.raises(ValueError, match="sampler: must be one of"):
        DQNConfig(sampler="newest")
    monkeypatch.setitem(SAMPLERS, "newest", SAMPLERS["uniform"])
    assert DQNConfig(sampler="newest").sampler == "newest"


def test_settings_cannot_be_changed_only_replaced():
    config = DQNConfig(alpha=0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.alpha = 0.7
    changed = config.replace(alpha=0.7)
    assert (config.alpha, changed.alpha) == (0.5, 0.7)
    assert changed.replace(alpha=0.5) == config
    with pytest.raises(ValueError, match="alpha: must be in"):
        config.replace(alpha=7)
    with pytest.raises(TypeError, match="alhpa"):
        config.replace(alhpa=0.7)


# Schedules


def test_the_linear_schedule_meets_both_ends_exactly_and_stays():
    values = [schedules.linear(step, 0.4, 0.7, steps=10) for step in (0, 5, 10, 11, 10**9)]
    assert values == [0.4, pytest.approx(0.55), 0.7, 0.7, 0.7]


def test_the_exponential_schedule_is_the_formula_of_the_pylessons_tutorials():
    """explore = min + (max − min) · exp(−decay · step)."""
    low, high, decay = 0.01, 1.0, 0.0005
    config = DQNConfig(
        epsilon_schedule="exponential", epsilon_start=high, epsilon_end=low, epsilon_decay=decay
    )
    for step in (0, 1, 500, 20_000):
        assert config.epsilon(step) == low + (high - low) * np.exp(-decay * step)
    assert config.epsilon(0) == high
    assert config.epsilon(10**9) == low


def test_the_geometric_schedule_multiplies_and_stops_at_its_end():
    config = DQNConfig(
        epsilon_schedule="geometric", epsilon_start=1.0, epsilon_end=0.1, epsilon_decay=0.25
    )
    assert [config.epsilon(step) for step in (0, 1, 2)] == [1.0, 0.75, 0.5625]
    assert config.epsilon(100) == 0.1


def test_epsilon_falls_along_its_own_steps():
    config = DQNConfig(
        epsilon_schedule="linear",
        epsilon_start=1.0,
        epsilon_end=0.2,
        epsilon_steps=40,
        steps=20_000,
    )
    assert [config.epsilon(step) for step in (0, 10, 40, 20_000)] == [1.0, 0.8, 0.2, 0.2]


@pytest.mark.parametrize("schedule", EPSILON_SCHEDULES)
def test_exploration_may_decay_later(schedule):
    config = DQNConfig(epsilon_schedule=schedule, epsilon_steps=40, epsilon_decay=0.1)
    later = config.replace(epsilon_delay=30)
    assert {later.epsilon(step) for step in range(31)} == {1.0}
    assert [later.epsilon(step) for step in range(30, 90)] == [
        config.epsilon(step) for step in range(60)
    ]


def test_beta_rises_over_all_steps_or_over_its_own():
    config = DQNConfig(steps=1000, beta_start=0.5, beta_end=1.0)
    assert [config.beta(step) for step in (0, 500, 1000)] == [0.5, 0.75, 1.0]
    sooner = config.replace(beta_steps=100)
    assert [sooner.beta(step) for step in (0, 50, 100, 1000)] == [0.5, 0.75, 1.0, 1.0]


def test_the_step_size_falls_over_all_steps():
    config = DQNConfig(steps=1000, learning_rate=0.01, learning_rate_end=0.002)
    assert [config.step_size(step) for step in (0, 500, 1000)] == [
        0.01,
        pytest.approx(0.006),
        0.002,
    ]


# Annealing: β depends on the step alone


ANNEALED = DQNConfig(sampler="proportional", steps=10_000, beta_start=0.6, beta_end=1.0)


def assert_beta_is_a_function_of_the_step(beta):
    """β0 + (1 − β0) · step / T, at every step of a training and also when asked again."""
    for step in [*range(0, 10_000), 5000, 0]:
        assert beta(step) == pytest.approx(0.6 + 0.4 * step / 10_000, abs=1e-12)


class CompoundingBeta:
    """Each step closes the share step / T of the gap that is left."""

    def __init__(self):
        self.beta = 0.6

    def __call__(self, step):
        self.beta += step / 10_000 * (1 - self.beta)
        return self.beta


class IncrementedBeta:
    """Its cousin: +0.001 a call, whatever the step."""

    def __init__(self):
        self.beta = 0.6

    def __call__(self, step):
        self.beta = min(1.0, self.beta + 0.001)
        return self.beta


def test_beta_is_a_function_of_the_step():
    assert_beta_is_a_function_of_the_step(ANNEALED.beta)


@pytest.mark.parametrize("bugged", [CompoundingBeta, IncrementedBeta])
def test_accumulated_beta_is_noticed(bugged):
    with pytest.raises(AssertionError):
        assert_beta_is_a_function_of_the_step(bugged())


def test_compounding_beta_is_over_after_three_percent_of_the_training():
    def first_step_beyond(beta, limit=0.99):
        return next(step for step in range(10_000) if beta(step) > limit)

    literal = first_step_beyond(CompoundingBeta())
    assert literal == pytest.approx(272, abs=2)
    assert first_step_beyond(ANNEALED.beta) > 9700
