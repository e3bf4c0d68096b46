"""Settings: what is allowed, the errors, and how ε, β and η change with the step."""

import dataclasses
import inspect
import math
import re

import numpy as np
import pytest

from per_tutorial.dqn.config import SAMPLER_SETTINGS, DQNConfig
from per_tutorial.dqn.training import make_replay
from per_tutorial.replay.samplers import SAMPLERS

SOURCE = inspect.getsource(DQNConfig)

# What each kind of field refuses: (value, exception, what the message says is allowed)
TEXT = [(5, TypeError, "a non-empty string"), ("", TypeError, "a non-empty string")]
FLAG = [(1, TypeError, "True or False"), (None, TypeError, "True or False")]
COUNT = [
    (0, ValueError, "at least 1"),
    (2.0, TypeError, "an integer"),
    (True, TypeError, "an integer"),
]
NUMBER = [(math.nan, ValueError, ""), (math.inf, ValueError, ""), ("0.5", TypeError, "a number")]
SHARE = [(-0.1, ValueError, "in [0, 1]"), (1.1, ValueError, "in [0, 1]"), *NUMBER]
POSITIVE = [(0, ValueError, "greater than 0"), *NUMBER]
CHOICE = [("nonsense", ValueError, "one of"), (None, ValueError, "one of")]
KINDS = {
    "env device": TEXT,
    "dueling double compiled": FLAG,
    "max_episode_steps steps environments n_step batch_size learning_starts update_every": COUNT,
    "target_update_every capacity epsilon_steps": COUNT,
    "terminal_reward": NUMBER,
    "discount alpha beta_start beta_end": SHARE,
    "epsilon_start epsilon_end epsilon_decay": SHARE,
    "td_error_clip learning_rate max_grad_norm": POSITIVE,
    "kappa priority_epsilon": [(1e-21, ValueError, "in [1e-20, 1e+20]"), *POSITIVE],
    "loss sampler normalize epsilon_schedule precision": CHOICE,
    "frame_size": [(16, ValueError, "at least 17"), *COUNT[1:]],
    "hidden": [(64, TypeError, "a tuple of integers"), ((64, 0), ValueError, "at least 1")],
    "learning_rate_end": [(-1e-3, ValueError, "in [0, inf]"), *NUMBER],
    "tau": [(0, ValueError, "greater than 0"), (1.1, ValueError, "in [0, 1]"), *NUMBER],
}
BAD = {name: bad for names, bad in KINDS.items() for name in names.split()}


def test_every_field_is_explained_and_in_the_table_above():
    assert BAD.keys() == {field.name for field in dataclasses.fields(DQNConfig)}
    for name in BAD:
        assert re.search(rf'^    {name}: .* = .*\n    """\S', SOURCE, re.MULTILINE)


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_value_is_named_with_what_is_allowed(name):
    for value, exception, allowed in BAD[name]:
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
        (
            {"environments": 2},
            "environments: must be 1 unless env is an Atari game (ALE/…), got 2 with 'CartPole-v1'",
        ),
        (
            {"env": "ALE/Pong-v5", "environments": 4, "steps": 481},
            "steps: must be a multiple of environments (4), got 481",
        ),
        (
            {"env": "ALE/Pong-v5", "capacity": 120, "environments": 160},
            "capacity: must be at least environments (160), got 120",
        ),
    ],
)
def test_fields_that_do_not_fit_together(changes, message):
    with pytest.raises(ValueError) as caught:
        DQNConfig(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden": [np.int64(8)]},
        {"discount": 1},
        {"discount": np.float32(0.5)},
        {"batch_size": 7, "learning_starts": 7, "capacity": 7},
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


@pytest.mark.parametrize("sampler, own", [("uniform", 0), ("proportional", 0.6), ("rank", 0.7)])
def test_a_sampler_gets_the_settings_it_takes_and_else_its_own_alpha(sampler, own):
    given = {"alpha": 0.2, "priority_epsilon": 0.1, "normalize": "none", "kappa": 3.0}
    config = DQNConfig(sampler=sampler, **given)
    taken = {name: given[name] for name in SAMPLER_SETTINGS[sampler]}
    settings = make_replay(config, (4,), [0]).settings
    assert settings.items() >= {"sampler": sampler, **taken}.items()
    assert make_replay(config.replace(alpha=None), (4,), [0]).settings.get("alpha", 0) == own
    assert SAMPLER_SETTINGS.keys() == SAMPLERS.keys()
    known = inspect.signature(SAMPLERS[sampler]).parameters.keys() & BAD.keys()
    assert known - {"capacity"} == set(SAMPLER_SETTINGS[sampler])


# Schedules


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


def test_epsilon_has_its_own_steps_beta_and_the_step_size_have_all():
    config = DQNConfig(
        steps=1000,
        epsilon_start=1.0,
        epsilon_end=0.2,
        epsilon_steps=40,
        beta_start=0.5,
        beta_end=1.0,
        learning_rate=0.01,
        learning_rate_end=0.002,
    )
    assert [config.epsilon(step) for step in (0, 10, 40, 1000)] == [1.0, 0.8, 0.2, 0.2]
    assert [config.beta(step) for step in (0, 500, 1000)] == [0.5, 0.75, 1.0]
    rates = [config.step_size(step) for step in (0, 500, 1000)]
    assert rates == [0.01, pytest.approx(0.006), 0.002]
