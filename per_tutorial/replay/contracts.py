"""The contracts of storages and samplers, and the tuples that pass between them.

A replay buffer (`replay.Replay`) is one `Storage` and one `Sampler`, which do not know each other.
Both identify a transition by its *slot* in a ring (`ring.Ring`). Arrays start with an axis of runs.

**Interrupts.** Notebook users press the stop button between any two lines. So a storage checks
everything, writes the slots, and counts them in `added` last. If the sampler was not told of the
newest transitions, the buffer tells it before it is next used. Storing rows, `sample` and `update`
each change the state in one compiled call, which cannot be interrupted.
"""

from __future__ import annotations  # so that `help` shows ArrayLike as a name

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.files import AnyArray

Ints = NDArray[np.int64]
Slots = Ints
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
State = dict[str, NDArray[Any]]
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

    A target is ``rewards + discounts * values``, with the values of the next observations. With
    n-step returns (`Storage.n_step_transitions`), ``rewards`` are discounted sums over k steps, and
    ``next_observations`` and ``terminated`` belong to the last of these.

    Example:
        >>> import numpy as np
        >>> from per_tutorial import Batch
        >>> Batch(*np.zeros((7, 32))).rewards.shape
        (32,)
    """

    observations: NDArray
    actions: NDArray
    rewards: NDArray
    next_observations: NDArray
    terminated: NDArray[np.bool_]
    weights: Singles  # importance-sampling weights, all 1 under uniform replay
    indices: Ints  # the ids of the transitions, counted from 0 in the order of adding
    discounts: Singles | None = None  # γ^k, with the storage's γ; 0 after a terminal step
    probabilities: Singles | None = None  # P(i), as they were when the transitions were drawn


class Storage(Protocol):
    """Which experiences are kept. Transition k of a run (from 0) is in slot k % capacity.

    One that takes n steps at once, fields (runs, n, ...), also has `extend`, like `add`.

    Attributes:
        capacity, runs: slots of each run, and the number of runs.
        environments: how many take turns in adding to each run; also the number of slots from a
            transition to its successor in the same environment.
        n_step, discount: length and γ of the n-step transitions, also if n is 1.
        added: (runs,) transitions ever added to each run, equally many; always the same array.
        settings: what must match to `restore` the state of another one, as JSON can hold it.
        leading_axes: of fields that are added: (runs,), or (runs, environments).
    """

    capacity: int
    runs: int
    environments: int
    n_step: int
    discount: float
    added: Ints
    settings: dict[str, Any]
    leading_axes: tuple[int, ...]

    @property
    def sizes(self) -> Ints:
        """(runs,): transitions stored now."""

    def add(self, transition: Fields, *, axis_of_runs: bool = True) -> Slots:
        """Store one step, fields shaped (*leading_axes, ...); return its slots, (runs, n).

        Args:
            transition: fields that do not fit raise ValueError or TypeError, and nothing is stored.
                ``truncated`` may be a single bool for all.
            axis_of_runs: whether fields have the axis for runs; False for a single run without it.
        """

    def n_step_transitions(self, slots: Slots) -> tuple[Mapping[str, NDArray] | NDArray, Singles]:
        """The n-step transitions that start in ``slots`` (runs, batch), by field, and discounts."""

    def truncate_episodes(self) -> None:
        """Mark running episodes as truncated. May be called twice."""

    @property
    def state(self) -> State:
        """All that changes, as arrays that may be in use: copy them."""

    def check(self, state: Mapping[str, AnyArray]) -> None:
        """Raise ValueError, "state: …", unless `restore` accepts this state."""

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a copy of a checked state. May be called twice with the same state."""


class Sampler(Protocol):
    """Which experiences are replayed. A sampler knows slots and priorities, but no transitions.

    The constructor takes ``capacity``, ``seeds`` (one int per run, for `RandomStreams`) and the
    settings as keywords. A sampler may also have `metrics(sizes)`: measurements of the priorities
    for `History`, by name, (runs,) each; ``needs_updates = True``, if its draws mean nothing
    without TD errors; and ``needs``, as `DQNLearner` has it.

    Attributes:
        capacity, runs: slots of each run, and the number of runs.
        settings: what must match to `restore` the state of another one, as JSON can hold it.
    """

    capacity: int
    runs: int
    settings: dict[str, Any]

    def add(self, slots: Slots) -> None:
        """Learn that transitions were written to ``slots`` (runs, n), in this order.

        They get the largest priority so far. After an interrupt, the same slots may come a second
        time.
        """

    def sample(self, batch_size: int, sizes: Ints, beta: float) -> tuple[Slots, NDArray, NDArray]:
        """Draw slots; return these, their P(i) and importance-sampling weights, (runs, batch) each.

        Every slot is in [0, sizes[run]). No run's numbers depend on another run.
        """

    def update(self, slots: Slots, td_errors: Floats) -> None:
        """Learn the TD errors δ (with their sign) of replayed slots, both (runs, batch).

        Skip `NO_SLOT`: it was overwritten since it was drawn. The last of duplicates counts.
        """

    def probabilities(self, slots: Slots, sizes: Ints) -> Floats:
        """P(i) of slots (runs, n), which hold transitions."""

    @property
    def state(self) -> State:
        """All that changes: the arrays in use, into which a saved state is copied."""
