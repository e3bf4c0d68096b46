"""What storages and samplers must do: the contract between the two kinds of parts.

A replay buffer (`replay.Replay`) is one `Storage` and one `Sampler`. They never meet: the buffer
asks the storage where a transition went, and tells the sampler; it asks the sampler what to replay,
and fetches that from the storage. Both know a transition by its *slot* in a ring of `capacity`
slots (`ring.Ring`), and carry a leading axis for runs in every array.

**Interrupts.** In a notebook the stop button is how one works, and Python may be interrupted
between any two lines. A buffer first makes sure that a call can succeed (`Storage.prepare`,
checks), then notes what it is about to do, then does it. The next call does again, from the start,
what an interrupt cut short. So `commit` and `add` may be called a second time with the same
arguments, and must then leave what the first call left. The others that change something (`sample`,
`update`) should do so in one compiled call, which nothing interrupts.

**States.** Everything that changes is in `state`, a dict of arrays. `schema` declares what
`restore` takes, `check` says what else must hold, and both come before the first write: a state may
come from a file, and compiled code believes what it finds in its arrays.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.states import Schema, State
from per_tutorial.replay.ring import Ring

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]
#: The fields of a `Transition` in their order, as one or as a plain tuple.
Fields = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike, ArrayLike, ArrayLike]


class Transition(NamedTuple):
    """One step of an episode, or many: then every field has the same leading axes.

    Example:
        >>> from per_tutorial import Transition
        >>> step = Transition([0.0, 1.0], 1, 0.5, [1.0, 1.0], terminated=False, truncated=False)
        >>> step.reward
        0.5
    """

    observation: ArrayLike
    action: ArrayLike
    reward: ArrayLike
    next_observation: ArrayLike  # the true one, also where the episode ended
    terminated: ArrayLike  # no value follows
    truncated: ArrayLike  # stopped by something else, such as a time limit: a value follows


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
    indices: NDArray[np.int64]  # the ids of the transitions, counted from 0 as they were added
    steps: NDArray[np.int64] | int = 1  # k: the value of the next observation is discounted by γ^k


class PendingWrite(Protocol):
    """Transitions on their way into a storage; what else it holds is the storage's own business."""

    @property
    def slots(self) -> Slots:
        """(runs, n): where they go; `NO_SLOT` where a run has nothing to add."""

    @property
    def added(self) -> NDArray[np.int64]:
        """(runs,): how many each run will have been given in all."""


class Component(Protocol):
    """What storages and samplers have in common.

    Attributes:
        settings: what must agree to `restore` the state of another one; JSON keeps it.
    """

    settings: dict[str, Any]

    @property
    def state(self) -> State:
        """All that changes, random streams included. The arrays may be its own: copy them."""

    @property
    def schema(self) -> Schema:
        """What each array of a state must be."""

    def restore(self, state: State) -> None:
        """Go on from a copy of a checked state. May be called twice with the same state."""


class Storage(Component, Protocol):
    """Which experiences are kept. The k-th transition of a run (from 0) lies in slot k % capacity.

    A storage that takes n steps at once, fields (runs, n, ...), also has `prepare_many(transitions,
    *, stacked=True)`. What that returns may hold the arguments, so it is good until they change,
    and its `commit` is one compiled call, which nothing interrupts.

    Attributes:
        settings: `n_step` and `discount`, those of the n-step transitions, are among them.
        ring: how many transitions were added, and so which one lies in which slot.
        environments: how many take turns in adding to each run. Of the same environment, a
            transition and its successor are that many slots apart.

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
        """The axes that fields begin with when they are added: (runs,), or (runs, environments)."""

    def check(self, state: State) -> NDArray[np.int64]:
        """Raise ValueError, "state: …", if arrays that fit the `schema` contradict each other.

        Returns the sizes (runs,) that the storage would have.
        """

    def prepare(
        self, transition: Fields, valid: ArrayLike | None = None, *, stacked: bool = True
    ) -> PendingWrite:
        """Make ready to write one step, fields shaped (*leading_axes, ...). Changes nothing.

        What is returned may be good only until the next step is prepared.

        Args:
            transition: fields that do not fit raise ValueError or TypeError. ``truncated`` may be a
                single False: nowhere.
            valid: (runs,) False where a run has nothing to add; None: all have.
            stacked: whether fields have the axis for runs; without, it is a single run.
        """

    def commit(self, write: Any) -> None:
        """Write what `prepare` returned. A second time, it writes the same to the same slots."""

    def n_step_transitions(
        self, slots: Slots
    ) -> tuple[Mapping[str, NDArray] | NDArray, NDArray[np.int64]]:
        """The n-step transitions from ``slots`` (runs, batch) on, by field, and their lengths.

        Raises IndexError for a slot outside [0, capacity).
        """

    def episode_lengths(self, slots: Slots) -> NDArray[np.int64]:
        """(runs, n): how many steps are stored of the episodes that end with ``slots``.

        0 where no episode ends, and for `NO_SLOT`.
        """

    def truncate_episodes(self) -> Slots:
        """End the running episodes as a time limit does; return their newest slots (runs, n)."""


class Sampler(Component, Protocol):
    """Which experiences are replayed. A sampler knows slots and priorities, never the transitions.

    Args of the constructor: ``capacity``; ``seeds``, one int per run, from which `RandomStreams`
    are made; and keywords: its settings. Its methods say what it needs beyond slots: `Needs`.

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
            slots: `NO_SLOT`: nothing here; a slot that is written again holds a new transition.
            added: (runs,) transitions that each run has been given in all, these included. If they
                are no more than last time, the call repeats one that was interrupted.
        """

    def sample(
        self, batch_size: int, sizes: NDArray[np.int64], beta: float
    ) -> tuple[Slots, NDArray]:
        """Draw slots and their importance-sampling weights, both (runs, batch).

        Every slot is in [0, sizes[run]). Of each run's numbers, none depends on another run.
        """

    def update(self, slots: Slots, td_errors: Floats) -> None:
        """Learn the TD errors δ (with their sign) of replayed slots, both (runs, batch).

        `NO_SLOT` was overwritten since it was drawn: skip it. Of duplicates the last one counts.
        """

    def probabilities(self, slots: Slots, sizes: NDArray[np.int64]) -> Floats:
        """P(i) of slots (runs, n) in [0, capacity): 0 where nothing is stored."""

    def check(self, state: State, sizes: NDArray[np.int64]) -> None:
        """Raise ValueError, "state: …", if the arrays contradict each other or these sizes."""

    def metrics(self, sizes: NDArray[np.int64]) -> dict[str, NDArray]:
        """What to record of the priorities, by name: (runs,) each. It may be empty."""


class EpisodeSampler(Sampler, Protocol):
    """A sampler that wants to know which steps make up an episode, such as ReaPER's."""

    def end_episodes(self, slots: Slots, lengths: NDArray[np.int64], stride: int) -> None:
        """Learn that episodes end with ``slots`` (runs, n), which were added before.

        May be called twice for the same episodes.

        Args:
            slots: where their last steps lie; `NO_SLOT`: none.
            lengths: (runs, n) how many of their last steps are stored.
            stride: the step before the one in slot s is in slot (s − stride) % capacity.
        """


class CandidateSampler(Sampler, Protocol):
    """A sampler that chooses a minibatch from a larger draw by fresh TD errors, such as LaBER's.

    `sample` is then asked for ``candidates`` times as many slots as the minibatch has.
    """

    candidates: int

    def choose(self, td_errors: Floats, batch_size: int, beta: float) -> tuple[Slots, NDArray]:
        """Choose from the draw: positions in it, and weights, both (runs, batch).

        Args:
            td_errors: of the whole draw, (runs, candidates · batch).
        """


class Needs(NamedTuple):
    """What a sampler needs beyond slots and priorities, as `needs_of` finds it."""

    episodes: bool  # it has `end_episodes`: an `EpisodeSampler`
    candidates: bool  # it has `choose`: a `CandidateSampler`
    reducible_losses: bool  # it says ``reducible = True``: they take the place of TD errors
    updates: bool  # it says ``needs_updates = True``: without TD errors its draws mean nothing


def needs_of(sampler: Any) -> Needs:
    """What a sampler, an object or a class, needs.

    Raises:
        TypeError: it has half of what such a sampler must have.
    """
    episodes, candidates = hasattr(sampler, "end_episodes"), hasattr(sampler, "choose")
    if episodes:
        require("sampler", sampler, EpisodeSampler)
    if candidates:
        require("sampler", sampler, CandidateSampler)
    reducible = getattr(sampler, "reducible", False)
    return Needs(episodes, candidates, reducible, getattr(sampler, "needs_updates", False))


def members_of(protocol: type) -> set[str]:
    """The names that a Protocol asks for, those of its bases included."""
    names: set[str] = set()
    for base in protocol.__mro__:
        if base not in (object, Protocol) and getattr(base, "_is_protocol", False):
            names |= {*vars(base), *getattr(base, "__annotations__", {})}
    return {name for name in names if not name.startswith("_")}


def require(name: str, part: object, protocol: type) -> None:
    """Raise TypeError unless ``part``, an object or a class, has what the protocol asks for.

    A class need not show attributes that its constructor sets: only objects are asked for these.
    """
    wanted = members_of(protocol)
    if isinstance(part, type):
        wanted = {member for member in wanted if hasattr(protocol, member)}
    missing = sorted(member for member in wanted if not hasattr(part, member))
    if missing:
        kind = part.__name__ if isinstance(part, type) else type(part).__name__
        raise TypeError(f"{name}: {kind} lacks {', '.join(missing)} of a {protocol.__name__}")
