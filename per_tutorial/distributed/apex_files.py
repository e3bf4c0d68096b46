"""The learner's checkpoint: its networks, and the history of the training so far."""

from pathlib import Path
from typing import Any

from per_tutorial.common.files import join_parts, part_of, write_arrays
from per_tutorial.dqn.checkpoints import read_checkpoint, with_resolved_auto
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.history import History
from per_tutorial.dqn.learner import DQNLearner


def shard_file(folder: Path, number: int) -> Path:
    """Where a shard of the memory writes its checkpoint."""
    return folder / f"shard-{number}.npz"


def save_learner(
    folder: Path, made_with: dict[str, Any], agent: DQNLearner, history: History
) -> None:
    """Write the learner's file, atomically. It comes last, so the shards' files exist then."""
    state = join_parts(agent=agent.state, history=history.state)
    heading = made_with | {"arrays": sorted(state)}
    write_arrays(folder / "learner.npz", "made_with", heading, state)


def resolve_auto(folder: Path, config: DQNConfig) -> DQNConfig:
    """The settings, with "auto" replaced by the choices of the training in the folder."""
    path = folder / "learner.npz"
    return with_resolved_auto(path, config) if path.exists() else config


def restore_learner(
    folder: Path, made_with: dict[str, Any], agent: DQNLearner, history: History
) -> None:
    """Continue from the learner's file; if there is none, remove the folder's shards.

    Raises:
        ValueError: the file is damaged, or was made with other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "learner.npz"
    if not path.exists():
        for stale in folder.glob("shard-*.npz"):  # from a checkpoint that was not completed
            stale.unlink()
        return
    difference, state = read_checkpoint(path, made_with)
    if difference:
        raise ValueError(
            f"checkpoints: {str(path)!r} was made with {difference}; "
            "choose another folder or remove it"
        )
    agent.restore(part_of(state, "agent"))
    history.restore(part_of(state, "history"))
