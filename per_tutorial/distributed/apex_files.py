"""The learner's checkpoint: its networks, and the history of the training so far."""

import dataclasses
from pathlib import Path
from typing import Any

from per_tutorial.common.files import ArrayFile, part_of, write_arrays
from per_tutorial.dqn.config import AUTO, DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner


def shard_file(folder: Path, number: int) -> Path:
    """Where a shard of the memory writes its own."""
    return folder / f"shard-{number}.npz"


def save_learner(
    folder: Path, made_with: dict[str, Any], agent: DQNLearner, history: History
) -> None:
    """Write the learner's file, after those of the shards: where it is, they are. Atomic."""
    parts = {"agent": agent.state, "history": history.state}
    state = {f"{part}.{name}": parts[part][name] for part in parts for name in parts[part]}
    heading = made_with | {"arrays": sorted(state)}
    write_arrays(folder / "learner.npz", "made_with", heading, state)


def resolve_auto(folder: Path, config: DQNConfig) -> DQNConfig:
    """The settings, with "auto" replaced by what the training in the folder chose."""
    path = folder / "learner.npz"
    names = [one.name for one in dataclasses.fields(config) if getattr(config, one.name) == AUTO]
    if not names or not path.exists():
        return config
    with ArrayFile(path) as file:
        made_with = file.heading("made_with")
    return config.replace(**{name: made_with[name] for name in names if name in made_with})


def restore_learner(
    folder: Path, made_with: dict[str, Any], agent: DQNLearner, history: History
) -> None:
    """Go on from the learner's file; if there is none, the folder's shards are removed.

    Raises:
        ValueError: the file is damaged, or was made with other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "learner.npz"
    if not path.exists():
        for stale in folder.glob("shard-*.npz"):  # the learner never got to write its file
            stale.unlink()
        return
    with ArrayFile(path) as file:
        found = file.heading("made_with")
        for name, value in made_with.items():
            if found.get(name) != value:
                raise ValueError(
                    f"checkpoints: {str(path)!r} was made with {name} = {found.get(name)!r}, "
                    f"not {value!r}; choose another folder or remove it"
                )
        names = [name for name in file.specs if name != "made_with"]
        if sorted(names) != found.get("arrays"):  # a flipped bit in zip's directory hides some
            raise ValueError(f"checkpoints: {str(path)!r} is damaged (arrays are missing)")
        state = {name: file.read(name) for name in names}
    agent.restore(part_of(state, "agent"))
    history.restore(part_of(state, "history"))
