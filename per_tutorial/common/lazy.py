"""Names that are imported on first use, so that importing a package loads nothing heavy.

Without extras, only NumPy and numba are installed. If another module is missing, the error has
the command that installs it.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

ADDRESS = "https://github.com/your_name_here/per-tutorial"  # written by tools/address.py

# extra → the modules that it installs
EXTRAS = {
    "dqn": ("gymnasium", "safetensors", "scipy", "torch", "tqdm", "tyro"),
    "examine": ("scipy", "tyro"),
    "notebooks": ("IPython", "PIL", "ipywidgets", "matplotlib"),
    "video": ("imageio_ffmpeg", "moviepy"),
    "atari": ("ale_py", "cv2"),
    "minatar": ("minatar",),
    "ray": ("ray",),
    "sb3": ("sb3_contrib", "stable_baselines3"),
    "tensorboard": ("tensorboard",),
    "tianshou": ("tianshou",),
    "torchrl": ("torchrl",),
}


def missing_extra(error: ImportError, what: str, extra: str = "dqn") -> ImportError:
    """An error that says how to install what ``what`` needs, such as "per_tutorial.train".

    It is ``error`` itself, of an import that failed, if no extra has the module. If several have
    it, ``extra`` is named.
    """
    module = (error.name or "").partition(".")[0]
    bringing = [name for name, modules in EXTRAS.items() if module in modules]
    if not bringing or not isinstance(error, ModuleNotFoundError):
        return error
    name = extra if extra in bringing else bringing[0]
    install = f'pip install "per_tutorial[{name}] @ git+{ADDRESS}"'
    said = f"{what} needs {module}, which is not installed: {install}"
    return ModuleNotFoundError(f'{said} (in a checkout: pip install ".[{name}]")', name=error.name)


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
