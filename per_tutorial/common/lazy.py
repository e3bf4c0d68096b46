"""Names that are imported on first use, so that importing a package loads nothing heavy.

`pip install per_tutorial` installs only NumPy and numba. If another module is missing, the error
names the extra that installs it.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

# extra → the modules that it installs
EXTRAS = {
    "dqn": ("gymnasium", "safetensors", "scipy", "torch", "tqdm", "tyro"),
    "notebooks": ("IPython", "PIL", "ipywidgets", "matplotlib"),
    "video": ("imageio_ffmpeg",),
    "atari": ("ale_py", "cv2"),
    "minatar": ("minatar",),
    "ray": ("ray",),
    "sb3": ("sb3_contrib", "stable_baselines3"),
    "tensorboard": ("tensorboard",),
    "tianshou": ("tianshou",),
    "torchrl": ("torchrl",),
}


def missing_extra(error: ImportError, what: str) -> ImportError:
    """An error that names the extra that ``what`` needs, such as "per_tutorial.train".

    It is ``error`` itself, of an import that failed, if no extra has the module.
    """
    module = (error.name or "").partition(".")[0]
    for extra, brings in EXTRAS.items():
        if isinstance(error, ModuleNotFoundError) and module in brings:
            advice = f"not installed: pip install 'per_tutorial[{extra}]'"
            return ModuleNotFoundError(f"{what} needs {module}, which is {advice}", name=error.name)
    return error


def lazy_names(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` (PEP 562) of the package of this ``__name__``.

    ``homes`` has the names that each module of the package defines. Type checkers and editors do
    not see them, so the package also imports them under ``if TYPE_CHECKING``. A name whose extra is
    not installed raises a ModuleNotFoundError that says so when it is used.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(f"{package}.{home_of[name]}")
        except ImportError as error:
            raise missing_extra(error, f"{package}.{name}") from error
        value = getattr(module, name)
        setattr(sys.modules[package], name, value)  # the next use is an ordinary lookup
        return value

    return list(home_of), get, lambda: sorted({*vars(sys.modules[package]), *home_of})
