"""Options made from `DQNConfig`, and back."""

import argparse
import dataclasses
import types
import typing
import warnings
from typing import Any

from per_tutorial.dqn.config import AUTO, DQNConfig
from per_tutorial.replay.samplers import SAMPLERS, settings_of

# A larger number is a typo, which would be noticed only after hours.
MAX_EPISODES = 100_000

# They replace those of `DQNConfig`: on the command line, speed matters more than identical bits.
DEFAULTS = {"compiled": AUTO}


# What `--help` adds to the texts of `DQNConfig`.
NOTES = {"sampler": "; PER is proportional"}

# The first field of each group of options → the group's title; its fields are consecutive.
GROUPS = {
    "env": "environment",
    "hidden": "network and learning",
    "capacity": "replay",
    "epsilon_schedule": "exploration",
    "precision": "computing",
}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add one option for each field of `DQNConfig`, in groups."""
    kinds = typing.get_type_hints(DQNConfig)
    group = None
    for field in dataclasses.fields(DQNConfig):
        if field.name in GROUPS:
            group = parser.add_argument_group(GROUPS[field.name])
        assert group is not None  # the first field begins a group
        option = f"--{field.name.replace('_', '-')}"
        default = DEFAULTS.get(field.name, field.default)
        choices = getattr(field.metadata["check"], "keywords", {}).get("allowed", ())
        text = f"{', '.join(choices)}: " if choices else ""
        text += f"{field.metadata['help'].replace('%', '%%')} (default: {_shown(default)})"
        text += NOTES.get(field.name, "")
        kind = kinds[field.name]
        if isinstance(field.default, bool):
            group.add_argument(
                option, action=argparse.BooleanOptionalAction, default=default, help=text
            )
        elif kind == tuple[int, ...]:
            group.add_argument(option, type=int, nargs="*", default=default, help=text)
        else:
            group.add_argument(option, type=_plain(kind), default=default, help=text)


def chosen_settings(arguments: argparse.Namespace) -> DQNConfig:
    """The settings chosen by options; warns of options without effect."""
    settings = {
        field.name: getattr(arguments, field.name) for field in dataclasses.fields(DQNConfig)
    }
    config = DQNConfig(**settings | {"hidden": tuple(settings["hidden"])})
    of_samplers = {name for sampler in SAMPLERS.values() for name in settings_of(sampler)}
    without_effect = of_samplers.difference(settings_of(SAMPLERS[config.sampler]))
    for field in dataclasses.fields(DQNConfig):
        if field.name in without_effect and settings[field.name] != field.default:
            option = f"--{field.name.replace('_', '-')}"
            warnings.warn(f"{option}: no effect with --sampler {config.sampler}", stacklevel=2)
    return config


def _plain(kind: Any) -> Any:
    """`int | None` → int: the type that a text is turned into."""
    if isinstance(kind, types.UnionType):
        return next(one for one in typing.get_args(kind) if one is not types.NoneType)
    return kind


def _shown(default: Any) -> Any:
    return " ".join(map(str, default)) if isinstance(default, tuple) else default
