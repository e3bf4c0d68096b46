"""`Replay`: one storage (which experiences to keep) and one sampler (which to replay)."""

import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import index_array, up_to_one, whole_number
from per_tutorial.common.files import PathLike, join_parts, part_of, write_arrays
from per_tutorial.common.states import Schema, State, checked_state
from per_tutorial.replay.contracts import (
    Batch,
    Floats,
    PendingWrite,
    Sampler,
    Slots,
    Storage,
    needs_of,
    require,
)
from per_tutorial.replay.ring import NO_SLOT
from per_tutorial.replay.saving import read_state
from per_tutorial.replay.td_errors import are_valid, errors_like, refuse, refuse_infinite

DRAWS_WITHOUT_UPDATE = 1000  # this many draws without an update mean training, not inspection


class Replay:
    """One storage and one sampler, for one run or for a stack of runs.

    A transition is identified by its id; the first one added to a run has the id 0. Ids are never
    reused. If a transition is overwritten between `sample` and `update_priorities`, its index is
    skipped, and the new transition in its slot keeps its own priority.

    An interrupted call (Ctrl-C, a notebook's stop button) takes effect in full or not at all: the
    next call completes it. If the storage or the sampler fails while completing it, every later
    call raises that error, until `restore` or `load` replaces the state. Copies (`copy.deepcopy`,
    `pickle`) share no memory and have the same random streams: they draw what the original draws.
    A forked process must therefore not use its parent's buffer. Threads need a lock around each
    call.

    Args:
        storage: where transitions are kept, such as `TransitionStorage`.
        sampler: how they are drawn, one of `per_tutorial.replay.samplers`.
        runs: None for one run, whose arrays have no axis for runs; R for a stack of R runs, whose
            arrays all start with an axis of length R.

    Raises:
        TypeError: one of them does not meet its contract (`per_tutorial.replay.contracts`).
        ValueError: their capacities or numbers of runs differ.

    Example:
        >>> from per_tutorial import Replay
        >>> from per_tutorial.replay import RankBasedSampler, TransitionStorage
        >>> storage = TransitionStorage(1000, (2,), n_step=3, discount=0.9)
        >>> replay = Replay(storage, RankBasedSampler(1000, seeds=[0]))
        >>> for step in range(5):
        ...     replay.add([step, 0], 1, 1.0, [step + 1, 0], terminated=False)
        >>> print(f"{replay.sample(5).rewards.max():.2f}")  # 1 + 0.9 + 0.81
        2.71
    """

    def __init__(self, storage: Storage, sampler: Sampler, runs: int | None = None) -> None:
        require("storage", storage, Storage)
        require("sampler", sampler, Sampler)
        for name in ("capacity", "runs"):
            kept, drawn = getattr(storage.ring, name), getattr(sampler, name)
            if kept != drawn:
                raise ValueError(f"sampler: must have the storage's {name} ({kept}), got {drawn}")
        if sampler.runs != (1 if runs is None else runs):
            raise ValueError(f"runs: must be those of the storage ({sampler.runs}), got {runs}")
        self.storage = storage
        self.sampler: Any = sampler
        self.runs = runs
        self._needs = needs_of(sampler)
        self._unfinished: Callable[[], None] | None = None  # what an interrupt may have cut short
        self._draws_without_update = 0

    def __len__(self) -> int:
        """Transitions stored now; in a stack, those of the run with the fewest."""
        self._finish()
        return int(self.storage.ring.sizes.min())

    @property
    def capacity(self) -> int:
        """Transitions that each run can hold."""
        return self.sampler.capacity

    def add(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike = False,
        *,
        valid: ArrayLike | None = None,
    ) -> None:
        """Store one transition per run; prioritised samplers give it the largest priority so far.

        ``terminated`` means that the next state has value 0. At a time limit, set ``truncated``
        instead: n-step returns end there, and the next state keeps its value. If several
        environments feed one run, they take turns, and its storage must know how many there are.
        In a stack, nothing is stored for runs where ``valid`` (runs,) is False.

        Raises:
            ValueError: a field has the wrong shape, the reward is not finite, an observation has a
                NaN, or an integer does not fit the type that it is stored as.
            TypeError: a field has the wrong type.
        """
        if self._unfinished is not None:
            self._finish()
        step = (observation, action, reward, next_observation, terminated, truncated)
        self._write(self.storage.prepare(step, valid, stacked=self.runs is not None))

    def extend(
        self,
        observations: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_observations: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike | None = None,
    ) -> None:
        """Store n transitions, the oldest first: the same as `add` for each, but faster.

        Fields are shaped (n, ...), or (runs, n, ...) in a stack; ``truncated`` None: all False. If
        n exceeds `capacity`, the last transitions stay. If E environments feed a run, n must be a
        multiple of E. Raises what `add` raises, and TypeError if the storage takes only single
        steps; nothing is stored then.
        """
        self._finish()
        if not hasattr(self.storage, "prepare_many"):
            raise TypeError(
                f"extend: {type(self.storage).__name__} takes one step of the environments at a "
                f"time, by add"
            )
        if truncated is None:
            truncated = np.zeros(np.shape(terminated), dtype=bool)
        steps = (observations, actions, rewards, next_observations, terminated, truncated)
        write = self.storage.prepare_many(steps, stacked=self.runs is not None)
        # `write` may hold the caller's arrays, which may change, so it is never committed later.
        self._unfinished = partial(self._sync_if_committed, write)
        self.storage.commit(write)
        self._sync(write)
        self._unfinished = None

    def sample(
        self,
        batch_size: int,
        beta: float = 0.4,
        *,
        td_errors: Callable[[Batch], ArrayLike] | None = None,
    ) -> Batch:
        """Draw a minibatch for each run.

        Args:
            batch_size: at most the number of stored transitions; duplicates are possible.
            beta: exponent of the importance-sampling weights, in [0, 1].
            td_errors: function from a `Batch` to its TD errors, computed by the agent.
                Samplers that choose a minibatch from a larger draw need it; others never call it.
                It must not change the buffer.
        """
        if self._unfinished is not None:
            self._finish()
        batch_size = whole_number("batch_size", batch_size)
        beta = up_to_one("beta", beta)
        sizes = self.storage.ring.sizes
        if batch_size > min(sizes.tolist()):
            raise ValueError(
                f"batch_size: must be at most the number of stored transitions, {len(self)}, "
                f"got {batch_size}"
            )
        if self._needs.updates and self._draws_without_update < DRAWS_WITHOUT_UPDATE:
            self._count_draw()
        if not self._needs.candidates:
            return self._batch(*self.sampler.sample(batch_size, sizes, beta))
        if td_errors is None:
            raise ValueError(
                f"td_errors: {type(self.sampler).__name__} chooses by the TD errors of a larger "
                f"draw, "
                "and needs a function that returns them"
            )
        draws = self.sampler.candidates * batch_size
        slots, weights = self.sampler.sample(draws, sizes, beta)
        batch, added = self._batch(slots, weights), self.storage.ring.added.copy()
        errors = errors_like(batch.indices, td_errors(batch)).reshape(slots.shape)
        if (self.storage.ring.added != added).any():
            raise ValueError(
                "td_errors: must leave the buffer as it is, got a function that added transitions "
                "to it (they are stored; the minibatch is lost)"
            )
        refuse_infinite(errors)
        chosen, weights = self.sampler.choose(errors, batch_size, beta)
        return self._batch(np.take_along_axis(slots, chosen, axis=1), weights)

    @property
    def probabilities(self) -> Floats:
        """P(i) of every slot: (capacity,) or (runs, capacity)."""
        self._finish()
        slots = np.broadcast_to(np.arange(self.capacity), (self.sampler.runs, self.capacity))
        probabilities = self.sampler.probabilities(slots, self.storage.ring.sizes)
        return probabilities[0] if self.runs is None else probabilities

    def update_priorities(self, indices: ArrayLike, td_errors: ArrayLike) -> None:
        """Pass raw TD errors of replayed transitions to the sampler, which applies |δ|, ε and α.

        Args:
            indices: as in `Batch.indices`; the last of duplicates counts.
            td_errors: the same shape, any sign, NumPy or torch.

        Raises:
            IndexError: no transition with this id has been added.
            ValueError: a TD error is NaN, infinite or beyond 1e100, or the shapes differ.
            TypeError: the indices are not integers, or the TD errors are not numbers.
        """
        if self._unfinished is not None:
            self._finish()
        ids = index_array("indices", indices)
        errors = errors_like(ids, td_errors)
        if self.runs is None:
            ids, errors = ids.reshape(1, -1), errors.reshape(1, -1)
        elif ids.ndim != 2 or len(ids) != self.runs:
            raise ValueError(f"indices: must have the shape ({self.runs}, batch), got {ids.shape}")
        ring = self.storage.ring
        if not are_valid(ids, errors, ring.added):
            refuse(ids, errors, ring.added)
        self._draws_without_update = DRAWS_WITHOUT_UPDATE  # never warn again
        self.sampler.update(ring.slots(ids), errors)

    def truncate_episodes(self) -> None:
        """Mark the running episodes as truncated, before their environments are reset."""
        self._finish()
        self._do(self._truncate_episodes)

    @property
    def settings(self) -> dict[str, Any]:
        """What must match to `restore` the `state` of another buffer."""
        return {"runs": self.runs, **self.storage.settings, **self.sampler.settings}

    @property
    def state(self) -> State:
        """Transitions, priorities and random streams: the arrays that a checkpoint holds."""
        self._finish()
        return join_parts(storage=self.storage.state, sampler=self.sampler.state)

    @property
    def schema(self) -> Schema:
        """What each array of a state must be."""
        return join_parts(storage=self.storage.schema, sampler=self.sampler.schema)

    def check(self, state: State) -> None:
        """Raise ValueError unless `restore` accepts this state, which must fit the `schema`."""
        sizes = self.storage.check(part_of(state, "storage"))
        self.sampler.check(part_of(state, "sampler"), sizes)

    def restore(self, state: State) -> None:
        """Continue from a saved `state`.

        Raises:
            ValueError: it is not a state of such a buffer, which is then unchanged.
        """
        state = checked_state(state, self.schema)
        self.check(state)
        self._do(partial(self._restore, state))

    def save(self, path: PathLike) -> None:
        """Write transitions, priorities and random streams to one file. Atomic."""
        write_arrays(path, "settings", self.settings, self.state)

    def load(self, path: PathLike) -> None:
        """Restore what `save` wrote; the buffer continues as if it had never stopped.

        If the environments start new episodes now, call `truncate_episodes` before you add.

        The file need not be trusted: nothing in it is executed, sizes are checked before anything
        is allocated, and everything is checked before the buffer changes.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or was saved by a buffer with other settings. The
                buffer is then unchanged.
        """
        state = read_state(path, self.settings, self.schema)
        try:
            self.restore(state)
        except ValueError as error:
            raise ValueError(f"path: {os.fspath(path)!r} is damaged ({error})") from error

    def __getstate__(self) -> dict[str, Any]:
        self._finish()
        return vars(self).copy()

    def _write(self, write: PendingWrite) -> None:
        """Store a prepared write. Once it is in `_unfinished`, it will be stored."""
        self._unfinished = partial(self._commit, write)
        self._commit(write)
        self._unfinished = None

    def _commit(self, write: PendingWrite) -> None:
        self.storage.commit(write)
        self._sync(write)

    def _sync_if_committed(self, write: PendingWrite) -> None:
        if (self.storage.ring.added == write.added).all():
            self._sync(write)

    def _sync(self, write: PendingWrite) -> None:
        """Tell the sampler what was stored."""
        self.sampler.add(write.slots, write.added)
        if self._needs.episodes:
            # If there are more transitions than slots, the first ones are already overwritten.
            self._end_episodes(write.slots[:, -self.capacity :])

    def _truncate_episodes(self) -> None:
        slots = self.storage.truncate_episodes()
        if self._needs.episodes:
            self._end_episodes(slots)

    def _end_episodes(self, slots: Slots) -> None:
        """Tell the sampler which episodes end in ``slots`` (runs, n), if any do."""
        lengths = self.storage.episode_lengths(slots)
        if lengths.any():
            ends = np.where(lengths > 0, slots, NO_SLOT)
            self.sampler.end_episodes(ends, lengths, self.storage.environments)

    def _restore(self, state: State) -> None:
        self.storage.restore(part_of(state, "storage"))
        self.sampler.restore(part_of(state, "sampler"))

    def _do(self, action: Callable[[], None]) -> None:
        """Do something idempotent; if it is interrupted, `_finish` does it again."""
        self._unfinished = action
        action()
        self._unfinished = None

    def _finish(self) -> None:
        """Repeat what an interrupt, or an error of the storage or sampler, cut short."""
        if self._unfinished is not None:
            try:
                self._do(self._unfinished)
            except Exception as error:
                error.add_note(
                    "An earlier call was interrupted, and the storage or the sampler fails while "
                    "completing it: transitions may be stored that the sampler does not know. "
                    "Every call fails until this succeeds, or until `restore` or `load` replaces "
                    "the state."
                )
                raise

    def _count_draw(self) -> None:
        self._draws_without_update += 1
        if self._draws_without_update == DRAWS_WITHOUT_UPDATE:
            warnings.warn(
                f"{DRAWS_WITHOUT_UPDATE} minibatches were drawn without any TD error, so "
                "priorities mean nothing yet: call update_priorities with the TD errors of each "
                "minibatch.",
                stacklevel=3,
            )

    def _batch(self, slots: Slots, weights: NDArray) -> Batch:
        rows, steps = self.storage.n_step_transitions(slots)
        ids = self.storage.ring.ids(slots)
        if self.runs is None:
            weights, ids, steps = weights[0], ids[0], steps[0]
            rows = rows[0] if isinstance(rows, np.ndarray) else {k: rows[k][0] for k in rows}
        return Batch(
            rows["observation"],
            rows["action"],
            rows["reward"],
            rows["next_observation"],
            rows["terminated"],
            weights,
            ids,
            steps,
        )
