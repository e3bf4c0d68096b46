"""The last `capacity` transitions of every run, one row each (notebook 02).

A row is an element of a NumPy structured array: a transition is one block of memory instead of one
per field, and a minibatch is one `take`.
"""

from __future__ import annotations  # so that `help` shows ArrayLike as a name

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import DTypeLike, NDArray

from per_tutorial.common.arguments import plain_array, real_number, whole_number
from per_tutorial.common.files import AnyArray, copy_arrays, require_like
from per_tutorial.common.memory import promise_memory
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Fields, Floats, Ints, Singles, Slots, State, Transition
from per_tutorial.replay.ring import Ring, sum_n_steps
from per_tutorial.replay.storages.fields import as_field, as_shape

PLAIN = {"b": bool, "i": int, "u": int, "f": float}  # Python's types of a single number
OBSERVATIONS = ("observation", "next_observation")
LARGE_ROW = 4096  # bytes: from here on, copying twice costs more than a call for each field
CHECKED_AT_ONCE = (np.dtype(np.float32), np.dtype(np.float64))  # floats that numba can check
VIEWS = ("_flat", "_memory", "_staged", "_staged_words", "_targets", "_numbers")  # of storages


@njit_cached
def write_rows(memory, capacity, added, data, slots):
    """Copy n rows per run into the ring, and count them: one call, which cannot be interrupted.

    Args:
        memory: (runs · capacity, words), all rows, run after run.
        added: (runs,) transitions added so far; n more afterwards.
        data: (runs · n, words), the new rows.
        slots: (runs, n), where the rows go.
    """
    runs, n = slots.shape
    for run in range(runs):
        for k in range(n):
            slots[run, k] = (added[run] + k) % capacity
            for word in range(memory.shape[1]):
                memory[run * capacity + slots[run, k], word] = data[run * n + k, word]
        added[run] += n


@njit_cached
def are_finite(observations, next_observations, rewards):
    """Whether all numbers are finite: of observations (runs, n), twice, and rewards (runs,)."""
    infinite = False  # no early exit, so that the loop is vectorised
    for run in range(len(rewards)):
        infinite |= rewards[run] - rewards[run] != 0  # NaN − NaN and ∞ − ∞ are NaN
        for k in range(observations.shape[1]):
            infinite |= observations[run, k] - observations[run, k] != 0
            infinite |= next_observations[run, k] - next_observations[run, k] != 0
    return not infinite


class RowStorage:
    """Rows in the slots of a ring for each run: what both storages share.

    Args:
        row: dtype of the rows, with fields reward, terminated and truncated.
        capacity, runs, n_step, discount, environments: as in `TransitionStorage`.

    Attributes:
        rows: (runs, capacity) structured array.
        added: (runs,) transitions ever added to each run.
        ring: which slot holds which transition.
        leading_axes: of fields that are added.
        settings: what must match to `restore` the `state` of another storage.
    """

    def __init__(
        self,
        capacity: int,
        row: DTypeLike,
        runs: int,
        n_step: int,
        discount: float,
        environments: int = 1,
    ) -> None:
        self.capacity = whole_number("capacity", capacity)
        self.runs = whole_number("runs", runs)
        self.n_step = whole_number("n_step", n_step, maximum=self.capacity)
        self.environments = whole_number("environments", environments, maximum=self.capacity)
        self.discount = real_number("discount", discount, 0, 1)
        self._powers = (self.discount ** np.arange(self.n_step + 1)).astype(np.float32)  # γ^k
        self._one_step = np.array([self.discount, 0], np.float32)  # discounts, by `terminated`
        self.added = np.zeros(self.runs, dtype=np.int64)
        self._rounds_from = 0  # where rounds of all environments begin
        self.ring = Ring(self.added, self.capacity)
        self.leading_axes: tuple[int, ...] = (self.runs,)
        self._first_rows = self.capacity * np.arange(self.runs)[:, None]  # of runs, in all rows
        row = np.dtype(row, align=True)
        promise_memory(self, "capacity", self.runs * self.capacity * row.itemsize)
        self.rows = np.zeros((self.runs, self.capacity), row)
        self._dtypes = {name: row[name] for name in row.names or ()}  # of what is added
        self._make_views()
        self.settings: dict[str, Any] = {
            "capacity": self.capacity,
            **{name: f"{row[name].base} {row[name].shape}" for name in row.names or ()},
            "n_step": self.n_step,
            "discount": self.discount,
            "environments": self.environments,
        }

    def _make_views(self) -> None:
        """Views of the arrays, which copies of a storage make anew."""
        self._flat = self.rows.reshape(-1)  # run after run
        self._memory = as_words(self._flat)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out empty rows, and views, which would become separate arrays."""
        kept = {name: value for name, value in vars(self).items() if name not in VIEWS}
        return kept | {"rows": self._arrays(self.added)["rows"]}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        stored = kept.pop("rows")
        vars(self).update(kept)
        self.rows = np.zeros((self.runs, self.capacity), stored.dtype)
        self.rows[:, : stored.shape[1]] = stored
        self._make_views()

    @property
    def sizes(self) -> Ints:
        """(runs,): transitions stored now."""
        return self.ring.sizes

    @property
    def state(self) -> State:
        """The arrays that a checkpoint holds."""
        return self._arrays(self.added)

    def check(self, state: Mapping[str, AnyArray]) -> None:
        """Raise ValueError, "state: …", unless `restore` accepts this state."""
        require_like({"added": self.added}, state)
        added = np.asarray(state["added"])
        if (added != added[0]).any():  # earlier versions could store nothing in some of the runs
            raise ValueError(f"state: added must be the same for all runs, got {added}")
        require_like(self._arrays(added), state)

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a checked state."""
        copy_arrays(self._arrays(np.asarray(state["added"])), state)
        self._rounds_from = self.ring.count

    def _arrays(self, added: Ints) -> State:
        """One's own arrays, as far as they are in use after ``added`` (runs,) transitions."""
        stored = min(int(added[0]), self.capacity)
        return {"added": self.added, "rows": self.rows[:, :stored]}

    def _fields(self, transition: Fields, axis_of_runs: bool, **counts: int) -> dict[str, NDArray]:
        """The fields by name, with axes for runs and for ``counts``; or ValueError, TypeError."""
        counts = {"runs": self.runs, **counts} if axis_of_runs else counts
        fields = {}
        for name, values in zip(Transition._fields, transition, strict=True):
            if name == "truncated" and isinstance(values, (bool, np.bool_)):
                values = np.full([*counts.values()], values)
            array = as_field(name, values, self._dtypes[name], **counts)
            fields[name] = array if axis_of_runs else array[None]
        return fields

    def _write(self, data: NDArray, n: int) -> Slots:
        """Store n rows per run, given `as_words`; return their slots (runs, n)."""
        slots = np.empty((self.runs, n), np.int64)
        write_rows(self._memory, self.capacity, self.added, data, slots)
        return slots

    def _take(self, slots: Slots) -> Any:
        """The rows in ``slots`` (runs, batch), copied: an array with fields, or a dict of them."""
        places = slots if self.runs == 1 else slots + self._first_rows
        if self._flat.itemsize < LARGE_ROW:
            return self._flat.take(places)
        return {name: self._flat[name][places] for name in self._flat.dtype.names or ()}

    def _walk(self, slots: Slots) -> tuple[Floats, Slots, Any, Singles]:
        """Of the n-step transitions that start in ``slots``: returns, last slots, the rows there,
        and discounts.
        """
        returns = np.empty(slots.shape)
        last_slots, steps = np.empty_like(slots), np.empty_like(slots)
        sum_n_steps(
            *(self.rows[name] for name in ("reward", "terminated", "truncated")),
            *(self.added, self.environments, slots, self.n_step, self.discount),
            *(returns, last_slots, steps),
        )
        last, discounts = self._take(last_slots), self._powers.take(steps)
        discounts[last["terminated"]] = 0
        return returns, last_slots, last, discounts


class TransitionStorage(RowStorage):
    """Ring buffers of transitions, one per run (notebook 02).

    Args:
        capacity: transitions kept for each run; the oldest is overwritten.
        observation_shape: shape of one observation, a tuple of ints (or one int).
        runs: number of runs.
        n_step: steps whose rewards are summed, at most `capacity`; see `n_step_transitions`.
        discount: γ of these sums.
        environments: how many feed each run. They take turns: transition k belongs to environment
            k % environments, and n-step transitions stay within their environment. Call
            `truncate_episodes` before you restart an unfinished round.
        observation_dtype, action_shape, action_dtype: types and shape of what the rows hold.

    Example:
        >>> from per_tutorial import Replay
        >>> from per_tutorial.replay import TransitionStorage, UniformSampler
        >>> storage = TransitionStorage(100, (3,), action_shape=(2,), action_dtype="float32")
        >>> replay = Replay(storage, UniformSampler(100, seeds=[0]))
        >>> replay.add([0, 0, 0], [0.5, -1.0], 1.0, [0, 0, 1], terminated=True)
        >>> replay.sample(1).actions.tolist()
        [[0.5, -1.0]]
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: int | tuple[int, ...],
        runs: int = 1,
        *,
        n_step: int = 1,
        discount: float = 0.99,
        environments: int = 1,
        observation_dtype: DTypeLike = np.float32,
        action_shape: int | tuple[int, ...] = (),
        action_dtype: DTypeLike = np.int64,
    ) -> None:
        observation = (observation_dtype, as_shape("observation_shape", observation_shape))
        row = [
            ("observation", *observation),
            ("action", action_dtype, as_shape("action_shape", action_shape)),
            ("reward", np.float32),
            ("next_observation", *observation),
            ("terminated", np.bool_),
            ("truncated", np.bool_),
        ]
        super().__init__(capacity, row, runs, n_step, discount, environments)

    def _make_views(self) -> None:
        super()._make_views()
        self._staged = np.zeros(self.runs, self.rows.dtype)  # where a step is checked
        self._staged_words = as_words(self._staged)
        views = {name: self._staged[name] for name in Transition._fields}
        of_one = [_target(name, view[0, ...]) for name, view in views.items()]
        self._targets = of_one, [_target(name, view) for name, view in views.items()]
        numbers = [views[name].reshape(self.runs, -1) for name in OBSERVATIONS]
        if numbers[0].dtype not in CHECKED_AT_ONCE:
            numbers = [np.zeros((self.runs, 0), np.float32)] * 2
        self._numbers = *numbers, views["reward"]

    def add(self, transition: Fields, *, axis_of_runs: bool = True) -> Slots:
        """Store one transition of every run; return their slots (runs, 1).

        Fields are shaped (runs, ...), or (...) if not ``axis_of_runs``; ``truncated`` may be one
        bool. Raises ValueError or TypeError for a field that does not fit.
        """
        self._stage(transition, axis_of_runs)
        return self._write(self._staged_words, 1)

    def extend(self, transitions: Fields, *, axis_of_runs: bool = True) -> Slots:
        """Store n transitions of every run, fields (runs, n, ...), or (n, ...); return their slots.

        If n exceeds `capacity`, the last transitions stay. Raises what `add` raises, and ValueError
        unless whole rounds of `environments` follow whole rounds.
        """
        n = (*plain_array("observation", transitions[0]).shape, 1, 1)[axis_of_runs]
        rows = np.zeros((self.runs, n), self.rows.dtype)
        for name, array in self._fields(transitions, axis_of_runs, transitions=n).items():
            rows[name] = array
        since = (self.ring.count - self._rounds_from) % self.environments
        if n % self.environments or since:
            raise ValueError(
                f"transitions: must be whole rounds of all {self.environments} environments, "
                f"got {n} after {since} of a round"
            )
        return self._write(as_words(rows), n)

    def truncate_episodes(self) -> None:
        """Mark the running episodes as truncated, before their environments are reset."""
        self._rounds_from = self.ring.count
        newest = self.ring.since(max(self.ring.count - self.environments, 0))[0]
        self.rows["truncated"][:, newest] |= ~self.rows["terminated"][:, newest]

    def n_step_transitions(self, slots: Slots) -> tuple[Any, Singles]:
        """The n-step transitions that start in ``slots`` (runs, batch): rows, and discounts.

        One of k ≤ n_step steps has the reward Σ_{j<k} γ^j r_{t+j} and the next observation,
        `terminated` and `truncated` of its last step (Sutton & Barto 2018, section 7.1). k < n_step
        if the episode ends first, or as long as the later steps have not been added. Its discount
        is γ^k, and 0 after a terminal step.
        """
        rows = self._take(slots)
        if self.n_step == 1:
            return rows, self._one_step.take(rows["terminated"])
        returns, _, last_rows, discounts = self._walk(slots)
        rows["reward"][...] = returns
        for name in ("next_observation", "terminated", "truncated"):
            rows[name][...] = last_rows[name]
        return rows, discounts

    def _stage(self, transition: Fields, axis_of_runs: bool) -> None:
        """Write a step into the staged rows, or raise ValueError or TypeError.

        An agent adds one at every step, nearly always with fields of exactly the stored types and
        shapes. These are written directly; otherwise, all are converted first, or rejected.
        """
        try:
            # `strict` would add a third to the time.
            for value, (field, dtypes, types) in zip(transition, self._targets[axis_of_runs]):  # noqa: B905
                if type(value) is ndarray:
                    fits = value.dtype in dtypes and value.shape == field.shape
                else:
                    fits = isinstance(value, types)
                if not fits:
                    break
                field[...] = value
            else:
                if are_finite(*self._numbers):
                    return
        except OverflowError:  # an int that its field cannot hold
            pass
        for name, array in self._fields(transition, axis_of_runs).items():
            self._staged[name] = array


def as_words(rows: NDArray) -> NDArray:
    """A view of rows as (rows, words), of the largest words that fill a row: these copy fastest."""
    size = math.gcd(rows.itemsize, 8)  # bytes of a word
    return rows.reshape(-1).view(f"u{size}").reshape(rows.size, rows.itemsize // size)


def _target(name: str, field: NDArray) -> tuple[NDArray, tuple, tuple]:
    """The view of a field; which arrays and which types of a number fit it as they are."""
    dtype = field.dtype
    if dtype.kind in "fc" and dtype not in CHECKED_AT_ONCE:
        return field, (), ()
    # Most environments return rewards as float64. A single truncated may be for all runs.
    dtypes = (dtype, np.dtype(np.float64)) if name == "reward" else (dtype,)
    single = field.shape == () or name == "truncated"
    return field, dtypes, (PLAIN.get(dtype.kind, dtype.type), dtype.type) if single else ()
