"""The contracts of storages and samplers.

A replay buffer (`replay.Replay`) is one `Storage` and one `Sampler`, which do not know each other.
The buffer tells the sampler in which slots the storage put transitions; it asks the sampler which
slots to replay, and fetches these from the storage. Both identify a transition by its *slot* in a
ring of `capacity` slots (`ring.Ring`). Arrays have a leading axis for runs.

**Interrupts.** Notebook users press the stop button, and Python may be interrupted between any two
lines. A buffer first makes sure that a call can succeed (`Storage.prepare`, checks), then records
what it is about to do, then does it. If it is interrupted, the next call repeats it from the start.
`commit`, `add`, `truncate_episodes`, `end_episodes` and `restore` must therefore be idempotent,
even if the first call was cut short. The others that change something (`sample`, `update`) should
do so in one compiled call, which cannot be interrupted.

**States.** Everything that changes is in `state`, a dict of arrays. `schema` declares what
`restore` takes, and `check` what else must hold. Both are checked before anything is written: a
state may come from a file, and compiled code trusts the contents of its arrays.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.states import Schema, State
from per_tutorial.replay.ring import Ring

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]
#: A `Transition`, or a plain tuple of its fields in their order.
Fields = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike, ArrayLike, ArrayLike]


class Transition(NamedTuple):
    """One step of an episode, or many, whose fields all have the same leading axes.

    Example:
        >>> from per_tutorial import Transition
        >>> step = Transition([0.0, 1.0], 1, 0.5, [1.0, 1.0], terminated=False, truncated=False)
        >>> step.reward
        0.5
    """

    observation: ArrayLike
    action: ArrayLike
    reward: ArrayLike
    next_observation: ArrayLike  # the true one, even where the episode ended
    terminated: ArrayLike  # the next state has value 0
    truncated: ArrayLike  # stopped otherwise, such as by a time limit: it keeps its value


class Batch(NamedTuple):
    """A minibatch; every field starts with the axes (batch,), or (runs, batch).

    With n-step returns (`Storage.n_step_transitions`), ``rewards`` are discounted sums, and
    ``next_observations`` and ``terminated`` belong to the last of the ``steps``.

    Example:
        >>> from per_tutorial import ReplayBuffer
        >>> buffer = ReplayBuffer(100, (4,), seed=0)
        >>> buffer.extend([[0.0] * 4] * 50, [1] * 50, [1.0] * 50, [[0.0] * 4] * 50, [False] * 50)
        >>> batch = buffer.sample(32)
        >>> batch.observations.shape, batch.rewards.shape, float(batch.weights.max())
        ((32, 4), (32,), 1.0)
    """

    observations: NDArray
    actions: NDArray
    rewards: NDArray
    next_observations: NDArray
    terminated: NDArray[np.bool_]
    weights: NDArray  # importance-sampling weights, all 1 under uniform replay
    indices: NDArray[np.int64]  # the ids of the transitions, counted from 0 in the order of adding
    steps: NDArray[np.int64] | int = 1  # k: the value of the next observation is discounted by γ^k


class PendingWrite(Protocol):
    """Transitions that a storage is about to write; it may have more members."""

    @property
    def slots(self) -> Slots:
        """(runs, n): their slots; `NO_SLOT` where a run has nothing to add."""

    @property
    def added(self) -> NDArray[np.int64]:
        """(runs,): transitions ever added to each run, these included."""


class Component(Protocol):
    """What storages and samplers have in common.

    Attributes:
        settings: what must match to `restore` the state of another one, as JSON can hold it.
    """

    settings: dict[str, Any]

    @property
    def state(self) -> State:
        """All that changes, including random streams. The arrays may be in use: copy them."""

    @property
    def schema(self) -> Schema:
        """What each array of a state must be."""

    def restore(self, state: State) -> None:
        """Continue from a copy of a checked state. May be called twice with the same state."""


class Storage(Component, Protocol):
    """Which experiences are kept. Transition k of a run (from 0) is in slot k % capacity.

    A storage that takes n steps at once, fields (runs, n, ...), also has `prepare_many(transitions,
    *, stacked=True)`. Its result may hold the caller's arrays, so it is valid until they change.
    To `commit` it is one compiled call, which cannot be interrupted.

    Attributes:
        settings: among them `n_step` and `discount` of the n-step transitions.
        ring: how many transitions were added, and thus which slot holds which one.
        environments: how many take turns in adding to each run; also the number of slots from a
            transition to its successor in the same environment.

    Example:
        >>> import numpy as np
        >>> from per_tutorial import Transition
        >>> from per_tutorial.replay import TransitionStorage
        >>> storage: Storage = TransitionStorage(capacity=3, observation_shape=(1,))
        >>> step = Transition([[0.0]], [1], [2.5], [[1.0]], [False], [False])  # one run: axis 0
        >>> storage.commit(storage.prepare(step))
        >>> rows, steps = storage.n_step_transitions(np.array([[0]]))
        >>> float(rows["reward"][0, 0]), storage.ring.sizes.tolist()
        (2.5, [1])
    """

    ring: Ring
    environments: int

    @property
    def leading_axes(self) -> tuple[int, ...]:
        """The leading axes of fields that are added: (runs,), or (runs, environments)."""

    def check(self, state: State) -> NDArray[np.int64]:
        """Raise ValueError, "state: …", if arrays that fit the `schema` contradict each other.

        Returns the sizes (runs,) that the storage would have.
        """

    def prepare(
        self, transition: Fields, valid: ArrayLike | None = None, *, stacked: bool = True
    ) -> PendingWrite:
        """Prepare to write one step, fields shaped (*leading_axes, ...). Stores nothing yet.

        The result may be valid only until the next step is prepared.

        Args:
            transition: fields that do not fit raise ValueError or TypeError. ``truncated`` may be a
                single False for all.
            valid: (runs,), False where a run has nothing to add; None: all True.
            stacked: whether fields have the axis for runs; False for a single run without it.
        """

    def commit(self, write: Any) -> None:
        """Write what `prepare` returned. A second call writes the same to the same slots."""

    def n_step_transitions(
        self, slots: Slots
    ) -> tuple[Mapping[str, NDArray] | NDArray, NDArray[np.int64]]:
        """The n-step transitions that start in ``slots`` (runs, batch), by field, and their k.

        Raises IndexError for a slot outside [0, capacity).
        """

    def episode_lengths(self, slots: Slots) -> NDArray[np.int64]:
        """(runs, n): how many steps are stored of the episodes that end in ``slots``.

        0 where no episode ends, and for `NO_SLOT`.
        """

    def truncate_episodes(self) -> Slots:
        """Mark running episodes as truncated; return each environment's newest slot, (runs, n)."""


class Sampler(Component, Protocol):
    """Which experiences are replayed. A sampler knows slots and priorities, but no transitions.

    The constructor takes ``capacity``, ``seeds`` (one int per run, for `RandomStreams`) and the
    settings as keywords. What a sampler needs beyond slots follows from its members: `Needs`.

    Attributes:
        capacity: slots per run.
        runs: number of runs.

    Example:
        >>> import numpy as np
        >>> from per_tutorial.replay import ProportionalSampler
        >>> sampler: Sampler = ProportionalSampler(capacity=4, seeds=[0], alpha=1.0)
        >>> slots = np.array([[0, 1, 2]])
        >>> sampler.add(slots, added=np.array([3]))
        >>> sampler.update(slots, np.array([[3.0, -1.0, 0.0]]))
        >>> sampler.probabilities(slots, sizes=np.array([3])).round(3).tolist()
        [[0.75, 0.25, 0.0]]
    """

    capacity: int
    runs: int

    def add(self, slots: Slots, added: NDArray[np.int64]) -> None:
        """Learn that transitions were written to ``slots`` (runs, n), in this order.

        Args:
            slots: `NO_SLOT` where nothing was added; a reused slot holds a new transition.
            added: (runs,) transitions ever added to each run, these included. If it is the same as
                last time, the call repeats one that was interrupted.
        """

    def sample(
        self, batch_size: int, sizes: NDArray[np.int64], beta: float
    ) -> tuple[Slots, NDArray]:
        """Draw slots and their importance-sampling weights, both (runs, batch).

        Every slot is in [0, sizes[run]). No run's numbers depend on another run.
        """

    def update(self, slots: Slots, td_errors: Floats) -> None:
        """Learn the TD errors δ (with their sign) of replayed slots, both (runs, batch).

        Skip `NO_SLOT`: it was overwritten since it was drawn. The last of duplicates counts.
        """

    def probabilities(self, slots: Slots, sizes: NDArray[np.int64]) -> Floats:
        """P(i) of slots (runs, n) in [0, capacity): 0 where nothing is stored."""

    def check(self, state: State, sizes: NDArray[np.int64]) -> None:
        """Raise ValueError, "state: …", if the arrays contradict each other or these sizes."""

    def metrics(self, sizes: NDArray[np.int64]) -> dict[str, NDArray]:
        """Measurements of the priorities for `History`, by name, (runs,) each. May be empty."""


class EpisodeSampler(Sampler, Protocol):
    """A sampler that must know which steps make up an episode, such as ReaPER's."""

    def end_episodes(self, slots: Slots, lengths: NDArray[np.int64], stride: int) -> None:
        """Learn that episodes end in ``slots`` (runs, n), which were added before.

        May be called twice for the same episodes.

        Args:
            slots: those of their last steps; `NO_SLOT`: none.
            lengths: (runs, n), how many steps of each are stored.
            stride: the step before the one in slot s is in slot (s − stride) % capacity.
        """


class CandidateSampler(Sampler, Protocol):
    """A sampler that chooses a minibatch from a larger draw by fresh TD errors, such as LaBER's.

    `sample` is then called with ``candidates`` times the batch size.
    """

    candidates: int

    def choose(self, td_errors: Floats, batch_size: int, beta: float) -> tuple[Slots, NDArray]:
        """Choose from the draw; return positions in it and weights, both (runs, batch).

        Args:
            td_errors: of the whole draw, (runs, candidates · batch).
        """


class Needs(NamedTuple):
    """What a sampler needs beyond slots and priorities."""

    episodes: bool  # it has `end_episodes`: an `EpisodeSampler`
    candidates: bool  # it has `choose`: a `CandidateSampler`
    reducible_losses: bool  # it sets ``reducible = True``: `update` takes these, not TD errors
    updates: bool  # it sets ``needs_updates = True``: its draws mean nothing without TD errors


def needs_of(sampler: Any) -> Needs:
    """The `Needs` of a sampler, an object or a class.

    Raises:
        TypeError: it has only some of the members that such a sampler must have.
    """
    episodes, candidates = hasattr(sampler, "end_episodes"), hasattr(sampler, "choose")
    if episodes:
        require("sampler", sampler, EpisodeSampler)
    if candidates:
        require("sampler", sampler, CandidateSampler)
    reducible = getattr(sampler, "reducible", False)
    return Needs(episodes, candidates, reducible, getattr(sampler, "needs_updates", False))


def members_of(protocol: type) -> set[str]:
    """The names of the members of a Protocol and of its bases."""
    names: set[str] = set()
    for base in protocol.__mro__:
        if base not in (object, Protocol) and getattr(base, "_is_protocol", False):
            names |= {*vars(base), *getattr(base, "__annotations__", {})}
    return {name for name in names if not name.startswith("_")}


def require(name: str, part: object, protocol: type) -> None:
    """Raise TypeError unless ``part``, an object or a class, has the members of the protocol.

    Attributes that a constructor sets are required only of objects.
    """
    wanted = members_of(protocol)
    if isinstance(part, type):
        wanted = {member for member in wanted if hasattr(protocol, member)}
    missing = sorted(member for member in wanted if not hasattr(part, member))
    if missing:
        kind = part.__name__ if isinstance(part, type) else type(part).__name__
        raise TypeError(f"{name}: {kind} lacks {', '.join(missing)} of a {protocol.__name__}")
