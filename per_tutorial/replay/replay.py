"""`Replay`: one storage (which experiences to keep) and one sampler (which to replay)."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import index_array, plain_array, up_to_one, whole_number
from per_tutorial.common.files import PathLike, part_of, write_arrays
from per_tutorial.common.states import Schema, State, checked_state
from per_tutorial.replay.contracts import (
    Batch,
    CandidateSampler,
    EpisodeSampler,
    Floats,
    Sampler,
    Slots,
    Storage,
    Transition,
    Write,
    has_short_way,
    require,
)
from per_tutorial.replay.saving import read_state
from per_tutorial.replay.td_errors import are_valid, errors_like, refuse, refuse_infinite


class Replay:
    """One storage and one sampler, for one run or for a stack of runs.

    Transitions are known by their number: the first one ever added to a run has index 0. A number is
    never used again, so the priority of a transition that was overwritten between being sampled and
    being updated is not written to the slot's new owner; such indices are skipped.

    A call that is interrupted (Ctrl-C, a notebook's stop button) has either happened or not happened:
    the next call finishes what it began. Copies (`copy.deepcopy`, `pickle`) share nothing, and have the
    same random streams: a copy draws what the original would have drawn. So a forked process must not
    go on with its parent's buffer. Several threads must take turns, with a lock around each call.

    Args:
        storage: where transitions are kept, such as `TransitionStorage`.
        sampler: how they are drawn, one of `per_tutorial.replay.samplers`.
        runs: None for one run, whose arrays have no axis for runs; R for a stack, whose arrays all
            start with an axis of length R.

    Raises:
        TypeError: a part lacks something of its contract (`per_tutorial.replay.contracts`).
        ValueError: the two parts differ in their capacity or their number of runs.

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
            kept, drawn = getattr(storage, name), getattr(sampler, name)
            if kept != drawn:
                raise ValueError(f"sampler: must have the storage's {name} ({kept}), got {drawn}")
        if storage.runs != (1 if runs is None else runs):
            raise ValueError(f"runs: must be those of the storage ({storage.runs}), got {runs}")
        self.storage = storage
        self.sampler = sampler
        self.runs = runs
        self._unfinished: Callable[[], None] | None = None  # what an interrupt may have cut short
        self._episodes = _as(sampler, EpisodeSampler, "end_episodes")
        self._candidates = _as(sampler, CandidateSampler, "choose")
        self._puts = (
            self._episodes is None
            and has_short_way(storage, "put", "prepare", "_prepare", "commit")
            and has_short_way(storage, "put_many", "prepare_many", "_prepare", "commit")
            and has_short_way(self, "_put", "_write", "_do_write")
        )
        self._draws = has_short_way(storage, "draw", "windows", "ids", "gather", "_take")
        self._quick: Any = storage  # whose short ways are taken, if it has them
        self._nowhere = np.full((storage.runs, 1), -1)

    def __len__(self) -> int:
        """Transitions stored now (in a stack: in the run that has the fewest)."""
        self._finish()
        return int(self.storage.sizes.min())

    @property
    def capacity(self) -> int:
        """Transitions that each run can hold."""
        return self.storage.capacity

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
        """Store one transition (of every run), at the largest priority seen so far.

        ``terminated`` says that no value follows. A time limit is no such end: there, ``truncated``
        is True, so that n-step returns do not run on into the next episode. Several environments that
        feed one run take turns, and its storage must know how many. In a stack, runs where ``valid``
        (runs,) is False have nothing to store.

        Raises:
            ValueError: a field has the wrong shape, or the reward is not finite, or an integer does
                not fit the type that it is stored in.
            TypeError: a field has the wrong type.
        """
        if self._unfinished is not None:
            self._finish()
        fields = (observation, action, reward, next_observation, terminated, truncated)
        if self._puts and self._put(self._quick.put, fields, valid, self._nowhere.copy()):
            return
        transition = self._stacked(*fields)
        if truncated is False:  # nowhere, whatever the axes of the storage
            transition = transition._replace(truncated=False)
        self._write(self.storage.prepare(transition, valid), transition)

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

        Fields are shaped (n, ...), in a stack (runs, n, ...); ``truncated`` None: nowhere. Of more
        transitions than `capacity` the last ones stay. Raises what `add` raises; nothing has been
        stored then.
        """
        self._finish()
        if truncated is None:
            truncated = np.zeros(np.shape(terminated), dtype=bool)
        fields = (observations, actions, rewards, next_observations, terminated, truncated)
        if self._puts and np.ndim(truncated) and np.size(truncated):
            slots = np.full((self.storage.runs, np.shape(truncated)[-1]), -1)
            if self._put(self._quick.put_many, fields, None, slots):
                return
        transitions = self._stacked(*fields)
        self._write(self.storage.prepare_many(transitions), transitions)

    def sample(
        self,
        batch_size: int,
        beta: float = 0.4,
        *,
        td_errors: Callable[[Batch], ArrayLike] | None = None,
    ) -> Batch:
        """Draw a minibatch (for every run): a `Batch`.

        Args:
            batch_size: at most the number of stored transitions; duplicates are possible.
            beta: exponent of the importance-sampling weights, in [0, 1].
            td_errors: function that returns the TD errors of a `Batch`, as `DQNLearner.td_errors`
                does; for samplers that choose a minibatch from a larger draw. Others don't call it.
        """
        if self._unfinished is not None:
            self._finish()
        batch_size = whole_number("batch_size", batch_size)
        beta = up_to_one("beta", beta)
        sizes = self.storage.sizes
        if batch_size > min(sizes.tolist()):
            raise ValueError(
                f"batch_size: must be at most the number of stored transitions, {len(self)}, "
                f"got {batch_size}"
            )
        if self._candidates is None:
            return self._batch(*self.sampler.sample(batch_size, sizes, beta))
        if td_errors is None:
            raise ValueError(
                f"td_errors: {type(self.sampler).__name__} chooses by the TD errors of a larger draw, "
                "and needs a function that returns them"
            )
        draws = self._candidates.candidates * batch_size
        slots, weights = self.sampler.sample(draws, sizes, beta)
        batch = self._batch(slots, weights)
        errors = errors_like(batch.indices, td_errors(batch)).reshape(slots.shape)
        refuse_infinite(errors)
        chosen, weights = self._candidates.choose(errors, batch_size, beta)
        return self._batch(np.take_along_axis(slots, chosen, axis=1), weights)

    @property
    def probabilities(self) -> Floats:
        """P(i) of every slot: (capacity,) or (runs, capacity)."""
        self._finish()
        slots = np.broadcast_to(np.arange(self.capacity), (self.storage.runs, self.capacity))
        probabilities = self.sampler.probabilities(slots, self.storage.sizes)
        return probabilities[0] if self.runs is None else probabilities

    def update_priorities(self, indices: ArrayLike, td_errors: ArrayLike) -> None:
        """Tell the sampler the raw TD errors of replayed transitions; |δ|, ε and α are applied here.

        Args:
            indices: as in `Batch.indices`; of duplicates the last one counts.
            td_errors: the same shape, any sign, NumPy or torch.

        Raises:
            IndexError: no transition with such a number has been added.
            ValueError: a TD error is NaN, infinite or beyond 1e100, or the shapes differ.
            TypeError: the indices are not integers or the TD errors no numbers.
        """
        if self._unfinished is not None:
            self._finish()
        numbers = index_array("indices", indices)
        errors = errors_like(numbers, td_errors)
        if self.runs is None:
            numbers, errors = numbers.reshape(1, -1), errors.reshape(1, -1)
        elif numbers.ndim != 2 or len(numbers) != self.runs:
            raise ValueError(
                f"indices: must have the shape ({self.runs}, batch), got {numbers.shape}"
            )
        if not are_valid(numbers, errors, self.storage.added):
            refuse(numbers, errors, self.storage.added)
        self.sampler.update(self.storage.current_slots(numbers), errors)

    def cut(self) -> None:
        """End the running episodes as a time limit does: their environments are about to start again."""
        self._finish()
        self._do(self._cut)

    @property
    def settings(self) -> dict[str, Any]:
        """What must agree to `restore` the `state` of another buffer."""
        return {"runs": self.runs, **self.storage.settings, **self.sampler.settings}

    @property
    def state(self) -> State:
        """Transitions, priorities and generators: the arrays that a checkpoint holds."""
        self._finish()
        return _in_one(self.storage.state, self.sampler.state)

    @property
    def schema(self) -> Schema:
        """What each array of a state must be."""
        return _in_one(self.storage.schema, self.sampler.schema)

    def check(self, state: State) -> None:
        """Raise ValueError unless `restore` could go on from this state, whose arrays fit `schema`."""
        sizes = self.storage.check(part_of(state, "storage"))
        self.sampler.check(part_of(state, "sampler"), sizes)

    def restore(self, state: State) -> None:
        """Go on from what `state` was.

        Raises:
            ValueError: it is no state of such a buffer. The buffer is as it was then.
        """
        self._finish()
        state = checked_state(state, self.schema)
        self.check(state)
        self._do(partial(self._restore, state))

    def save(self, path: PathLike) -> None:
        """Write everything to one file: transitions, priorities, generators. Atomic."""
        write_arrays(path, "settings", self.settings, self.state)

    def load(self, path: PathLike) -> None:
        """Restore what `save` wrote; the buffer continues as if it had never stopped.

        If the environments did stop, and start new episodes now, call `cut` before you add.

        The file need not be trusted: nothing in it is executed, and it is checked as a whole, sizes
        before anything is allocated, before the first number is taken over.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or was saved by a buffer with other settings. The
                buffer is as it was then.
        """
        state = read_state(path, self.settings, self.schema)
        try:
            self.restore(state)
        except ValueError as error:
            raise ValueError(f"path: {os.fspath(path)!r} is damaged ({error})") from error

    def __getstate__(self) -> dict[str, Any]:
        self._finish()
        return vars(self).copy()

    def _put(
        self,
        put: Callable[..., bool],
        fields: tuple[ArrayLike, ...],
        valid: ArrayLike | None,
        slots: Slots,
    ) -> bool:
        """`_write` the short way, if the storage takes the fields as they are; ``slots`` are −1."""
        added = self.storage.added.copy()
        # Until the storage has written, slots are −1, and finishing this does nothing.
        self._unfinished = lambda: self.sampler.add(slots, added)
        written = put(fields, valid, slots, added, self.runs is not None)
        if written:
            self.sampler.add(slots, added)
        self._unfinished = None
        return written

    def _stacked(self, *fields: ArrayLike) -> Transition:
        """The fields with an axis for runs."""
        if self.runs is not None:
            return Transition(*fields)
        named = zip(Transition._fields, fields, strict=True)
        return Transition(*[plain_array(name, field)[None] for name, field in named])

    def _write(self, write: Write, transition: Transition) -> None:
        """Store what was prepared. It counts as stored from the moment that it is noted."""
        ends = None if self._episodes is None else self._ends(write.slots, transition)
        self._do(partial(self._do_write, write, ends))

    def _do_write(self, write: Write, ends: Slots | None) -> None:
        self.storage.commit(write)
        self.sampler.add(write.slots, write.added)
        self._end_episodes(ends)

    def _ends(self, slots: Slots, transition: Transition) -> Slots:
        """Those of ``slots`` (runs, n) with which an episode ends, −1 elsewhere."""
        over = plain_array("terminated", transition.terminated) != 0
        over = over | (plain_array("truncated", transition.truncated) != 0)
        over = over.reshape(slots.shape)
        # Of more transitions than there are slots, the first ones are gone again.
        return np.where(over, slots, -1)[:, -self.capacity :]

    def _cut(self) -> None:
        self._end_episodes(self.storage.cut())

    def _end_episodes(self, slots: Slots | None) -> None:
        if self._episodes is not None and slots is not None and (slots >= 0).any():
            lengths = self.storage.episode_lengths(slots)
            self._episodes.end_episodes(slots, lengths, self.storage.environments)

    def _restore(self, state: State) -> None:
        self.storage.restore(part_of(state, "storage"))
        self.sampler.restore(part_of(state, "sampler"))

    def _do(self, action: Callable[[], None]) -> None:
        """Do what may be done twice. It is noted first: if it is cut short, `_finish` does it again."""
        self._unfinished = action
        action()
        self._unfinished = None

    def _finish(self) -> None:
        """Do again what an interrupt cut short."""
        if self._unfinished is not None:
            try:
                self._do(self._unfinished)
            except Exception:
                # Twice is no accident: a part is at fault, and a third time would fail as well.
                self._unfinished = None
                raise

    def _batch(self, slots: Slots, weights: NDArray) -> Batch:
        if self._draws:
            rows, steps, ids = self._quick.draw(slots)
        else:
            rows, steps = self.storage.windows(slots)
            ids = self.storage.ids(slots)
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


def _as(sampler: Sampler, protocol: type, mark: str) -> Any:
    """The sampler if it is one of this kind, which having ``mark`` tells; else None."""
    if not hasattr(sampler, mark):
        return None
    require("sampler", sampler, protocol)
    return sampler


def _in_one(storage: Any, sampler: Any) -> dict[str, Any]:
    parts = {"storage": storage, "sampler": sampler}
    return {f"{part}.{name}": arrays[name] for part, arrays in parts.items() for name in arrays}
