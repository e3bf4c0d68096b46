"""Agents in files: one safetensors file with the online networks and, as JSON, their settings.

Nothing in such a file is executed, and its tensors are compared with its settings before anything
is made of them.
"""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from per_tutorial.common.arguments import whole_number
from per_tutorial.common.files import PathLike, atomic_write
from per_tutorial.common.provenance import full_name
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.env_specs import env_spec
from per_tutorial.dqn.networks import LARGEST_SEED, make_network

OUR_MODULES = f"{__name__.partition('.')[0]}."


class SavedAgent(NamedTuple):
    """What makes up a `DQNLearner` before its first update."""

    config: DQNConfig
    observation_shape: tuple[int, ...]
    actions: int
    first_action: int
    seeds: list[int]
    network: str  # full name of its class
    tensors: dict[str, Tensor]  # of the online networks, each (runs, ...)


def write_agent(path: PathLike, agent: SavedAgent) -> None:
    """Write an agent to a file. Atomic."""
    from safetensors.torch import save

    facts = {**agent._asdict(), "config": dataclasses.asdict(agent.config)}
    tensors = facts.pop("tensors")
    data = save(tensors, {name: json.dumps(fact) for name, fact in facts.items()})
    with atomic_write(path) as file:
        file.write(data)


def read_agent(
    path: PathLike, device: str, network_class: type[nn.Module], *, trusted: bool
) -> SavedAgent:
    """What `write_agent` wrote; see `DQNLearner.load`."""
    from safetensors import safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"path: no file {os.fspath(path)!r}")
    try:
        with safe_open(path, framework="pt") as file:
            facts = {name: json.loads(fact) for name, fact in file.metadata().items()}
            config = DQNConfig(**facts["config"] | {"device": device})
            agent = SavedAgent(
                config,
                tuple(_whole_numbers("observation_shape", facts["observation_shape"], 1)),
                whole_number("actions", facts["actions"]),
                whole_number("first_action", facts["first_action"], minimum=-(2**63)),
                _whole_numbers("seeds", facts["seeds"], 0),
                facts["network"],
                {},
            )
            slices = {name: file.get_slice(name) for name in file.keys()}
            found = {name: (each.get_dtype(), each.get_shape()) for name, each in slices.items()}
            _compare(found, agent, network_class)
            agent.tensors.update({name: file.get_tensor(name) for name in found})
        for name, tensor in agent.tensors.items():
            if not torch.isfinite(tensor).all():
                raise ValueError(f"{name}: must be finite")
    except Exception as error:  # a flipped bit may claim anything
        raise ValueError(
            f"path: {os.fspath(path)!r} holds no agent, or one of another version or network "
            f"({error})"
        ) from error
    # For "module:Name-v0", Gymnasium imports the module, and thus runs whatever is in it.
    if ":" in config.env and not config.env.startswith(OUR_MODULES) and not trusted:
        raise ValueError(
            f"env: must not name a module, unless the file is trusted, got {config.env!r}"
        )
    return agent


def _whole_numbers(name: str, values: list[Any], minimum: int) -> list[int]:
    if not values:
        raise ValueError(f"{name}: must be at least one number, got none")
    return [whole_number(name, value, minimum, LARGEST_SEED) for value in values]


def _compare(
    found: dict[str, tuple[str, list[int]]], agent: SavedAgent, network_class: type[nn.Module]
) -> None:
    """Raise ValueError unless the tensors, (dtype, shape) each, are those of such an agent."""
    if agent.network != full_name(network_class):
        raise ValueError(f"network: must be {full_name(network_class)}, got {agent.network}")
    config, spec = agent.config, env_spec(agent.config.env)
    size = spec.frame_size or config.frame_size
    if spec.frames and agent.observation_shape[1:] != (size, size):
        raise ValueError(f"observation_shape: must be (channels, {size}, {size})")
    inputs = spec.network_inputs(agent.observation_shape)
    with torch.device("meta"):  # shapes without numbers
        one = make_network(network_class, config, inputs, agent.actions, agent.seeds[:1])
    shapes = {name: each.shape[1:] for name, each in one.state_dict().items()}
    wanted = {name: ("F32", [len(agent.seeds), *shape]) for name, shape in shapes.items()}
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            raise ValueError(
                f"{name}: must be {wanted.get(name)} by the settings, got {found.get(name)}"
            )
