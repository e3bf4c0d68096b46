"""A buffer whose contents are known: fill it, draw from it, set its priorities."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.conformance.adapter import ACTIONS, Adapter, Drawn, Settings
from per_tutorial.conformance.answers import Fault, NotOffered, Untold
from per_tutorial.replay.contracts import Floats, Transition

EPISODE = 10  # steps of an episode, unless a question wants another length


class Draws(NamedTuple):
    """What several minibatches held.

    Attributes:
        serials: (batches, batch) numbers of the transitions, counted from 0 as they were added.
        weights: the same shape, or None if the buffer has no weights.
    """

    serials: NDArray[np.int64]
    weights: Floats | None


class Trial:
    """A buffer of the examined kind, and a record of all that was put into it.

    States of the world are numbered from 1. A step leads from state s to s + 1, and an episode starts two
    further than the last one ended, so the number in an observation tells which transition it is.

    Args:
        adapter: of the examined kind.
        settings: what the buffer is made with.
    """

    def __init__(self, adapter: Adapter, settings: Settings) -> None:
        self.adapter = adapter
        self.settings = settings
        self.buffer = adapter.make(settings)
        self.history: list[Transition] = []  # by serial number
        self._serials = np.full(64, -1, dtype=np.int64)  # state number → serial number, −1: none
        self.errors: dict[int, float] = {}  # serial → |δ| of those that `set_errors` has set
        self._state, self._step = 1, 0

    @property
    def stored(self) -> NDArray[np.int64]:
        """The serial numbers of what a ring of this capacity holds now, the oldest first."""
        added = len(self.history)
        return np.arange(max(0, added - self.settings.capacity), added)

    def add(self, count: int, *, episode: int = EPISODE, truncated: bool = False) -> "Trial":
        """Add ``count`` transitions; each episode has ``episode`` steps, and ends as a terminal one does.

        With ``truncated``, episodes are ended by a time limit instead.
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
            self.adapter.add(self.buffer, transition)
            self._state += 2 if over else 1
            self._step = 0 if over else self._step + 1
        return self

    def sample(self) -> tuple[Drawn, NDArray[np.int64], Floats | None]:
        """One minibatch: as it came, the serial numbers (batch,), and the weights (batch,)."""
        size = self.settings.batch_size
        drawn = self.adapter.sample(self.buffer, size, self.settings.beta)
        if not isinstance(drawn, Drawn):
            raise Fault(f"sample returned a {type(drawn).__name__}, not a Drawn")
        observations = plain("observations", drawn.observations, (size, 2))
        weights = None
        if drawn.weights is not None:
            weights = plain("weights", drawn.weights, (size,)).astype(np.float64)
        return drawn, self.serials(observations), weights

    def draw(self, draws: int) -> Draws:
        """At least ``draws`` draws, in minibatches."""
        batches = -(-draws // self.settings.batch_size)
        serials = np.empty((batches, self.settings.batch_size), dtype=np.int64)
        weights = []
        for k in range(batches):
            _, serials[k], some = self.sample()
            if some is not None:
                weights.append(some)
        return Draws(serials, np.array(weights) if weights else None)

    def counts(self, draws: int) -> NDArray[np.int64]:
        """How often each of the `stored` is drawn in at least ``draws`` draws."""
        return self.count(self.draw(draws).serials)

    def count(self, serials: NDArray[np.int64]) -> NDArray[np.int64]:
        """How often each of the `stored` is among these; a Fault if another one is."""
        first = int(self.stored[0])
        if serials.min() < first:
            raise Fault(
                f"transition {serials.min()} was drawn, which {len(self.history) - 1 - serials.min()} "
                f"later ones should have pushed out of {self.settings.capacity} slots"
            )
        return np.bincount(serials.ravel() - first, minlength=len(self.stored))

    def weighted(self, draws: int) -> tuple[NDArray[np.int64], Floats]:
        """`draw`, for questions that need weights: serials and weights, both (batches, batch)."""
        serials, weights = self.draw(draws)
        if weights is None:
            raise NotOffered("the buffer has no weights")
        wrong = ~(np.isfinite(weights) & (weights > 0))
        if wrong.any():
            raise Fault(f"a weight is {weights[wrong][0]:g}")
        return serials, weights

    def set_errors(self, error_of: Callable[[int], float]) -> "Trial":
        """Draw and update until the TD error of every stored transition is ``error_of(serial)``.

        Updates always name the whole minibatch that was just drawn, since some buffers take no other.
        One in sixteen may never come, so that a dead slot hides no other fault; the question "reach"
        asks for them. Raises `Untold` if there are more.
        """
        missing = set(self.stored.tolist())
        # At its lowest, the priority of one that is missing still is the initial one. In minibatches of
        # a quarter of what is stored or more, a few hundred reach all; more for small ones.
        limit = 400 + 4000 // self.settings.batch_size
        for _ in range(limit):
            drawn, serials, _ = self.sample()
            errors = np.array([error_of(serial) for serial in serials.tolist()])
            self.adapter.update(self.buffer, drawn.keys, errors)
            self.errors.update(zip(serials.tolist(), errors.tolist(), strict=True))
            missing -= set(serials.tolist())
            if not missing:
                return self
        if len(missing) > max(1, len(self.stored) // 16) or len(missing) == len(self.stored):
            raise Untold(
                f"{len(missing)} of {len(self.stored)} transitions, such as number {min(missing)}, "
                f"did not come in {limit} minibatches of the preparation"
            )
        for serial in missing:
            self.errors.pop(serial, None)
        return self

    def masses(self, priorities: Floats) -> Floats:
        """Probabilities of transitions with these priorities (items,), by the law of the buffer."""
        return law_of(self.adapter, priorities, self.settings.alpha)

    def expected(self) -> Floats:
        """P(i) of all `stored`, from the errors that were set; 0 for those that never came."""
        probabilities = np.zeros(len(self.stored))
        probabilities[self.is_known] = self.masses(self.priorities())
        return probabilities

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Of which of the `stored` the errors were set."""
        return np.array([serial in self.errors for serial in self.stored.tolist()])

    def priorities(self) -> Floats:
        """The priorities of those `stored` whose errors were set, the oldest first."""
        known = [self.errors[serial] for serial in self.stored.tolist() if serial in self.errors]
        return self.adapter.priorities(np.array(known))

    def serials(self, observations: NDArray) -> NDArray[np.int64]:
        """The transitions that begin with these observations (batch, 2)."""
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
    """What one sees in a state."""
    return np.array([state, state % 7], dtype=np.float32)


def reward_of(serial: int) -> int:
    """A reward that its neighbours don't have; sums of halves of such numbers are exact."""
    return 1 + serial * 37 % 101


def law_of(adapter: Adapter, priorities: Floats, alpha: float) -> Floats:
    """P(i) of transitions with these priorities (items,)."""
    priorities = np.asarray(priorities, dtype=np.float64)
    if adapter.law == "rank":
        ranks = np.empty(len(priorities))
        ranks[np.argsort(-priorities, kind="stable")] = np.arange(1, len(priorities) + 1)
        masses = ranks**-alpha
    elif adapter.law == "uniform":
        masses = np.ones(len(priorities))
    else:
        masses = priorities**alpha
    return masses / masses.sum()


def plain(name: str, values: ArrayLike | Any, shape: tuple[int, ...]) -> NDArray:
    """An array of this shape, from whatever a buffer hands out; a Fault if it has another one."""
    if hasattr(values, "detach"):  # a torch tensor, on any device
        values = values.detach().cpu()
    array = np.asarray(values)
    if array.shape != shape:
        raise Fault(f"{name} have the shape {array.shape} where {shape} is wanted")
    return array
