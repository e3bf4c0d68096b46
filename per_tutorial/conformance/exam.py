"""What a question works with: new buffers of the examined kind, each with a seed of its own."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Settings
from per_tutorial.conformance.answers import Fault, NotOffered
from per_tutorial.conformance.trial import Trial

# One capacity for most questions, and one batch size: some libraries compile for each of them anew.
CAPACITY, BATCH = 64, 32


class Exam:
    """The side of one question. What it does depends on nothing but the seed and the question's name.

    Attributes:
        adapter: of the examined buffer.
        rng: for what the question decides by chance.
    """

    def __init__(self, adapter: Adapter, name: str, seed: int = 0) -> None:
        self.adapter = adapter
        self.rng = np.random.default_rng([seed, zlib.crc32(name.encode())])

    def trial(self, added: int = 0, *, exact: bool = False, **settings: float) -> Trial:
        """A new buffer with ``added`` transitions in it.

        Args:
            added: how many.
            exact: whether frequencies will be held against P(i). A buffer that draws without replacement
                must then be asked for minibatches of one.
            settings: other `Settings` than the usual ones.
        """
        usual = {
            "capacity": CAPACITY,
            "batch_size": BATCH,
            "seed": int(self.rng.integers(2**31)),
        }
        if exact and not self.adapter.replacement:
            usual["batch_size"] = settings["batch_size"] = 1
        return Trial(self.adapter, Settings(**usual | settings)).add(added)  # type: ignore[arg-type]

    def require(self, *abilities: str) -> None:
        """`NotOffered` unless the adapter has all of these methods."""
        for ability in abilities:
            if not hasattr(self.adapter, ability):
                raise NotOffered(f"the adapter has no `{ability}`")


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """To refuse a setting is no fault: an error within becomes "not offered"."""
    try:
        yield
    except Fault:
        raise
    except (ValueError, AssertionError) as error:
        raise NotOffered(f"it refuses {what} ({described(error)})") from error


def described(error: BaseException) -> str:
    """The kind of an error and the first line of what it says, no more than a line."""
    text = str(error).strip().partition("\n")[0]
    text = text if len(text) <= 100 else f"{text[:97]}…"
    return f"{type(error).__name__}: {text}".rstrip(": ")
