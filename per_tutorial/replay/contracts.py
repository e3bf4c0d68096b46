"""What storages and samplers must do: the contract between the two kinds of parts.

A replay buffer (`replay.Replay`) is one `Storage` and one `Sampler`. They never meet: the buffer asks
the storage where a transition went, and tells the sampler; it asks the sampler what to replay, and
fetches that from the storage. Both know a transition by its *slot*, its place in a ring of `capacity`
slots, and carry a leading axis for runs in every array.

**Interrupts.** In a notebook the stop button is how one works, and Python may be interrupted between
any two lines. A buffer first makes sure that a call can succeed (`Storage.prepare`, checks), then
notes what it is about to do, then does it. What an interrupt cut short is done again from the
start by the next call. So `commit` and `add` may be called a second time with the same arguments, and
must then leave what the first call left. The others that change something (`sample`, `update`) should
do so in one compiled call, which nothing interrupts.

**States.** Everything that changes is in `state`, a dict of arrays. `schema` declares what `restore`
takes, `check` says what else must hold, and both come before the first write: a state may come from a
file, and compiled code believes what it finds in its arrays.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.states import Schema, State

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]


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

    With n-step returns (`Storage.windows`), ``rewards`` are discounted sums, and
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
    indices: NDArray[np.int64]  # the numbers of the transitions, counted from 0 as they were added
    steps: NDArray[np.int64] | int = 1  # k: the value of the next observation is discounted by γ^k


class Write(Protocol):
    """Transitions on their way into a storage; what else it holds is the storage's own business."""

    @property
    def slots(self) -> Slots:
        """(runs, n): where they go; −1 where a run has nothing to add."""

    @property
    def added(self) -> NDArray[np.int64]:
        """(runs,): how many each run will have been given in all."""


class Part(Protocol):
    """What storages and samplers have in common.

    Attributes:
        capacity: slots per run.
        runs: number of runs.
        settings: what must agree to `restore` the state of another part; JSON keeps it.
    """

    capacity: int
    runs: int
    settings: dict[str, Any]

    @property
    def state(self) -> State:
        """All that changes, random streams included. The arrays may be the part's own: copy them."""

    @property
    def schema(self) -> Schema:
        """What each array of a state must be."""

    def restore(self, state: State) -> None:
        """Go on from a copy of a state that was checked. May be called twice with the same state."""


class Storage(Part, Protocol):
    """Which experiences are kept. The k-th transition of a run (from 0) lies in slot k % capacity.

    Attributes:
        added: (runs,) transitions ever added.
        n_step, discount: of the windows.
        environments: how many take turns in adding to each run. Of the same environment, a transition
            and its successor are that many slots apart.

    Example:
        >>> import numpy as np
        >>> from per_tutorial import Transition
        >>> from per_tutorial.replay import TransitionStorage
        >>> storage: Storage = TransitionStorage(capacity=3, observation_shape=(1,))
        >>> step = Transition([[0.0]], [1], [2.5], [[1.0]], [False], [False])  # one run: axis 0
        >>> storage.commit(storage.prepare(step))
        >>> rows, steps = storage.windows(np.array([[0]]))
        >>> float(rows["reward"][0, 0]), storage.sizes.tolist()
        (2.5, [1])
    """

    added: NDArray[np.int64]
    n_step: int
    discount: float
    environments: int

    @property
    def leading_axes(self) -> tuple[int, ...]:
        """The axes that fields begin with when they are added: (runs,), or (runs, environments)."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(runs,): transitions stored now."""

    def check(self, state: State) -> NDArray[np.int64]:
        """Raise ValueError if arrays that fit the `schema` contradict each other.

        Returns the sizes (runs,) that the storage would have.
        """

    def prepare(self, transition: Transition, valid: ArrayLike | None = None) -> Write:
        """Make ready to write one step, fields shaped (*leading_axes, ...). Changes nothing.

        Args:
            transition: fields that do not fit raise ValueError or TypeError. ``truncated`` may be a
                single False: nowhere.
            valid: (runs,) False where a run has nothing to add; None: all have.
        """

    def prepare_many(self, transitions: Transition) -> Write:
        """Make ready to write n steps that follow one another, fields shaped (runs, n, ...)."""

    def commit(self, write: Any) -> None:
        """Write what `prepare` returned. A second time, it writes the same to the same places."""

    def windows(self, slots: Slots) -> tuple[Mapping[str, NDArray] | NDArray, NDArray[np.int64]]:
        """The n-step transitions that begin in ``slots`` (runs, batch), by field, and their lengths.

        Raises IndexError for a slot outside [0, capacity).
        """

    def ids(self, slots: Slots) -> NDArray[np.int64]:
        """(runs, batch): the number of the transition that lies in each slot."""

    def current_slots(self, ids: NDArray[np.int64]) -> Slots:
        """(runs, batch): the slot of each transition, −1 for one that was overwritten."""

    def episode_lengths(self, slots: Slots) -> NDArray[np.int64]:
        """(runs, n): how many steps are stored of the episodes that end with ``slots``; 0 for −1."""

    def cut(self) -> Slots:
        """End the running episodes as a time limit does; return their newest slots (runs, n)."""


class QuickStorage(Storage, Protocol):
    """A storage with short ways: one compiled call for what an agent does at every step.

    Having `put` and `put_many`, or `draw`, makes a storage one of these. A subclass that overrides what
    a short way stands in for, and not the short way, does not have it any more: nothing is passed by.
    """

    def put(
        self,
        fields: tuple[ArrayLike, ...],
        valid: ArrayLike | None,
        slots: Slots,
        added: NDArray[np.int64],
        stacked: bool,
    ) -> bool:
        """`prepare` and `commit` in one compiled call; or change nothing and return False.

        That is the answer to all that `prepare` would refuse or convert.

        Args:
            fields: those of a `Transition`, in the same order, shaped (runs, ...); of a single run
                without that axis, if not ``stacked``.
            valid: as in `prepare`.
            slots, added: (runs, 1) and (runs,), written by the same call: as in `Write`.
        """

    def put_many(
        self,
        fields: tuple[ArrayLike, ...],
        valid: None,
        slots: Slots,
        added: NDArray[np.int64],
        stacked: bool,
    ) -> bool:
        """`put` of fields (runs, n, ...), with n >= 1 and ``slots`` (runs, n), for all runs."""

    def draw(
        self, slots: Slots
    ) -> tuple[Mapping[str, NDArray] | NDArray, NDArray[np.int64], NDArray[np.int64]]:
        """`windows` and `ids` together."""


class Sampler(Part, Protocol):
    """Which experiences are replayed. A sampler knows slots and priorities, never the transitions.

    Args of the constructor: ``capacity``; ``seeds``, one int per run, from which `RandomStreams` are
    made; and keywords. A keyword that has the name of a setting of `DQNConfig` is taken from there.

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

    def add(self, slots: Slots, added: NDArray[np.int64]) -> None:
        """Learn that transitions were written to ``slots`` (runs, n), in this order.

        Args:
            slots: −1 means "nothing here"; a slot that is written again holds a new transition.
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

        A slot of −1 was overwritten since it was drawn: skip it. Of duplicates the last one counts.
        """

    def probabilities(self, slots: Slots, sizes: NDArray[np.int64]) -> Floats:
        """P(i) of slots (runs, n) in [0, capacity): 0 where nothing is stored."""

    def check(self, state: State, sizes: NDArray[np.int64]) -> None:
        """Raise ValueError if arrays that fit the `schema` contradict each other, or these sizes."""

    def measures(self, sizes: NDArray[np.int64]) -> dict[str, NDArray]:
        """What to record of the priorities, by name: (runs,) each. It may be empty."""


class EpisodeSampler(Sampler, Protocol):
    """A sampler that wants to know which steps make up an episode, such as ReaPER's.

    Having `end_episodes` makes a sampler one of these.
    """

    def end_episodes(self, slots: Slots, lengths: NDArray[np.int64], stride: int) -> None:
        """Learn that episodes end with ``slots`` (runs, n), which were added before; −1: none.

        May be called twice for the same episodes.

        Args:
            slots: where their last steps lie.
            lengths: (runs, n) how many of their last steps are stored.
            stride: the step before the one in slot s is in slot (s − stride) % capacity.
        """


class CandidateSampler(Sampler, Protocol):
    """A sampler that chooses a minibatch from a larger draw by fresh TD errors, such as LaBER's.

    Having `choose` makes a sampler one of these. `sample` is then asked for ``candidates`` times as
    many slots as the minibatch has.
    """

    candidates: int

    def choose(self, td_errors: Floats, batch_size: int, beta: float) -> tuple[Slots, NDArray]:
        """Choose from the draw: positions in it, and weights, both (runs, batch).

        Args:
            td_errors: of the whole draw, (runs, candidates · batch).
        """


def has_short_way(part: object, name: str, *long_way: str) -> bool:
    """Whether a part has the method ``name``, and no subclass overrides what it stands in for."""
    classes = type(part).__mro__

    def depth(member: str) -> int:
        return next((k for k, each in enumerate(classes) if member in vars(each)), len(classes))

    own = depth(name)
    return own < len(classes) and all(depth(member) >= own for member in long_way)


def members_of(protocol: type) -> set[str]:
    """The names that a Protocol asks for, those of its bases included."""
    names: set[str] = set()
    for base in protocol.__mro__:
        if base not in (object, Protocol) and getattr(base, "_is_protocol", False):
            names |= {*vars(base), *getattr(base, "__annotations__", {})}
    return {name for name in names if not name.startswith("_")}


def require(name: str, part: object, protocol: type) -> None:
    """Raise TypeError unless ``part``, an object or a class, has what the protocol asks for.

    A class need not show attributes that its constructor sets: of these only objects are asked.
    """
    wanted = members_of(protocol)
    if isinstance(part, type):
        wanted = {member for member in wanted if hasattr(protocol, member)}
    missing = sorted(member for member in wanted if not hasattr(part, member))
    if missing:
        kind = part.__name__ if isinstance(part, type) else type(part).__name__
        raise TypeError(f"{name}: {kind} lacks {', '.join(missing)} of a {protocol.__name__}")
