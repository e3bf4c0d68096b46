"""What checks work with: buffers of the examined kind whose contents are known.

Counts of draws are compared by χ² tests that a correct buffer fails in one of 10⁷ cases at most.
Stratified draws (appendix B.2.1) vary less than independent ones, for which the tests are exact.
"""

import zlib
from collections.abc import Callable
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import plain_array
from per_tutorial.conformance.adapter import ACTIONS, Adapter, Drawn, Settings, takes_weights
from per_tutorial.replay.contracts import Floats, Transition

SIGMAS = 5.5  # a correct buffer is beyond that in fewer than one of 10⁷ cases
ENOUGH = 12_000  # draws of a full buffer of 64, for most comparisons
Serials = NDArray[np.int64]  # numbers of transitions, from 0 as they were added


class Skipped(SkipTest):
    """The buffer or its adapter lacks what a check needs; the message says what."""


class Inconclusive(SkipTest):
    """A check could not decide; the message says why."""


class Raised(AssertionError):
    """The buffer or its adapter raised an exception, the `__cause__` of this one."""

    @property
    def by_adapter(self) -> bool:
        """Whether an adapter's own line raised it, such as an attribute that isn't there."""
        trace, depth = self.__cause__.__traceback__ if self.__cause__ else None, 0
        while trace is not None:
            trace, depth = trace.tb_next, depth + 1
        kinds = (TypeError, AttributeError, NameError, KeyError)
        return depth <= 2 and isinstance(self.__cause__, kinds)  # `Filled.call`, and the method


class Bench:
    """Makes buffers for one check; what it does depends on the adapter, the name and the seed.

    Args:
        adapter: of the examined buffer.
        name: of the check.
        capacity, batch_size: of most buffers.
        seed: of the examination.
    """

    def __init__(
        self, adapter: Adapter, name: str, capacity: int, batch_size: int, seed: int
    ) -> None:
        self.adapter, self.capacity, self.batch_size = adapter, capacity, batch_size
        self.rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        self.draws = (ENOUGH if adapter.replacement else ENOUGH // 2) * capacity // 64

    def fill(self, added: int | None = None, *, exact: bool = False, **settings: Any) -> "Filled":
        """A new buffer.

        Args:
            added: how many transitions are in it; by default it is full.
            exact: whether frequencies will be compared with P(i). A buffer that draws without
                replacement is then asked for minibatches of two.
            settings: `Settings` that replace the usual ones, and arguments of `Filled`.
        """
        capacity = settings.setdefault("capacity", self.capacity)
        added = capacity + self.adapter.delay if added is None else added
        size = 2 if exact and not self.adapter.replacement else self.batch_size
        settings.setdefault("batch_size", max(2, min(size, added - self.adapter.delay)))
        seed = int(self.rng.integers(2**31))
        return Filled(self.adapter, seed=seed, **settings).add(added)

    def mixed_errors(self) -> Callable[[int], float]:
        """TD errors by serial number: 0.1 to 4 in a random order, in units of the clip if any."""
        sizes = np.geomspace(0.1, 4.0, self.capacity) * min(1.0, (self.adapter.clip or 4.0) / 4)
        sizes = sizes[self.rng.permutation(self.capacity)]
        return lambda serial: float(sizes[serial % len(sizes)]) * (1 + serial / 1e5)


class Filled:
    """A buffer, and a record of everything that was added to it.

    States of the environment are numbered. A step leads from state s to s + 1, and the next episode
    starts one state after the end of the last one, so the number in an observation identifies the
    transition. Episodes of ``episode`` steps end in a terminal state and by a time limit in turn.
    """

    def __init__(
        self, adapter: Adapter, *, first_state: int = 1, episode: int = 10, **settings: Any
    ) -> None:
        self.adapter, self.settings, self.episode = adapter, Settings(**settings), episode
        self.log: list[Transition] = []  # by serial number
        self.serial_of: dict[int, int] = {}  # by the state in which a transition begins
        self.state = first_state
        self.errors: dict[int, float] = {}  # serial number → the TD error that was set
        self.wrote = ""  # what the buffer did to the caller's arrays, if anything
        self.buffer = self.call("make", self.settings)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the adapter; whatever it raises becomes a `Raised`."""
        try:
            return getattr(self.adapter, method)(*arguments)
        except (Exception, SystemExit) as error:
            text = str(error).strip().partition("\n")[0][:120]
            raise Raised(
                f"`{method}` raises {type(error).__name__}: {text}".rstrip(": ")
            ) from error

    @property
    def stored(self) -> Serials:
        """The transitions that can be drawn now, the oldest first.

        A buffer may wait for n steps before it stores the first, and then keeps older ones.
        """
        added, waiting = len(self.log), self.settings.n_step - 1
        oldest = max(0, added - self.settings.capacity - waiting)
        return np.arange(oldest, added - self.adapter.delay)

    def add(self, count: int, *, spoil: bool = False) -> "Filled":
        """Add transitions; with ``spoil``, write over their arrays afterwards."""
        for _ in range(count):
            serial, state = len(self.log), self.state
            over = serial % self.episode == self.episode - 1
            terminal = over and serial // self.episode % 2 == 0
            arrays = [observation_of(state), observation_of(state + 1)]
            reward = 0.1 + (1 + serial * 37) % 101
            step = (serial % ACTIONS, reward, observation_of(state + 1), terminal, over - terminal)
            self.log.append(Transition(observation_of(state), *step))
            self.serial_of[state] = serial
            handed = self.log[-1]._replace(
                observation=arrays[0], next_observation=arrays[1], truncated=over and not terminal
            )
            self.call("add", self.buffer, handed)
            if spoil:
                arrays[0][:] = arrays[1][:] = 0
            self.state += 2 if over else 1
        return self

    def sample(self) -> tuple[Drawn, Serials, Floats | None]:
        """A minibatch, its transitions and its weights; asserts that it holds what is stored."""
        size = self.settings.batch_size
        drawn = self.call("sample", self.buffer, size, self.settings.beta)
        assert isinstance(drawn, Drawn), f"`sample` returned a {type(drawn).__name__}, not a Drawn"
        seen = numbers("observations", drawn.observations, (size, 2))
        first, serials = self.stored[0] if len(self.log) else 0, np.empty(size, np.int64)
        for k, (state, other) in enumerate(seen.tolist()):
            serials[k] = self.serial_of.get(state, -1)
            assert serials[k] >= 0 and other == state % 7, (
                f"an observation came that was never added: {[state, other]}"
            )
        assert serials.min() >= first, (
            f"transition {serials.min()} came, which should have been overwritten: "
            f"{self.settings.capacity} slots, {len(self.log)} added"
        )
        weights = None if drawn.weights is None else numbers("weights", drawn.weights, (size,))
        return drawn, serials, weights

    def update(self, drawn: Drawn, td_errors: ArrayLike) -> None:
        """Update a minibatch; the buffer gets copies of the TD errors."""
        given = np.array(td_errors, np.float64)
        arguments = [drawn.keys, given.copy()]
        if takes_weights(self.adapter):
            arguments.append(None if drawn.weights is None else np.array(drawn.weights, float))
        self.call("update", self.buffer, *arguments)
        if not np.array_equal(arguments[1], given, equal_nan=True):
            self.wrote = (
                f"`update` changed TD errors from {given[0]:.3g} … to {arguments[1][0]:.3g} …"
            )

    def set_errors(self, error_of: Callable[[int], float], *, distinct: bool = False) -> "Filled":
        """Draw and update until the TD error of each stored transition is ``error_of(serial)``.

        One transition in sixteen may never come, so that a dead slot does not hide other faults.

        Args:
            error_of: TD error by serial number.
            distinct: skip minibatches that hold a transition twice.
        """
        missing = set(self.stored.tolist())
        limit = 400 + 100 * self.settings.capacity // self.settings.batch_size
        for _ in range(limit):
            drawn, serials, _ = self.sample()
            if distinct and len(set(serials.tolist())) < len(serials):
                continue
            errors = [error_of(serial) for serial in serials.tolist()]
            self.update(drawn, errors)
            self.errors.update(zip(serials.tolist(), errors, strict=True))
            missing -= set(serials.tolist())
            if not missing:
                return self
        if len(missing) > len(self.stored) // 16:
            raise Inconclusive(
                f"{len(missing)} of {len(self.stored)} transitions, such as number {min(missing)}, "
                f"did not come in {limit} minibatches, so their TD errors could not be set"
            )
        return self

    def many(self, draws: int) -> tuple[Serials, Floats | None]:
        """The transitions and weights of at least ``draws`` draws, both (minibatches, batch)."""
        batches = [self.sample()[1:] for _ in range(-(-draws // self.settings.batch_size))]
        serials = np.array([serials for serials, _ in batches])
        return serials, None if batches[0][1] is None else np.array([w for _, w in batches])

    def counts(self, draws: int) -> NDArray[np.int64]:
        """How often each of the `stored` comes in at least ``draws`` draws."""
        return self.count(self.many(draws)[0])

    def count(self, serials: Serials) -> NDArray[np.int64]:
        """How often each of the `stored` is among these."""
        counts = np.bincount(serials.ravel() - self.stored[0], minlength=len(self.stored))
        assert len(counts) == len(self.stored), (
            f"transition {serials.max()} came, which the adapter's `delay` says is too new"
        )
        return counts

    def weighted(self, draws: int) -> tuple[Serials, Floats]:
        """`many`, for checks that need weights."""
        serials, weights = self.many(draws)
        if weights is None:
            raise Skipped("it has no weights")
        wrong = ~(np.isfinite(weights) & (weights > 0))
        stored = f"with {len(self.stored)} of {self.settings.capacity} stored"
        assert not wrong.any(), f"a weight is {weights[wrong][:1]}, {stored}"
        return serials, weights

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the TD error of each of the `stored` was set."""
        return np.array([serial in self.errors for serial in self.stored.tolist()])

    def bases(self) -> Floats:
        """What P(i) is a power of, for the `known`: p, or 1/rank."""
        errors = np.array([self.errors[k] for k in self.stored.tolist() if k in self.errors])
        p = numbers("the adapter's `priorities`", self.call("priorities", errors), errors.shape)
        assert (np.isfinite(p) & (p >= 0)).all(), "the adapter's `priorities` must be ≥ 0"
        if self.adapter.distribution == "rank":
            ranks = np.empty(len(p))
            ranks[np.argsort(-p, kind="stable")] = np.arange(1, len(p) + 1)
            return 1 / ranks
        return p

    def probabilities(self, exponent: float | None = None) -> Floats:
        """P(i) of the `known`, by default with the exponent that was set."""
        uniform = self.adapter.distribution == "uniform"
        usual = 0.0 if uniform else self.settings.alpha
        masses = self.bases() ** (usual if exponent is None else exponent)
        return masses / masses.sum()

    def assert_fits(self, counts: NDArray, expected: Floats) -> None:
        """Assert that the `known` came as often as expected, up to chance."""
        n, slack = counts.sum(), 0.0 if self.adapter.replacement else 0.08
        worst = misfit(counts, expected, slack)
        if worst is None:
            return
        serial = self.stored[self.known][worst]
        raise AssertionError(
            f"transition {serial} (|δ| = {abs(self.errors[serial]):.3g}) came in "
            f"{counts[worst] / n:.2%} of {n} draws, {expected[worst]:.2%} expected"
        )


def observation_of(state: int) -> NDArray[np.float32]:
    """The observation (2,) of a state."""
    return np.array([state, state % 7], dtype=np.float32)


def numbers(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """What a buffer returned as a float64 array; asserts that it has this shape."""
    try:
        array = plain_array(name, values).astype(np.float64)
    except Exception as error:
        raise AssertionError(f"{name} are no array of numbers ({error})") from error
    assert array.shape == shape, f"{name} have the shape {array.shape}, {shape} expected"
    return array


def misfit(counts: NDArray, expected: Floats, slack: float = 0.0) -> int | None:
    """The item whose count fits least, or None if chance explains all (χ²).

    Args:
        counts: (items,) how often each came.
        expected: (items,) their probabilities.
        slack: how far, relatively, probabilities may be from ``expected``.
    """
    wanted = expected * counts.sum()
    off = np.maximum(np.abs(counts - wanted) - slack * wanted, 0.0)
    order = np.argsort(wanted)
    rare = order[np.cumsum(wanted[order]) < 8]  # χ² needs some of each: these count as one item
    rest = np.setdiff1d(order, rare)
    parts = off[rest] ** 2 / wanted[rest]
    if len(rare):
        total = wanted[rare].sum()
        parts = np.append(parts, (counts[rare].sum() - total) ** 2 / max(total, 1.0))
    k = max(1, len(parts) - 1)
    # Wilson and Hilferty: the cube root of χ²/k is almost normal.
    z = ((parts.sum() / k) ** (1 / 3) - (1 - 2 / (9 * k))) / np.sqrt(2 / (9 * k))
    worst = int(np.argmax(off / np.sqrt(wanted + 1)))
    return worst if z > SIGMAS + (k < 3) else None


def exponent_of(bases: Floats, counts: NDArray) -> tuple[float, float]:
    """The a of P(i) ∝ base^a that is most likely given the counts, and its standard error."""
    logs, low, high = np.log(bases), -4.0, 4.0
    seen = counts @ logs / counts.sum()
    for _ in range(50):  # bisection: the mean of the logarithms rises with a
        middle = (low + high) / 2
        masses = np.exp(middle * (logs - logs.max()))
        mean = masses @ logs / masses.sum()
        low, high = (middle, high) if mean < seen else (low, middle)
    variance = masses @ (logs - mean) ** 2 / masses.sum()
    return middle, 1 / np.sqrt(max(variance * counts.sum(), 1e-12))
