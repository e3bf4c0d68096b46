"""A buffer whose contents are known: fill it, draw from it, set its priorities."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import plain_array
from per_tutorial.conformance.adapter import ACTIONS, Adapter, Drawn, Settings
from per_tutorial.conformance.answers import BufferRaised, Fault, Inconclusive, NotOffered
from per_tutorial.replay.contracts import Floats, Transition

EPISODE = 10  # steps of an episode, unless a question wants another length
MAX_SECONDS = 2.0  # of processor time for many updates


class Minibatch(NamedTuple):
    """One minibatch: as the buffer returned it, and what the examination reads from it.

    Attributes:
        drawn: as it was returned.
        serials: (batch,) numbers of the transitions, counted from 0 as they were added.
        weights: (batch,), or None if the buffer has no weights.
    """

    drawn: Drawn
    serials: NDArray[np.int64]
    weights: Floats | None


class BufferHarness:
    """A buffer of the examined kind, and a record of everything that was added to it.

    States of the environment are numbered from 1. A step leads from state s to s + 1, and the next
    episode starts one state after the end of the last one, so the number in an observation
    identifies the transition.

    All calls go through `call`, which tells the buffer's exceptions from the examination's own.

    Args:
        adapter: of the examined kind.
        settings: what the buffer is made with.
    """

    def __init__(self, adapter: Adapter, settings: Settings) -> None:
        self.adapter = adapter
        self.settings = settings
        self.buffer = self.call("make", settings)
        self.history: list[Transition] = []  # by serial number
        self._serials = np.full(64, -1, dtype=np.int64)  # state number → serial number, −1: none
        self.errors: dict[int, float] = {}  # serial → the TD error that `set_errors` has set
        self._state, self._step = 1, 0

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the adapter.

        Raises:
            BufferRaised: the adapter or its buffer raised an exception.
        """
        try:
            return getattr(self.adapter, method)(*arguments)
        except RecursionError as error:
            raise BufferRaised("it calls itself without end (RecursionError)") from error
        except (Exception, SystemExit) as error:
            raise BufferRaised(described(error)) from error

    @property
    def stored(self) -> NDArray[np.int64]:
        """The serial numbers that a ring of this capacity holds now, the oldest first."""
        added = len(self.history)
        return np.arange(max(0, added - self.settings.capacity), added)

    def add(
        self,
        count: int,
        *,
        episode: int = EPISODE,
        truncated: bool = False,
        written_over: bool = False,
    ) -> "BufferHarness":
        """Add ``count`` transitions, in episodes of ``episode`` steps that end in a terminal state.

        With ``truncated``, a time limit ends them instead. With ``written_over``, the arrays of a
        transition are overwritten after it was added, as by an environment that reuses one array.
        """
        for _ in range(count):
            serial, state = len(self.history), self._state
            over = self._step == episode - 1
            transition = Transition(
                observation_of(state),
                serial % ACTIONS,
                float(reward_of(serial)),
                observation_of(state + 1),
                over and not truncated,
                over and truncated,
            )
            self.history.append(transition)
            if state >= len(self._serials):
                self._serials = np.append(self._serials, np.full(len(self._serials), -1))
            self._serials[state] = serial
            handed = transition._replace(  # the record keeps arrays of its own
                observation=observation_of(state), next_observation=observation_of(state + 1)
            )
            self.call("add", self.buffer, handed)
            if written_over:
                write_over([handed.observation, handed.next_observation])
            self._state += 2 if over else 1
            self._step = 0 if over else self._step + 1
        return self

    def sample(self) -> Minibatch:
        """Draw one minibatch."""
        drawn, observations, weights = self.unread()
        return Minibatch(drawn, self.serials(observations), weights)

    def unread(self) -> tuple[Drawn, Floats, Floats | None]:
        """Draw a minibatch without identifying transitions; also its observations and weights."""
        size = self.settings.batch_size
        drawn = self.call("sample", self.buffer, size, self.settings.beta)
        if not isinstance(drawn, Drawn):
            raise Fault(f"sample returned a {type(drawn).__name__}, not a Drawn")
        observations = plain("observations", drawn.observations, (size, 2))
        if drawn.weights is None:
            return drawn, observations, None
        return drawn, observations, plain("weights", drawn.weights, (size,))

    def update(self, drawn: Drawn, td_errors: Floats) -> None:
        """Update the priorities of a minibatch from its TD errors (batch,)."""
        self.call("update", self.buffer, drawn.keys, td_errors)

    def draw(self, draws: int) -> NDArray[np.int64]:
        """The serials (batches, batch) of at least ``draws`` draws, in minibatches."""
        batches = -(-draws // self.settings.batch_size)
        return np.array([self.sample().serials for _ in range(batches)])

    def counts(self, draws: int) -> NDArray[np.int64]:
        """How often each of the `stored` is drawn in at least ``draws`` draws."""
        return self.count(self.draw(draws))

    def count(self, serials: NDArray[np.int64]) -> NDArray[np.int64]:
        """How often each of the `stored` is among these; a Fault if any other is."""
        first = int(self.stored[0])
        if serials.min() < first:
            raise Fault(
                f"transition {serials.min()} was drawn, which should have been overwritten: "
                f"{self.settings.capacity} slots, "
                f"{len(self.history) - 1 - serials.min()} later transitions"
            )
        return np.bincount(serials.ravel() - first, minlength=len(self.stored))

    def weighted(self, draws: int) -> tuple[NDArray[np.int64], Floats]:
        """`draw`, for questions that need weights: serials and weights, both (batches, batch)."""
        batches = [self.sample() for _ in range(-(-draws // self.settings.batch_size))]
        if any(one.weights is None for one in batches):
            raise NotOffered("the buffer has no weights")
        weights = np.array([one.weights for one in batches])
        wrong = ~(np.isfinite(weights) & (weights > 0))
        if wrong.any():
            raise Fault(f"a weight is {weights[wrong][0]:g}")
        return np.array([one.serials for one in batches]), weights

    def set_errors(
        self, error_of: Callable[[int], float], kind: Any = float, *, distinct: bool = False
    ) -> "BufferHarness":
        """Draw and update until the TD error of every stored transition is ``error_of(serial)``.

        Updates always pass the whole minibatch just drawn, since some buffers accept nothing else.
        One transition in sixteen may never come, so that a dead slot does not hide other faults
        (the question "reach" finds it). If more are missing, raises `Inconclusive`.

        Args:
            error_of: TD error by serial number.
            kind: dtype of the errors.
            distinct: skip minibatches that hold a transition twice.
        """
        missing = set(self.stored.tolist())
        # Missing transitions still have their initial priority. If minibatches are at least a
        # quarter of what is stored, a few hundred reach all; smaller ones need more.
        limit = 400 + 4000 // self.settings.batch_size
        for _ in range(limit):
            drawn, serials, _ = self.sample()
            if distinct and len(set(serials.tolist())) < len(serials):
                continue
            errors = np.array([error_of(serial) for serial in serials.tolist()], dtype=kind)
            self.update(drawn, errors)
            self.errors.update(zip(serials.tolist(), errors.tolist(), strict=True))
            missing -= set(serials.tolist())
            if not missing:
                return self
        if len(missing) > max(1, len(self.stored) // 16) or len(missing) == len(self.stored):
            raise Inconclusive(
                f"{len(missing)} of {len(self.stored)} transitions, such as number {min(missing)}, "
                f"were not drawn in {limit} minibatches of the preparation"
            )
        for serial in missing:
            self.errors.pop(serial, None)
        return self

    def keep_updating(self, errors: Floats, total: int) -> int:
        """Draw and update ``total`` priorities, with the rows of ``errors`` (rows, batch) in turn.

        Returns how many updates the time allowed.
        """
        until = time.process_time() + min(MAX_SECONDS, self.adapter.time_limit / 3)
        size, done = self.settings.batch_size, 0
        while done < total and time.process_time() < until:
            drawn = self.call("sample", self.buffer, size, self.settings.beta)
            self.update(drawn, errors[done // size % len(errors)])
            done += size
        return done

    def expected(self) -> Floats:
        """P(i) of all `stored`, from the errors that were set; 0 where none was."""
        probabilities = np.zeros(len(self.stored))
        probabilities[self.is_known] = self.probabilities(self.priorities())
        return probabilities

    def probabilities(self, priorities: Floats, alpha: float | None = None) -> Floats:
        """P(i) of transitions with these priorities (items,), by default with the buffer's α."""
        alpha = self.settings.alpha if alpha is None else alpha
        if self.adapter.distribution == "rank":
            ranks = np.empty(len(priorities))
            ranks[np.argsort(-priorities, kind="stable")] = np.arange(1, len(priorities) + 1)
            masses = ranks**-alpha
        elif self.adapter.distribution == "uniform":
            masses = np.ones(len(priorities))
        else:
            masses = priorities**alpha
        return masses / masses.sum()

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether the error of each of the `stored` was set."""
        return np.array([serial in self.errors for serial in self.stored.tolist()])

    def priorities(self) -> Floats:
        """The priorities of those `stored` whose errors were set, the oldest first."""
        known = [self.errors[serial] for serial in self.stored.tolist() if serial in self.errors]
        return self.priorities_of(np.array(known))

    def priorities_of(self, td_errors: Floats) -> Floats:
        """The priorities of these TD errors (items,), according to the adapter."""
        made = self.call("priorities", td_errors)
        priorities = plain("the adapter's `priorities`", made, (len(td_errors),))
        if not (np.isfinite(priorities) & (priorities >= 0)).all() or not priorities.any():
            raise Fault(f"the adapter's `priorities` returned {priorities.min():g} for a TD error")
        return priorities

    def serials(self, observations: NDArray) -> NDArray[np.int64]:
        """The serial numbers (batch,) of transitions with these observations (batch, 2)."""
        states = observations[:, 0]
        known = np.isfinite(states) & (states >= 1) & (states < self._state)
        numbers = np.where(known, states, 0).astype(np.int64)
        found = self._serials[numbers]
        wrong = (found < 0) | (numbers != states) | (observations[:, 1] != numbers % 7)
        if wrong.any():
            raise Fault(
                f"an observation was drawn that was never added: {observations[wrong][0].tolist()}"
            )
        return found


def observation_of(state: int) -> NDArray[np.float32]:
    """The observation (2,) of a state."""
    return np.array([state, state % 7], dtype=np.float32)


def write_over(values: Any) -> None:
    """Fill arrays and CPU tensors with zeros in place, also in lists; leave anything else.

    No state and no reward of the environment is 0.
    """
    if isinstance(values, list | tuple):
        for one in values:
            write_over(one)
        return
    if hasattr(values, "detach"):  # a torch tensor; from another device, this is a copy
        values = np.asarray(values.detach().cpu())
    if isinstance(values, np.ndarray) and values.flags.writeable:
        values[...] = 0


def reward_of(serial: int) -> int:
    """A reward that differs from its neighbours'; discounted by a half, its sums are exact."""
    return 1 + serial * 37 % 101


def plain(name: str, values: ArrayLike | Any, shape: tuple[int, ...]) -> Floats:
    """What a buffer returned, as a float64 array of this shape; a Fault if it is not one."""
    try:
        array = plain_array(name, values)
        if array.dtype == object and any(value is None for value in array.flat):
            raise TypeError("None among them")
        array = array.astype(np.float64)
    except Exception as error:
        raise Fault(f"{name} are no array of numbers ({described(error)})") from error
    if array.shape != shape:
        raise Fault(f"{name} have the shape {array.shape}, expected {shape}")
    return array


def described(error: BaseException) -> str:
    """The type of an error and the first line of its message, at most 100 characters of it."""
    text = str(error).strip().partition("\n")[0]
    text = text if len(text) <= 100 else f"{text[:97]}…"
    return f"{type(error).__name__}: {text}".rstrip(": ")
