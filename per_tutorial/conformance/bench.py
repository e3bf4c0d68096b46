"""What checks work with: buffers of the examined kind whose contents are known.

Counts of draws are compared by χ² tests that a correct buffer fails in one of 10⁷ cases at most.
They are exact for independent draws. Stratified ones (appendix B.2.1) vary less. Where draws vary
more, as in minibatches that are filled up with repeated ones, the tests allow for it.
"""

import inspect
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import extract_tb
from typing import Any, Literal
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from per_tutorial.common.arguments import plain_array, whole_number
from per_tutorial.conformance.adapter import ACTIONS, Adapter, BufferSettings, Minibatch
from per_tutorial.replay.contracts import Floats, Transition

__tracebackhide__ = True  # pytest shows the user's test, not these lines
FALSE_ALARM, SIGMAS = 1e-7, 5.5  # how seldom a correct buffer fails; the same in deviations
DRAWS = 200  # for each place of a buffer, in most comparisons
Serials = NDArray[np.int64]  # numbers of transitions, from 0 as they were added


class Skipped(SkipTest):
    """The buffer or its adapter lacks what a check needs; the message says what."""

    verdict: Literal["skipped", "inconclusive"] = "skipped"


class Inconclusive(Skipped):
    """A check could not decide; the message says why."""

    verdict = "inconclusive"


class Raised(AssertionError):
    """The buffer or its adapter raised an exception, the `__cause__` of this one."""


@contextmanager
def told(when: str) -> Iterator[None]:
    """Begin what goes wrong inside with ``when``; there, what can't be decided is a failure too."""
    try:
        yield
    except (AssertionError, Inconclusive) as error:
        raise AssertionError(f"{when}, {error}") from None


class Bench:
    """Makes buffers of one kind for the check of this name, most with these sizes."""

    def __init__(
        self, adapter: Adapter, name: str, capacity: int, batch_size: int, seed: int
    ) -> None:
        self.adapter = adapter
        self.capacity = whole_number("capacity", capacity, minimum=12)
        whole_number("batch_size", batch_size, minimum=2, maximum=capacity)
        self.batch_size = max(2, min(batch_size, capacity - adapter.delay))
        whole_number("seed", seed, minimum=0)
        self.rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        self.draws = (DRAWS if adapter.replacement else DRAWS // 2) * capacity
        self.slack = 0.002 if adapter.replacement else 0.03  # of exponents
        self.unit = min(1.0, (adapter.clip or 10.0) / 10)  # TD errors up to 10 units are told apart

    def fill(self, added: int | None = None, *, exact: bool = False, **settings: Any) -> "Filled":
        """A new buffer, by default full; other arguments are those of `Filled`.

        If frequencies are to be ``exact``, a buffer without replacement has minibatches of two.
        """
        capacity = settings.setdefault("capacity", self.capacity)
        added = capacity + self.adapter.delay if added is None else added
        size = 2 if exact and not self.adapter.replacement else self.batch_size
        drawable = min(added, capacity) - self.adapter.delay
        settings.setdefault("batch_size", max(2, min(size, drawable)))
        settings.setdefault("seed", int(self.rng.integers(2**31)))
        return Filled(self.adapter, **settings).add(added)

    def mixed_errors(self) -> Callable[[int], float]:
        """TD errors by serial number: 0.1 to 4 units in a random order."""
        sizes = self.rng.permutation(np.geomspace(0.1, 4.0, self.capacity)) * self.unit
        return lambda serial: float(sizes[serial % len(sizes)]) * (1 + serial / 1e5)


class Filled:
    """A buffer, and a record of everything that was added to it.

    States are numbered, and an episode starts one state after the last one's end, so the number in
    an observation identifies the transition. Every other episode ends by a time limit.
    """

    def __init__(
        self, adapter: Adapter, *, first_state: int = 1, episode: int = 10, **settings: Any
    ) -> None:
        self.adapter, self.settings, self.episode = adapter, BufferSettings(**settings), episode
        self.log: list[Any] = []  # each `Transition`, by serial number
        self.serial_of: dict[int, int] = {}  # by the state in which a transition begins
        self.state = first_state
        self.errors: dict[int, float] = {}  # serial number → the TD error that was set
        self.dispersion = 1.0  # of the last counts: their variance, over that of independent draws
        self.buffer = self.call("make", self.settings)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the adapter; whatever it raises becomes a `Raised`."""
        try:
            return getattr(self.adapter, method)(*arguments)
        except (Exception, SystemExit) as error:
            text = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:120]}"
            place = extract_tb(error.__traceback__)[-1]
            where = f"({os.path.basename(place.filename)}, line {place.lineno})"
            if method == "update" and arguments[1] is None:
                where += "; likely: the Minibatch has no `keys`"
            raise Raised(f"`{method}` raises {text.rstrip(': ')} {where}") from error

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
            fields = serial % ACTIONS, 0.1 + (1 + serial * 37) % 101 - 50
            ends = terminal, over and not terminal
            given, kept = (
                Transition(observation_of(state), *fields, observation_of(state + 1), *ends)
                for _ in range(2)
            )
            self.log.append(kept)
            self.serial_of[state] = serial
            self.call("add", self.buffer, given)
            if spoil:
                for array in (given.observation, given.next_observation):
                    np.asarray(array)[:] = 0
            self.state += 2 if over else 1
        return self

    def sample(self) -> tuple[Minibatch, Serials, Floats | None]:
        """A minibatch, its transitions and its weights.

        It may hold what should have been overwritten, or is too new, which `reach` asks.
        """
        size = self.settings.batch_size
        drawn = self.call("sample", self.buffer, size, self.settings.beta)
        returned = f"`sample` returned a {type(drawn).__name__}, not a Minibatch"
        assert isinstance(drawn, Minibatch), returned
        seen = numbers("observations", drawn.observations, (size, 2)).tolist()
        known = [self.serial_of.get(state, -1) if rest == state % 7 else -1 for state, rest in seen]
        serials = np.array(known)
        said = f"an observation came that was never added: {seen[int(np.argmin(serials))]}"
        assert serials.max() >= 0, said
        if serials.min() < 0:
            raise Inconclusive(said)
        weights = None if drawn.weights is None else numbers("weights", drawn.weights, (size,))
        return drawn, serials, weights

    def update(
        self, drawn: Minibatch, serials: Serials, error_of: Callable[[int], float]
    ) -> Floats:
        """Update a minibatch; returns the array of TD errors that the buffer was given."""
        errors = {serial: error_of(serial) for serial in serials.tolist()}
        given = np.array([errors[serial] for serial in serials.tolist()], np.float64)
        arguments = [drawn.keys, given]
        if len(inspect.signature(self.adapter.update).parameters) > 3:  # the weights, too
            arguments.append(None if drawn.weights is None else np.array(drawn.weights, float))
        self.call("update", self.buffer, *arguments)
        self.errors |= errors
        return given

    def set_errors(self, error_of: Callable[[int], float]) -> "Filled":
        """Draw and update until the TD error of each stored transition is ``error_of(serial)``.

        One transition in four may never come, so that dead slots do not hide other faults.
        """
        missing = set(self.stored.tolist())
        limit = 400 + 100 * self.settings.capacity // self.settings.batch_size
        for _ in range(limit):
            drawn, serials, _ = self.sample()
            self.update(drawn, serials, error_of)
            missing -= set(serials.tolist())
            if not missing:
                return self
        if len(missing) > len(self.stored) // 4:
            raise Inconclusive(
                f"{len(missing)} of {len(self.stored)} transitions did not come in {limit} "
                "minibatches, so their TD errors could not be set"
            )
        return self

    def many(self, draws: int) -> tuple[Serials, Floats | None]:
        """The transitions and weights of at least ``draws`` draws, both (minibatches, batch)."""
        batches = [self.sample()[1:] for _ in range(-(-draws // self.settings.batch_size))]
        serials = np.array([serials for serials, _ in batches])
        return serials, None if batches[0][1] is None else np.array([w for _, w in batches])

    def weighted(self, draws: int) -> tuple[Serials, Floats]:
        """`many`, for checks that need weights."""
        serials, weights = self.many(draws)
        if weights is None:
            raise Skipped("it has no weights")
        wrong = weights[~(np.isfinite(weights) & (weights > 0))]
        assert not wrong.size, f"a weight is {wrong[0]}, with {len(self.stored)} stored"
        return serials, weights

    def counts(self, draws: int) -> NDArray[np.int64]:
        """How often each of the `stored` comes in at least ``draws`` draws."""
        return self.count(self.many(draws)[0])

    def count(self, serials: Serials) -> NDArray[np.int64]:
        """How often each of the `stored` is among these (minibatches, batch); others don't count.

        It measures the `dispersion`, too.
        """
        places, size = serials - self.stored[0], len(self.stored)
        cells = (places + size * np.arange(len(places))[:, None])[(places >= 0) & (places < size)]
        each = np.bincount(cells, minlength=size * len(places)).reshape(-1, size)
        mean = each.mean(axis=0)
        independent = (mean * (1 - mean / serials.shape[1])).sum()
        self.dispersion = max(1.0, each.var(axis=0).sum() / max(independent, 1e-9))
        return each.sum(axis=0)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the TD error of each of the `stored` was set."""
        return np.array([serial in self.errors for serial in self.stored.tolist()])

    def bases(self) -> Floats:
        """What P(i) is a power of, for the `known`: p, or 1/rank."""
        errors = np.array([self.errors[k] for k in self.stored[self.known].tolist()])
        p = numbers("the adapter's `priorities`", self.call("priorities", errors), errors.shape)
        assert (np.isfinite(p) & (p >= 0)).all(), "the adapter's `priorities` must be ≥ 0"
        return 1 / (np.argsort(np.argsort(-p)) + 1) if self.adapter.distribution == "rank" else p

    def exponent(self, counts: NDArray) -> tuple[float, float]:
        """The power of their `bases` in which the `known` most likely came, its standard error."""
        if self.adapter.distribution == "uniform":
            return 0.0, 0.0
        logs, came = np.log(self.bases()), counts[self.known]

        def mean(power: float) -> float:  # it rises with the power
            return float(self.expected(np.exp(power * (logs - logs.max()))) @ logs)

        seen, low, high = came @ logs / came.sum(), -4.0, 4.0
        for _ in range(40):  # bisection
            power = (low + high) / 2
            low, high = (power, high) if mean(power) < seen else (low, power)
        slope = (mean(power + 0.01) - mean(power - 0.01)) / 0.02
        deviation = np.sqrt(self.dispersion * (came @ (logs - seen) ** 2)) / came.sum()
        return (power, deviation / slope) if slope > 1e-9 else (0.0, np.inf)

    def expected(self, masses: Floats) -> Floats:
        """The shares of the draws of transitions with p^α.

        Without replacement, they are of minibatches of two, drawn one after the other.
        """
        share = self.adapter.uniform_share
        P = (1 - share) * masses / masses.sum() + share / len(masses)
        if not self.adapter.replacement:
            odds = P / np.maximum(1 - P, 1e-9)
            P = P * (1 + odds.sum() - odds) / 2
        return P

    def assert_fits(self, draws: int, exponent: float | None = None) -> tuple[float, float]:
        """Assert that the `known` come in proportion to a power of their priorities.

        Returns the power and its standard error. By default it is the one that fits best, which the
        check `exponent` judges.
        """
        counts = self.counts(draws)
        best = self.exponent(counts) if exponent is None else (exponent, 0.0)
        self.assert_share(self.known, counts, self.expected(self.bases() ** best[0]))
        return best

    def assert_share(
        self, which: NDArray[np.bool_], counts: NDArray, expected: Floats | None = None
    ) -> None:
        """Assert that these transitions came as often as expected among themselves, or equally."""
        came, slack = counts[which], 0.0 if self.adapter.replacement else 0.08
        expected = np.full(len(came), 1 / len(came)) if expected is None else expected
        if (worst := misfit(came, expected, slack, self.dispersion)) is not None:
            serial = self.stored[which][worst]
            error = f"|δ| = {abs(self.errors[serial]):.3g}" if serial in self.errors else "new"
            raise AssertionError(
                f"transition {serial} ({error}) came in {came[worst] / came.sum():.2%} of the "
                f"draws, {expected[worst]:.2%} expected"
            )


def observation_of(state: int) -> NDArray[np.float32]:
    """The observation (2,) of a state."""
    return np.array([state, state % 7], dtype=np.float32)


def numbers(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """What a buffer returned as a float64 array; asserts that it has this shape.

    Columns (batch, 1) count as (batch,): whether they fit together is what `handling` asks.
    """
    try:
        array = plain_array(name, values).astype(np.float64)
    except Exception as error:
        raise AssertionError(f"{name} are no array of numbers ({error})") from error
    wanted = array.shape in (shape, (*shape, 1))
    assert wanted, f"{name} have the shape {array.shape}, {shape} expected"
    return array.reshape(shape)


def fields_of(drawn: Minibatch) -> dict[str, NDArray]:
    """Copies of a minibatch's arrays by name, without the keys."""
    given = {n: value for n, value in vars(drawn).items() if n != "keys" and value is not None}
    return {name: np.array(plain_array(name, value), float) for name, value in given.items()}


def misfit(
    counts: NDArray, expected: Floats, slack: float = 0.0, dispersion: float = 1.0
) -> int | None:
    """The item whose count fits least, or None if chance explains all (χ²).

    Probabilities, (items,) like the counts, may be off by a relative ``slack``; the variance of the
    counts may be ``dispersion`` times that of independent draws.
    """
    wanted = expected * counts.sum()
    off = np.maximum(np.abs(counts - wanted) - slack * wanted, 0.0)
    rare = np.cumsum(np.sort(wanted))[np.argsort(np.argsort(wanted))] < 8
    parts = off[~rare] ** 2 / wanted[~rare]
    if rare.any():  # χ² needs some of each: these count as one item
        total = wanted[rare].sum()
        parts = np.append(parts, (counts[rare].sum() - total) ** 2 / max(total, 1.0))
    if chi2.sf(parts.sum() / dispersion, max(1, len(parts) - 1)) > FALSE_ALARM:
        return None
    return int(np.argmax(off / np.sqrt(wanted + 1)))
