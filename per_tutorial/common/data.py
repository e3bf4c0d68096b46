"""Where the data of the series are: what its studies found, and two trained agents.

They are files of `notebooks/results/` in a checkout. An installed package doesn't contain them.
"""

from pathlib import Path

CHECKOUT = Path(__file__).parents[2] / "notebooks" / "results"


def data_folder() -> Path:
    """The folder of the data: the checkout's, or ``results`` beside a notebook that runs here."""
    return CHECKOUT if CHECKOUT.is_dir() else Path("results").absolute()


def data_file(name: str) -> Path:
    """The path of a file of the data; a FileNotFoundError says what to do."""
    path = data_folder() / name
    if not path.is_file():
        raise FileNotFoundError(
            f"name: no file {name!r} in {str(path.parent)!r}. The data of the series come with "
            "its repository, not with the package: `git clone` it, and run this in its folder "
            "`notebooks`, or `pip install --editable` it"
        )
    return path
