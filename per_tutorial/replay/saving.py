"""Files of replay buffers, which are checked before anything in them is used."""

import os
from typing import Any

import numpy as np

from per_tutorial.common.files import ArrayFile, PathLike
from per_tutorial.common.states import Schema, State, fits, wanted

ROWS = "storage.rows"  # the name of the transitions among the arrays of a file
# What files of version 0.1.0 lack, and the array of theirs that has the same values
LACKED = {"sampler.num_added": "storage.added"}


def read_state(path: PathLike, settings: dict[str, Any], schema: Schema) -> State:
    """The arrays of a saved buffer; sizes and types are checked before anything is allocated.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not from a buffer with these settings, or does not fit the schema.
    """
    shown = repr(os.fspath(path))
    with ArrayFile(path) as file:
        if "settings" not in file.specs:
            raise ValueError(f"path: {shown} is not a saved replay buffer")
        saved = file.heading("settings")
        for name, value in settings.items():
            if saved.get(name) != value:
                if name == "row" and ROWS in schema:
                    raise ValueError(f"path: {shown} {_other_fields(file, schema)}")
                raise ValueError(
                    f"path: {shown} was saved with {name} = {saved.get(name)!r}, "
                    f"this buffer has {value!r}"
                )
        names = {name: name if name in file.specs else LACKED.get(name, name) for name in schema}
        missing = [name for name in names.values() if name not in file.specs]
        if missing:
            raise ValueError(f"path: {shown} is damaged: it lacks {', '.join(missing)}")
        for name, spec in schema.items():
            dtype, shape = file.specs[names[name]]
            if not fits(spec, dtype, shape):
                raise ValueError(
                    f"path: {shown} is damaged: {name} must be {wanted(spec)}, "
                    f"got {dtype} of the shape {shape}"
                )
        return {name: file.read(saved) for name, saved in names.items()}


def _other_fields(file: ArrayFile, schema: Schema) -> str:
    """How the fields of the saved transitions differ from those of this buffer."""
    wanted_type = np.dtype(schema[ROWS].dtype)
    saved_type = file.specs.get(ROWS, (wanted_type, ()))[0]
    differences = [
        f"{name} {_field(saved_type, name)}, this buffer has {_field(wanted_type, name)}"
        for name in wanted_type.names or ()
        if _field(saved_type, name) != _field(wanted_type, name)
    ]
    return f"was saved with {'; '.join(differences) or 'other fields'}"


def _field(row: np.dtype, name: str) -> str:
    """Type and shape of a field, such as "float32 (4,)"."""
    if name not in (row.names or ()):
        return "missing"
    return f"{row[name].base} {row[name].shape}"
