"""Checkpoints: the complete state of a training, written at intervals.

If the process is killed at any moment, the same call of `train` continues from the last one. A
checkpoint is one `.npz` file (`common.files`): the arrays of `Training.state`, and what they were
made with. It appears under its name only when it is complete.
"""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from per_tutorial import __version__
from per_tutorial.common.arguments import whole_number
from per_tutorial.common.files import open_arrays, require_settings, write_arrays
from per_tutorial.common.provenance import full_name

NAME = "checkpoint.npz"


class Checkpoints:
    """Write a training at intervals, and continue it: an argument of `train`.

    A training continues with the networks, memory, priorities and random streams of its last
    checkpoint. The episodes that ran then are truncated, and new ones begin, with other seeds.

    A checkpoint holds the whole replay memory, 7 GB for a million Atari frames. The training waits
    while it is written, and the disk needs room for two. Choose ``every`` accordingly.

    Args:
        folder: where they are written, for this training alone; it is created if it is missing.
        every: environment steps between checkpoints; one is also written at the end.

    Example:
        >>> import tempfile
        >>> from per_tutorial import Checkpoints, DQNConfig, train
        >>> config = DQNConfig(steps=300, learning_starts=100, hidden=(16,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first = train(config, seeds=0, checkpoints=Checkpoints(folder, every=100))
        ...     again = train(config, seeds=0, checkpoints=Checkpoints(folder))  # is done already
        >>> first.episodes == again.episodes
        True
    """

    def __init__(self, folder: str | os.PathLike[str], *, every: int = 10_000) -> None:
        self.folder = Path(folder)
        self.every = whole_number("every", every)

    def restore(self, training: Any) -> None:
        """Continue a `training.Training` from the last checkpoint, if there is one.

        Raises:
            TypeError: the replay memory has no state.
            ValueError: it was made with other settings or seeds, or by another learner or version,
                or it is damaged.
        """
        for member in ("settings", "state", "restore", "truncate_episodes"):
            if not hasattr(training.replay, member):
                raise TypeError(f"replay: must have {member} to be written to a checkpoint")
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(f".{NAME}.*"):  # of a process that was killed while it wrote
            left.unlink()
        path = self.folder / NAME
        if path.exists():
            with open_arrays(path) as (made_with, state):
                require_settings(f"folder: {str(path)!r}", _made_with(training), made_with)
                training.restore(state)

    def save_if_due(self, training: Any) -> None:
        """Write a checkpoint if one is due."""
        step, config = training.history.step, training.history.config
        # Several environments make as many steps at once, and may step over a multiple of `every`.
        if step % self.every >= config.environments and step != config.steps:
            return
        write_arrays(self.folder / NAME, _made_with(training), training.state)


def _made_with(training: Any) -> dict[str, Any]:
    """What must match for a training to be continued, as it comes back from JSON."""
    made_with = {
        "version": __version__,
        "seeds": training.history.seeds,
        **dataclasses.asdict(training.history.config),
        "replay": training.replay.settings,
        "learner": full_name(type(training.agent)),
    }
    return json.loads(json.dumps(made_with))
