"""Agents in files: one safetensors file with the online networks and, as JSON, their settings.

Such a file may come from anywhere. Nothing in it is executed, and its tensors are checked against
its settings before anything is made of them, so it takes no more memory than it has bytes.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from per_tutorial.common.arguments import whole_number
from per_tutorial.common.files import PathLike, atomic_write
from per_tutorial.dqn.config import AUTO, DQNConfig
from per_tutorial.dqn.environments import env_spec
from per_tutorial.dqn.networks import LARGEST_SEED, architecture


class SavedAgent(NamedTuple):
    """What makes up a `DQNLearner` before its first update."""

    config: DQNConfig
    observation_shape: tuple[int, ...]
    actions: int
    seeds: list[int]
    tensors: dict[str, Tensor]  # of the online networks, each (runs, ...)


def write_agent(path: PathLike, agent: SavedAgent) -> None:
    """Write an agent to a file. Atomic."""
    from safetensors.torch import save

    facts = {
        "config": dataclasses.asdict(agent.config),
        "seeds": agent.seeds,
        "observation_shape": agent.observation_shape,
        "actions": agent.actions,
    }
    data = save(agent.tensors, {name: json.dumps(fact) for name, fact in facts.items()})
    with atomic_write(path) as file:
        file.write(_in_order(data))


def _in_order(data: bytes) -> bytes:
    """The file with its heading sorted: the order of safetensors differs between processes.

    A file begins with the length of its heading, in 8 bytes; the length is a multiple of 8.
    """
    end = 8 + int.from_bytes(data[:8], "little")
    heading = json.dumps(json.loads(data[8:end]), sort_keys=True, separators=(",", ":")).encode()
    heading += b" " * (-len(heading) % 8)
    return len(heading).to_bytes(8, "little") + heading + data[end:]


def read_agent(path: PathLike, device: str, *, trusted: bool) -> SavedAgent:
    """What `write_agent` wrote; see `DQNLearner.load`."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"path: no file {os.fspath(path)!r}")
    # Errors of reading a file with any other content
    damage = (SafetensorError, ArithmeticError, AttributeError, LookupError, RuntimeError)
    try:
        with safe_open(path, framework="pt") as file:
            facts = {name: json.loads(fact) for name, fact in file.metadata().items()}
            slices = {name: file.get_slice(name) for name in file.keys()}
            shapes = {name: tuple(each.get_shape()) for name, each in slices.items()}
            config = DQNConfig(**facts["config"] | {"device": device})
            if AUTO in (config.precision, config.compiled):
                raise ValueError(f"precision, compiled: must be what was chosen, got {AUTO!r}")
            if "observation_shape" not in facts:
                facts |= _facts_of_version_0_1(config, shapes)
            shape = tuple(_whole_numbers("observation_shape", facts["observation_shape"], 1))
            actions = whole_number("actions", facts["actions"])
            seeds = _whole_numbers("seeds", facts["seeds"], 0)
            _check_shapes(config, shape, actions, len(seeds), shapes)
            for name, each in slices.items():
                if each.get_dtype() != "F32":
                    raise ValueError(f"{name}: must be F32, got {each.get_dtype()}")
            tensors = {name: file.get_tensor(name) for name in shapes}
        for name, tensor in tensors.items():
            if not torch.isfinite(tensor).all():
                raise ValueError(f"{name}: must be finite")
    except (*damage, TypeError, ValueError) as error:
        raise ValueError(f"path: {os.fspath(path)!r} holds no agent ({error})") from error
    if not trusted:
        env_spec(config.env).module().check_id(config.env)
    return SavedAgent(config, shape, actions, seeds, tensors)


def _whole_numbers(name: str, values: Any, minimum: int) -> list[int]:
    if not isinstance(values, list):
        raise TypeError(f"{name}: must be a list, got {values!r}")
    return [whole_number(name, value, minimum, LARGEST_SEED) for value in values]


def _check_shapes(
    config: DQNConfig,
    observation_shape: tuple[int, ...],
    actions: int,
    runs: int,
    shapes: Mapping[str, tuple[int, ...]],
) -> None:
    """Raise ValueError unless the tensors are those of networks of these sizes."""
    if runs == 0:
        raise ValueError("seeds: at least one is needed, got none")
    spec = env_spec(config.env)
    if spec.frames:
        size = spec.frame_size or config.frame_size
        if len(observation_shape) != 3 or observation_shape[1:] != (size, size):
            raise ValueError(f"observation_shape: must be (channels, {size}, {size})")
    # Each hidden layer has tensors in the file, so a longer list of sizes is wrong.
    if len(config.hidden) >= len(shapes):
        raise ValueError(f"hidden: {len(config.hidden)} layers, but {len(shapes)} tensors")
    inputs = spec.network_inputs(observation_shape)
    wanted = architecture(inputs, actions, config.hidden, config.dueling).shapes
    if wanted.keys() != shapes.keys():
        names = ", ".join(sorted(wanted.keys() ^ shapes.keys()))
        raise ValueError(f"the settings ask for other tensors: {names}")
    for name, shape in wanted.items():
        if shapes[name] != (runs, *shape):
            raise ValueError(
                f"{name}: must have the shape {(runs, *shape)} by the settings, got {shapes[name]}"
            )


def _facts_of_version_0_1(
    config: DQNConfig, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Any]:
    """What files of version 0.1.0 lack, inferred from the shapes of their tensors."""
    observation_shape = [shapes["layers.0.weight"][1]]
    if env_spec(config.env).frames:
        stack = shapes["convolutions.0.weight"][2]
        observation_shape = [stack, config.frame_size, config.frame_size]
    outputs = shapes[f"layers.{len(config.hidden)}.bias"][2]
    return {"observation_shape": observation_shape, "actions": outputs - config.dueling}
