"""Checkpoints: the complete state of a training, written at intervals.

If the process is killed at any moment, the same call of `train` continues from the last one. A
checkpoint is one `.npz` file: the arrays of `Training.state`, and as text (JSON) what they were
made with. Nothing is unpickled when it is read. The file appears under its name only when it is
complete, and zip checks a CRC of every array.
"""

import dataclasses
import json
import os
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from per_tutorial import __version__
from per_tutorial.common.arguments import whole_number
from per_tutorial.common.files import atomic_write, open_arrays, write_arrays
from per_tutorial.dqn.config import AUTO, DQNConfig
from per_tutorial.dqn.states import State

if TYPE_CHECKING:
    from per_tutorial.dqn.training import Training


class Checkpoints:
    """Write a training at intervals, and continue it: an argument of `train`.

    A continued training equals one that never stopped, bit for bit, if its environments can be
    saved (CartPole, Acrobot, MountainCar, MinAtar). In others the running episodes are truncated
    and new ones begin; all else continues.

    The last two checkpoints are kept. Each holds the whole replay memory, 7 GB for a million Atari
    frames, and the training waits while it is written (and copied, with ``copy_to``). The disk
    needs room for three, and a checkpoint is in memory twice while it is read. Choose ``every``
    accordingly.

    Args:
        folder: where they are written, for this training alone; it is created if it is missing.
        every: environment steps between checkpoints; one is also written at the end.
        copy_to: a second folder that each checkpoint is copied to, such as one on a mounted drive.
            A training continues from there if ``folder`` has no checkpoint as new. Checkpoints of
            other trainings there are kept.

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

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every: int = 10_000,
        copy_to: str | os.PathLike[str] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.every = whole_number("every", every)
        self.copy_to = None if copy_to is None else Path(copy_to)
        self._whole: set[str] = set()  # the name of the last checkpoint that was read or written
        self._known: set[str] = set()  # what `folder` held at the start, and what was written since

    def resolve_auto(self, config: DQNConfig) -> DQNConfig:
        """The settings, with "auto" replaced by what the newest intact checkpoint was made with.

        A training thus continues as it began, even if "auto" would mean something else now.
        """
        folders = [
            each for each in (self.folder, self.copy_to) if each is not None and each.is_dir()
        ]
        for path in _newest_first(folders):
            try:
                return with_resolved_auto(path, config)
            except (ValueError, TypeError, FileNotFoundError):
                continue  # `restore` warns about it
        return config

    def restore(self, training: "Training") -> None:
        """Continue a `Training` from the newest intact checkpoint, if there is one.

        Warns about every damaged checkpoint and goes back to the one before it.

        Raises:
            FileNotFoundError: the parent folder of ``copy_to`` does not exist.
            ValueError: the checkpoint was made with other settings or seeds, or all are damaged.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        folders = [self.folder]
        if self.copy_to is not None:
            # Only the last folder is made: a path on an unmounted drive must be an error.
            if not self.copy_to.absolute().parent.is_dir():
                raise FileNotFoundError(f"copy_to: there is no folder for {str(self.copy_to)!r}")
            self.copy_to.mkdir(exist_ok=True)
            folders.append(self.copy_to)
        found = _newest_first(folders)
        self._known = {path.name for path in found if path.parent == self.folder}
        wanted = _made_with(training)
        for path in found:
            try:
                difference, state = read_checkpoint(path, wanted)
            except (ValueError, FileNotFoundError) as error:
                text = f"checkpoint {str(path)!r} is damaged; trying the one before it ({error})"
                warnings.warn(text, stacklevel=3)
                continue
            if difference:
                raise ValueError(
                    f"folder: {str(path)!r} was made with {difference}; "
                    "choose another folder or remove it"
                )
            try:
                training.restore(state)
            except ValueError as error:
                raise ValueError(
                    f"folder: checkpoint {str(path)!r} does not fit this training ({error})"
                ) from error
            self._whole = {path.name}
            return
        if found:
            raise ValueError(
                f"folder: no checkpoint in {str(self.folder)!r} is whole; remove them to start "
                f"again"
            )

    def save_if_due(self, training: "Training") -> None:
        """Write a checkpoint if one is due. Warns if it cannot be copied, and continues.

        Raises:
            ValueError: another process has written checkpoints to the folder in the meantime.
        """
        step = training.history.step
        config = training.history.config
        # Several environments make as many steps at once, and may step over a multiple of `every`.
        if step % self.every >= config.environments and step != config.steps:
            return
        name = f"step-{step:012d}.npz"
        state = training.state
        made_with = _made_with(training)
        last_two = {*self._whole, name}
        self._refuse_other_writers()
        heading = made_with | {"arrays": sorted(state)}
        write_arrays(self.folder / name, heading, state)
        self._whole = {name}
        self._known.add(name)
        _keep_only(last_two, self.folder, made_with, damaged_too=True)
        _remove_temporary_files(self.folder)
        if self.copy_to is not None:
            try:
                with (
                    open(self.folder / name, "rb") as source,
                    atomic_write(self.copy_to / name) as copy,
                ):
                    shutil.copyfileobj(source, copy)
                _keep_only(last_two, self.copy_to, made_with)
                _remove_temporary_files(self.copy_to)
            except OSError as error:
                warnings.warn(f"copy_to: {name} could not be copied ({error})", stacklevel=3)

    def _refuse_other_writers(self) -> None:
        """Raise ValueError if another process writes here: each would remove the other's files."""
        others = {path.name for path in _checkpoints(self.folder)} - self._known
        if others:
            raise ValueError(
                f"folder: another process wrote {max(others)} to {str(self.folder)!r} in "
                "the meantime; this one stops: a folder is for one training only"
            )


def with_resolved_auto(path: Path, config: DQNConfig) -> DQNConfig:
    """The settings, with "auto" replaced by what a checkpoint was made with."""
    names = [one.name for one in dataclasses.fields(config) if getattr(config, one.name) == AUTO]
    if not names:
        return config
    with open_arrays(path) as (made_with, _):
        pass
    return config.replace(**{name: made_with[name] for name in names if name in made_with})


def read_checkpoint(path: Path, wanted: Mapping[str, Any]) -> tuple[str | None, State]:
    """The first difference from ``wanted``, in words, and no arrays; or None and the arrays.

    Raises:
        ValueError: it is damaged.
    """
    with open_arrays(path) as (made_with, arrays):
        if sorted(arrays) != made_with.get("arrays"):  # a flipped bit in zip's directory hides some
            raise ValueError(f"path: {str(path)!r} is damaged (arrays are missing)")
        difference = _difference(made_with, wanted)
        return difference, {} if difference else {n: a.read() for n, a in arrays.items()}


def _made_with(training: "Training") -> dict[str, Any]:
    """What must match for a training to be continued, as it comes back from JSON."""
    made_with = {
        "version": __version__,
        "seeds": training.history.seeds,
        **dataclasses.asdict(training.history.config),
        "replay": training.replay.settings,
    }
    return json.loads(json.dumps(made_with))


def _difference(made_with: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """The first setting that differs, in words."""
    for name, value in wanted.items():
        if made_with.get(name) != value:
            return f"{name} = {made_with.get(name)!r}, not {value!r}"
    return None


def _checkpoints(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if re.fullmatch(r"step-\d{12,}\.npz", path.name)]


def _newest_first(folders: list[Path]) -> list[Path]:
    """All checkpoints in these folders, the newest first; ties go to the first folder."""
    found = [path for folder in folders for path in _checkpoints(folder)]
    return sorted(found, key=lambda path: path.name, reverse=True)


def _keep_only(
    names: set[str], folder: Path, made_with: Mapping[str, Any], *, damaged_too: bool = False
) -> None:
    """Remove older checkpoints of this training; with ``damaged_too``, newer and damaged ones too.

    The owner of a damaged one is unknown, so only the training's own folder may lose it.
    """
    for path in _checkpoints(folder):
        if path.name in names:
            continue
        try:
            with open_arrays(path) as (heading, _):
                remove = _difference(heading, made_with) is None
        except (ValueError, FileNotFoundError):
            remove = damaged_too
        if remove and (damaged_too or path.name < max(names)):
            path.unlink(missing_ok=True)


def _remove_temporary_files(folder: Path) -> None:
    """Remove temporary files of killed processes; only while no other process writes here."""
    for path in folder.iterdir():
        if re.fullmatch(r"\.step-\d{12,}\.npz\.\w+", path.name):
            path.unlink(missing_ok=True)
