"""`Replay`: one storage (which experiences to keep) and one sampler (which to replay)."""

from __future__ import annotations  # so that `help` shows ArrayLike as a name

import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import by_run, index_array, up_to_one, whole_number
from per_tutorial.common.files import (
    AnyArray,
    PathLike,
    join_parts,
    open_arrays,
    part_of,
    require_like,
    require_settings,
    write_arrays,
)
from per_tutorial.replay.contracts import Batch, Floats, Sampler, Slots, State, Storage
from per_tutorial.replay.ledger import Ledger
from per_tutorial.replay.ring import errors_like


class Replay:
    """One storage and one sampler, for one run or for several side by side.

    A transition is identified by its id; the first one added to a run has the id 0. Ids are never
    reused. If a transition is overwritten between `sample` and `update_priorities`, its index is
    skipped, and the new transition in its slot keeps its own priority.

    An interrupted call (Ctrl-C, a notebook's stop button) takes effect in full or not at all, and
    the buffer can be used on. Copies (`copy.deepcopy`, `pickle`) share no memory and have the same
    random streams: they draw what the original draws. So does a forked process, which is warned of.
    Threads need a lock around each call; two that are seen inside at once get an error.

    Args:
        storage: where transitions are kept, such as `TransitionStorage`.
        sampler: how they are drawn, one of `per_tutorial.replay.samplers` or your own.
        runs: None for one run, whose arrays have no axis for runs; R for R runs side by side, whose
            arrays all start with an axis of length R.

    Raises:
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
        for name in ("capacity", "runs"):
            kept, drawn = getattr(storage, name), getattr(sampler, name)
            if kept != drawn:
                raise ValueError(f"sampler: must have the storage's {name} ({kept}), got {drawn}")
        if storage.runs != (1 if runs is None else runs):
            raise ValueError(f"runs: must be those of the storage ({storage.runs}), got {runs}")
        self.storage = storage
        self.sampler = sampler
        self.runs = None if runs is None else storage.runs  # an int, which JSON can hold
        self.capacity = storage.capacity  # transitions that each run can hold
        self._ledger = Ledger(sampler, storage.added)
        self._restoring: Callable[[], None] | None = None  # what an interrupt may have cut short
        self._thread = 0  # the one inside a call, 0 for none
        self._process = os.getpid()

    def __len__(self) -> int:
        """Transitions of each run that are stored now."""
        self._finish_restoring()
        return min(self._ledger.ring.count, self.capacity)

    def add(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike = False,
    ) -> None:
        """Store one transition per run; prioritised samplers give it the largest priority so far.

        ``terminated`` means that the next state has value 0. At a time limit, set ``truncated``
        instead: n-step returns end there, and the next state keeps its value. If several
        environments feed one run, they take turns, and its storage must know how many there are.

        Raises:
            ValueError: a field has the wrong shape, a reward or an observation is not finite, or an
                integer does not fit the type that it is stored as.
            TypeError: a field has the wrong type.
        """
        step = (observation, action, reward, next_observation, terminated, truncated)
        self._begin()
        try:
            self._ledger.catch_up()
            self._ledger.add(self.storage.add(step, axis_of_runs=self.runs is not None))
        finally:
            self._thread = 0

    def extend(
        self,
        observations: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_observations: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike = False,
    ) -> None:
        """Store n transitions, the oldest first: the same as `add` for each, but faster.

        Fields are shaped (n, ...), or (runs, n, ...) for several runs; ``truncated`` may be a
        single bool. If n exceeds `capacity`, the last transitions stay. If E environments feed a
        run, these must be whole rounds of all E. Raises what `add` raises, and TypeError for a
        `FrameStorage`, which takes only single steps; nothing is stored then.
        """
        steps = (observations, actions, rewards, next_observations, terminated, truncated)
        if not hasattr(self.storage, "extend"):
            kind = type(self.storage).__name__
            raise TypeError(f"extend: a {kind} takes only single steps, which add stores")
        self._begin()
        try:
            self._ledger.catch_up()
            self._ledger.add(self.storage.extend(steps, axis_of_runs=self.runs is not None))
        finally:
            self._thread = 0

    def sample(self, batch_size: int, beta: float = 0.4) -> Batch:
        """Draw a minibatch for each run.

        Args:
            batch_size: at most the number of stored transitions; duplicates are possible.
            beta: exponent of the importance-sampling weights, in [0, 1].
        """
        batch_size = whole_number("batch_size", batch_size)
        beta = up_to_one("beta", beta)
        self._begin()
        try:
            if batch_size > (stored := min(self._ledger.ring.count, self.capacity)):
                raise ValueError(
                    "batch_size: must be at most the number of stored transitions, "
                    f"{stored}, got {batch_size}"
                )
            if self._process != os.getpid():
                self._process = os.getpid()
                warnings.warn(
                    "this process was forked from the one that made the replay buffer: both draw "
                    "the same minibatches; make a buffer with its own seed in each process",
                    stacklevel=2,
                )
            return self._batch(*self._ledger.sample(batch_size, beta))
        finally:
            self._thread = 0

    def probabilities(self, indices: ArrayLike | None = None) -> Floats:
        """P(i) now: of the transitions with these ids, or of all that are stored.

        Args:
            indices: as in `Batch.indices`, (n,) or (runs, n). None: the oldest first.

        Returns:
            (n,) or (runs, n), 0 for transitions that were overwritten.

        Raises:
            IndexError, TypeError: as `update_priorities`.
        """
        self._finish_restoring()
        ids = None
        if indices is not None:
            ids = by_run("indices", index_array("indices", indices), self.runs)
        probabilities = self._ledger.probabilities(ids)
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
        ids = index_array("indices", indices)
        errors = errors_like(ids, td_errors)
        ids = by_run("indices", ids, self.runs)
        errors = errors.reshape(ids.shape)
        self._begin()
        try:
            self._ledger.update(self._ledger.ring.slots_to_update(ids, errors), errors)
        finally:
            self._thread = 0

    def truncate_episodes(self) -> None:
        """Mark the running episodes as truncated, before their environments are reset."""
        self._begin()
        try:
            self.storage.truncate_episodes()
        finally:
            self._thread = 0

    @property
    def settings(self) -> dict[str, Any]:
        """What must match to `restore` the `state` of another buffer."""
        return {"runs": self.runs, **self.storage.settings, **self.sampler.settings}

    @property
    def state(self) -> State:
        """Transitions, priorities and random streams: the arrays that a checkpoint holds."""
        self._finish_restoring()
        return join_parts(storage=self.storage.state, sampler=self._ledger.state)

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a saved `state` of a buffer with the same settings.

        If it is interrupted, the next call completes it.

        Raises:
            ValueError: it is not a state of such a buffer, which is then unchanged.
        """
        self._check(state)
        self._copy(state, partial(self.restore, state))

    def save(self, path: PathLike) -> None:
        """Write transitions, priorities and random streams to one file. Atomic."""
        write_arrays(path, self.settings, self.state)

    def load(self, path: PathLike) -> None:
        """Restore what `save` wrote; the buffer continues as if it had never stopped.

        If the environments start new episodes now, call `truncate_episodes` before you add. Nothing
        in the file is executed. It is read through, and compared with this buffer, before anything
        changes; then it is read into the memory that this buffer has.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or was saved by a buffer with other settings or by
                another version. The buffer is then unchanged.
        """
        with open_arrays(path) as (settings, state):
            shown = repr(os.fspath(path))
            require_settings(f"path: {shown}", self.settings, settings)
            try:
                self._check(state)
            except ValueError as error:
                raise ValueError(f"path: {shown} is damaged ({error})") from error
            self._copy(state, partial(self.load, path))

    def __getstate__(self) -> dict[str, Any]:
        self._finish_restoring()
        return vars(self).copy()

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept, _thread=0, _process=os.getpid())

    def _begin(self) -> None:
        """Refuse a second thread inside a call, and complete a `restore` that was interrupted."""
        if self._thread and self._thread != get_ident():
            raise RuntimeError(
                "replay: must be used by one thread at a time, got two at once; put a lock around "
                "each call"
            )
        if self._restoring is not None:  # `_finish_restoring`, without a call at every step
            self._restoring()
        self._thread = get_ident()

    def _finish_restoring(self) -> None:
        """Complete a `restore` or `load` that was interrupted."""
        if self._restoring is not None:
            self._restoring()

    def _check(self, state: Mapping[str, AnyArray]) -> None:
        """Raise ValueError unless this is the state of a buffer like this one."""
        self.storage.check(part_of(state, "storage"))
        require_like(self.sampler.state, part_of(state, "sampler"))

    def _copy(self, state: Mapping[str, AnyArray], again: Callable[[], None]) -> None:
        """Copy a checked state; after an interrupt, the next call does it ``again``."""
        self._restoring = again
        self.storage.restore(part_of(state, "storage"))
        self._ledger.restore(part_of(state, "sampler"))
        self._restoring = None

    def _batch(self, slots: Slots, probabilities: NDArray, weights: NDArray) -> Batch:
        rows, discounts = self.storage.n_step_transitions(slots)
        ids = self._ledger.ring.ids(slots)
        probabilities = probabilities.astype(np.float32, copy=False)
        weights = weights.astype(np.float32, copy=False)
        if self.runs is None:
            rows = rows[0] if isinstance(rows, np.ndarray) else {k: rows[k][0] for k in rows}
            probabilities, weights = probabilities[0], weights[0]
            ids, discounts = ids[0], discounts[0]
        return Batch(
            np.ascontiguousarray(rows["observation"]),
            rows["action"],
            rows["reward"],
            np.ascontiguousarray(rows["next_observation"]),
            rows["terminated"],
            weights,
            ids,
            discounts,
            probabilities,
        )
