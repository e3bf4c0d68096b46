"""Which experiences are kept: the last `capacity` transitions of every run.

A transition is one row of a table (a NumPy structured array), so drawing it touches one place in
memory instead of one for each field, and a minibatch is one `take`.
"""

import numpy as np
from numba import njit

from per_tutorial.common.arguments import real_number, whole_number
from per_tutorial.replay.prefetching import prefetch

LARGEST_REWARD = np.finfo(np.float32).max  # rewards are stored as float32


@njit(cache=True)
def sum_windows(
    rewards,
    terminated,
    truncated,
    added,
    stride,
    slots,
    n_step,
    discount,
    returns,
    last_slots,
    steps,
):
    """Walk forward from each of `slots` (runs, batch), through at most `n_step` transitions.

    `rewards`, `terminated`, `truncated` are (runs, capacity), `added` is (runs,), and a successor
    lies `stride` slots further on. Written, each (runs, batch): the `returns` Σ_j γ^j r_{t+j}, the
    `last_slots` and the number of `steps`.
    """
    runs, batch = slots.shape
    capacity = rewards.shape[1]
    for run in range(runs):
        for k in range(batch):
            slot = slots[run, k]
            # Behind the newest transitions lie the oldest ones, which are no successors of them.
            newer = (added[run] - 1 - slot) % capacity // stride
            total, factor, length = 0.0, 1.0, 0
            while True:
                total += factor * rewards[run, slot]
                factor *= discount
                length += 1
                over = terminated[run, slot] or truncated[run, slot]
                if over or length == n_step or length > newer:
                    break
                slot = (slot + stride) % capacity
            returns[run, k], last_slots[run, k], steps[run, k] = total, slot, length


@njit(cache=True)
def fill_ids(ids, slots, added, capacity):
    """Write into `ids` (runs, batch) the number of the transition that lies in each slot."""
    for run in range(slots.shape[0]):
        lap = added[run] // capacity * capacity  # what is in a slot since then has the number …
        for k in range(slots.shape[1]):
            number = lap + slots[run, k]  # … and otherwise it is one lap older
            ids[run, k] = number if number < added[run] else number - capacity


@njit(cache=True)
def fill_slots(slots, ids, added, capacity):
    """Write into `slots` (runs, batch) where each transition lies, −1 for those overwritten."""
    for run in range(ids.shape[0]):
        lap = added[run] // capacity * capacity
        for k in range(ids.shape[1]):
            slot = ids[run, k] - lap
            stored = ids[run, k] >= added[run] - capacity
            slots[run, k] = -1 if not stored else slot if slot >= 0 else slot + capacity


@njit(cache=True)
def place_rows(places, slots, capacity, memory, row_size):
    """Write into `places` (runs, batch) where in the rows of all runs each slot lies.

    Rows lie anywhere in `memory`, their bytes, so all of them are asked for before the first is read.
    """
    for run in range(slots.shape[0]):
        for k in range(slots.shape[1]):
            place = run * capacity + slots[run, k]
            places[run, k] = place
            prefetch(memory, place * row_size)
            prefetch(memory, (place + 1) * row_size - 1)


@njit(cache=True)
def claim_slots(slots, added, valid, capacity):
    """Write into `slots` (runs, n) where the next n transitions of each run go, and count them.

    Runs that are not `valid` have nothing to add: −1.
    """
    runs, n = slots.shape
    for run in range(runs):
        for k in range(n):
            slots[run, k] = (added[run] + k) % capacity if valid[run] else -1
        added[run] += n if valid[run] else 0


class RingStorage:
    """What storages share: numbered transitions in a ring of slots for each run.

    The k-th transition of a run (counting from 0) lies in slot k % capacity until the
    (k + capacity)-th one takes its place.

    Args:
        capacity: transitions kept for each run; the oldest is overwritten.
        row: dtype of the rows, with fields reward, terminated and truncated.
        runs: number of runs.
        n_step: steps whose rewards are summed, at most `capacity`; see `windows`.
        discount: γ of these sums.
        environments: how many take turns in adding to each run; the numbers of a transition and of
            its successor are that far apart.

    Attributes:
        rows: (runs, capacity) structured array.
        added: (runs,) transitions ever added.
        settings: what must agree to `restore` the `state` of another storage.
    """

    def __init__(self, capacity, row, runs, n_step, discount, environments=1):
        self.capacity = whole_number("capacity", capacity)
        self.runs = whole_number("runs", runs)
        self.n_step = whole_number("n_step", n_step)
        self.environments = whole_number("environments", environments)
        for name in ("n_step", "environments"):
            if getattr(self, name) > self.capacity:
                raise ValueError(
                    f"{name}: must be at most capacity ({self.capacity}), got {getattr(self, name)}"
                )
        self.discount = real_number("discount", discount, 0, 1)
        self.rows = np.zeros((self.runs, self.capacity), dtype=np.dtype(row, align=True))
        self.added = np.zeros(self.runs, dtype=np.int64)
        self.settings = {
            "capacity": self.capacity,
            "row": str(self.rows.dtype.descr),
            "n_step": self.n_step,
            "discount": self.discount,
            "environments": self.environments,
        }
        self._all_rows = self.rows.reshape(-1)  # the same memory, run after run …
        self._memory = self._all_rows.view(np.uint8)  # … and its bytes
        first_rows = (np.arange(self.runs) * self.capacity)[:, None]
        # NumPy adds a single number faster than an array that has axes to broadcast.
        self._first_rows = first_rows.squeeze() if self.runs == 1 else first_rows

    @property
    def sizes(self):
        """(runs,) transitions stored now."""
        return np.minimum(self.added, self.capacity)

    def by_run(self, rows):
        """A step's rows, one for each environment, with the leading axes that `add` takes."""
        return rows

    def ids(self, slots):
        """Which transition lies in each slot (runs, batch): its number, counted from 0 in its run."""
        ids = np.empty(slots.shape, dtype=np.int64)
        fill_ids(ids, slots, self.added, self.capacity)
        return ids

    def current_slots(self, ids):
        """Where transitions (runs, batch) lie; −1 for those that have been overwritten since."""
        slots = np.empty(ids.shape, dtype=np.int64)
        fill_slots(slots, ids, self.added, self.capacity)
        return slots

    @property
    def state(self):
        """The arrays that a checkpoint holds."""
        return {"added": self.added, "rows": self.rows[:, : int(self.sizes.max())]}

    def restore(self, state):
        """Continue from what `state` was."""
        self.added[:] = state["added"]
        self.rows[:, : state["rows"].shape[1]] = state["rows"]

    def _take(self, slots):
        """The rows in ``slots`` (runs, batch), copied."""
        places = np.empty_like(slots)
        place_rows(places, slots, self.capacity, self._memory, self.rows.itemsize)
        return self._all_rows.take(places)

    def _walk(self, slots):
        """Returns, last slots and steps of the n-step windows that begin in ``slots``."""
        returns = np.empty(slots.shape)
        last_slots, steps = np.empty_like(slots), np.empty_like(slots)
        sum_windows(
            *(self.rows[name] for name in ("reward", "terminated", "truncated")),
            *(self.added, self.environments, slots, self.n_step, self.discount),
            *(returns, last_slots, steps),
        )
        return returns, last_slots, steps


def as_field(name, values, dtype, **counts):
    """``values`` as an array of the axes ``counts`` and then those of ``dtype``, or an error.

    Args:
        dtype: type and inner shape, such as `np.dtype((np.uint8, (4, 84, 84)))`.
        counts: the lengths of the leading axes, such as `runs=1, environments=8`.
    """
    values = np.asarray(values)
    if values.shape != (*counts.values(), *dtype.shape):
        each, given = list(counts)[-1][:-1], (f"{axis} = {n}" for axis, n in counts.items())
        raise ValueError(
            f"{name}: must have the shape {dtype.shape} per {each}, "
            f"got {values.shape} with {', '.join(given)}"
        )
    if dtype.base == np.bool_:
        if values.dtype != np.bool_ and not ((values == 0) | (values == 1)).all():
            raise ValueError(f"{name}: must be True or False, got {values}")
    elif values.dtype != dtype.base and not np.can_cast(values.dtype, dtype.base, "same_kind"):
        raise TypeError(f"{name}: must be {dtype.base}, got {values.dtype}")
    # NaN fails the comparison as well.
    if name == "reward" and not np.abs(values).max(initial=0) <= LARGEST_REWARD:
        raise ValueError(f"reward: must be finite (in {dtype.base}), got {values}")
    return values


def as_shape(name, shape):
    """``shape`` as a tuple of ints of at least 1; a single int is the length of one axis."""
    dimensions = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(whole_number(name, dimension) for dimension in dimensions)
