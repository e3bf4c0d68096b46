"""For each setting a good value that is not the default."""

from typing import get_type_hints

from per_tutorial.dqn.config import DQNConfig

# Another good value for each field but flags and choices
ANOTHER = {
    "env": "Acrobot-v1",
    "max_episode_steps": 50,
    "terminal_reward": -7.5,
    "steps": 3001,
    "hidden": (33, 17),
    "td_error_clip": 1.25,
    "discount": 0.91,
    "n_step": 4,
    "momentum": 0.35,
    "learning_rate": 1.5e-5,
    "learning_rate_end": 2.5e-5,
    "max_grad_norm": 11.0,
    "batch_size": 9,
    "learning_starts": 501,
    "update_every": 3,
    "target_update_every": 17,
    "tau": 0.015,
    "capacity": 7777,
    "environments": 4,
    "frame_size": 42,
    "sticky_actions": 0.25,
    "kappa": 0.125,
    "alpha": 0.55,
    "beta_start": 0.45,
    "beta_end": 0.95,
    "beta_steps": 99,
    "priority_epsilon": 0.015,
    "epsilon_start": 0.85,
    "epsilon_end": 0.15,
    "epsilon_delay": 12,
    "epsilon_steps": 77,
    "epsilon_decay": 0.125,
    "device": "cuda:1",
}


def another_value(field):
    """A value of a field of `DQNConfig` that is not its default."""
    if isinstance(field.default, bool):
        return not field.default
    check = get_type_hints(DQNConfig, include_extras=True)[field.name].__metadata__[0]
    choices = getattr(check, "keywords", {}).get("allowed")
    if choices:
        return next(choice for choice in choices if choice != field.default)
    assert ANOTHER[field.name] != field.default
    return ANOTHER[field.name]
