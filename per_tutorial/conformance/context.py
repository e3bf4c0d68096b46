"""What a question works with: new buffers of the examined kind, each with its own seed."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from per_tutorial.conformance.adapter import Adapter, Settings
from per_tutorial.conformance.answers import BufferRaised, NotOffered
from per_tutorial.conformance.harness import BufferHarness

# One capacity and few batch sizes for most questions: some libraries compile for each.
CAPACITY, BATCH = 64, 32


class TestContext:
    """What one question works with; it depends only on the adapter, the name and the seed.

    Attributes:
        adapter: of the examined buffer.
        rng: for the question's own random choices.
    """

    __test__ = False  # pytest must not collect it

    def __init__(self, adapter: Adapter, name: str, seed: int = 0) -> None:
        self.adapter = adapter
        self.rng = np.random.default_rng([seed, zlib.crc32(name.encode())])

    def harness(self, added: int = 0, *, exact: bool = False, **settings: float) -> BufferHarness:
        """A new buffer with ``added`` transitions in it.

        Args:
            added: how many.
            exact: whether frequencies will be compared with P(i). A buffer that draws without
                replacement is then asked for minibatches of one.
            settings: `Settings` that replace the usual ones.
        """
        seed = int(self.rng.integers(2**31))
        usual: dict[str, Any] = {"capacity": CAPACITY, "batch_size": BATCH, "seed": seed}
        if exact and not self.adapter.replacement:
            settings["batch_size"] = 1
        return BufferHarness(self.adapter, Settings(**usual | settings)).add(added)

    def offered(self, *methods: str) -> None:
        """Raise `NotOffered` unless the adapter has all of these methods."""
        for method in methods:
            if not hasattr(self.adapter, method):
                raise NotOffered(f"the adapter has no `{method}`")

    def require(self, distribution: str, why: str) -> None:
        """Raise `NotOffered`, for this reason, unless the buffer draws by this distribution."""
        if self.adapter.distribution != distribution:
            raise NotOffered(why)


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Turn a buffer's `ValueError` or `AssertionError` about a setting into `NotOffered`."""
    try:
        yield
    except BufferRaised as raised:
        if isinstance(raised.__cause__, ValueError | AssertionError):
            raise NotOffered(f"it refuses {what} ({raised})") from raised
        raise
