"""Long trainings lose nothing: all that a training consists of is written at intervals.

The same call of `train` continues from there, after the process was killed at whatever moment. A
checkpoint is one `.npz` file: the arrays of `Training.state`, and as text (JSON) what they were made
with. Nothing is unpickled when it is read. The file appears under its name when it is whole, and zip
checks a CRC of every array.
"""

import dataclasses
import json
import os
import shutil
import warnings
from pathlib import Path

import numpy as np

from per_tutorial import __version__
from per_tutorial.common.arguments import whole_number
from per_tutorial.common.files import atomic_write, read_arrays


class Checkpoints:
    """Write a training at intervals, and continue it: ``train(config, checkpoints=Checkpoints(…))``.

    A training that was continued equals one that never stopped, bit for bit, where environments can
    be saved (CartPole, Acrobot, MountainCar). In others the running episodes are cut and new ones
    begin; all else continues.

    The last two checkpoints are kept. Each holds the whole replay memory: a million Atari frames
    are 7 GB, written anew every time while the training waits (and copied, with ``copy_to``), with
    room for three on the disk, and in memory twice while they are read. Choose ``every`` with that
    in mind.

    Args:
        folder: where they are written, for this training alone; it is made if need be.
        every: environment steps between checkpoints; one is also written at the end.
        copy_to: a second folder that each checkpoint is copied to, such as one on a mounted drive. A
            training also continues from there, if there is none as new in ``folder``.
    """

    def __init__(self, folder, *, every=10_000, copy_to=None):
        self.folder = Path(folder)
        self.every = whole_number("every", every)
        self.copy_to = None if copy_to is None else Path(copy_to)
        self._whole = set()  # the name of the last checkpoint that was read or written

    def restore(self, training):
        """Continue a `Training` from the newest checkpoint that is whole; if there are none, leave it.

        Warns of every checkpoint that is damaged, and goes back to the one before it.

        Raises:
            FileNotFoundError: there is no folder that ``copy_to`` could be in.
            ValueError: the checkpoint was made with other settings or seeds, or all are damaged.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        folders = [self.folder]
        if self.copy_to is not None:
            # Only the last folder is made: a path on a drive that is not mounted shall be an error.
            if not self.copy_to.absolute().parent.is_dir():
                raise FileNotFoundError(f"copy_to: there is no folder for {str(self.copy_to)!r}")
            self.copy_to.mkdir(exist_ok=True)
            folders.append(self.copy_to)
        # Sorting keeps the order of equals: of two that are as new, the one in `folder` comes first.
        found = [path for folder in folders for path in folder.glob("step-*.npz")]
        found.sort(key=lambda path: path.name, reverse=True)
        for path in found:
            try:
                state = read_arrays(path)
                made_with = json.loads(str(state.pop("made_with")))
                if sorted(state) != made_with["arrays"]:  # a flipped bit in zip's directory hides some
                    raise ValueError("arrays are missing")
            except (ValueError, KeyError) as error:
                text = f"checkpoint {str(path)!r} is damaged; the one before it is tried ({error})"
                warnings.warn(text, stacklevel=3)
                continue
            _refuse_other_settings(path, made_with, _made_with(training))
            training.restore(state)
            self._whole = {path.name}
            return
        if found:
            raise ValueError(
                f"folder: no checkpoint in {str(self.folder)!r} is whole; remove them to start anew"
            )

    def save_if_due(self, training):
        """Write a checkpoint if it is time to. Warns if it cannot be copied, and goes on."""
        step = training.history.step
        config = training.history.config
        # Environments side by side make several steps at once, and may step over a multiple.
        if step % self.every >= config.environments and step != config.steps:
            return
        name = f"step-{step:012d}.npz"
        state = training.state
        made_with = _made_with(training) | {"arrays": sorted(state)}
        with atomic_write(self.folder / name) as file:
            np.savez(file, made_with=np.array(json.dumps(made_with)), **state)
        last_two = {*self._whole, name}
        self._whole = {name}
        _keep_only(last_two, self.folder)
        if self.copy_to is not None:
            try:
                with (
                    open(self.folder / name, "rb") as source,
                    atomic_write(self.copy_to / name) as copy,
                ):
                    shutil.copyfileobj(source, copy)
                _keep_only(last_two, self.copy_to)
            except OSError as error:
                warnings.warn(f"copy_to: {name} could not be copied ({error})", stacklevel=3)


def _made_with(training):
    """What must agree for a training to be continued, as JSON gives it back."""
    made_with = {
        "version": __version__,
        "seeds": training.history.seeds,
        **dataclasses.asdict(training.history.config),
        "replay": training.replay.settings,
    }
    return json.loads(json.dumps(made_with))


def _refuse_other_settings(path, made_with, asked_for):
    for name, value in asked_for.items():
        if made_with.get(name) != value:
            raise ValueError(
                f"folder: {os.fspath(path)!r} was made with {name} = {made_with.get(name)!r}, "
                f"not {value!r}; choose another folder or remove it"
            )


def _keep_only(names, folder):
    """Remove all other checkpoints, damaged ones among them, and the halves that killed processes left."""
    for path in [*folder.glob("step-*.npz"), *folder.glob(".step-*")]:
        if path.name not in names:
            path.unlink(missing_ok=True)
