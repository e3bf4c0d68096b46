"""Stacks of frames, of which every frame is kept once (notebook 05).

An agent that plays Atari sees the last 4 frames. A storage of transitions would keep each frame
eight times: in four observations and in four next observations. Here it is kept once, and stacks
are rebuilt when they are sampled.

Each environment has a *column* of frames (`FrameStore`): the newest frame of its observation in
step t is in row t. With E environments, which take turns in adding to a run, transition k belongs
to step k // E and environment k % E:

    observation of step 10 = frames 7 8 9 10, its next observation = frames 8 9 10 11

If an episode began less than 4 frames ago, the missing frames are black (zeros). In Gymnasium that
is `FrameStackObservation(env, 4, padding_type="zero")`; its default repeats the first frame.
`FrameStorage` rejects other stacks, since they could not be rebuilt.
"""

from __future__ import annotations  # so that `help` shows ArrayLike as a name

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from per_tutorial.common.files import AnyArray, require_like
from per_tutorial.common.memory import promise_memory
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Fields, Ints, Singles, Slots, State
from per_tutorial.replay.ring import NO_SLOT
from per_tutorial.replay.storages.fields import as_shape
from per_tutorial.replay.storages.rows import OBSERVATIONS, RowStorage, as_words

LARGEST_STACK = 255  # the frames of a stack are counted in one byte


@njit_cached
def find_stacks(ids, environments, ahead, depths, indices):
    """Write into `indices` (runs, batch, stack) which frames make up stacks, the oldest first.

    `ids` (runs, batch) are of transitions. `ahead` 0 means their observations, and 1 their next
    observations, if episodes go on. `depths` is (rows, columns); frames before an episode are
    NO_SLOT.
    """
    rows, columns = depths.shape
    runs, batch, stack = indices.shape
    for run in range(runs):
        for k in range(batch):
            step, column = ids[run, k] // environments, ids[run, k] % environments
            column += run * environments
            depth = depths[step % rows, column] + ahead
            for back in range(stack):
                frame = (step + ahead - back) % rows * columns + column
                indices[run, k, stack - 1 - back] = frame if back < depth else NO_SLOT


class FrameStore:
    """Frames of several environments, one column each, from which stacks are rebuilt.

    Steps are counted from 0, and every environment acts in each. A step's frame is written, and the
    next one ahead of its step, before its owner counts the step: an interrupted `put` is repeated.

    Args:
        steps: how many are kept; the oldest is overwritten.
        runs, environments: environment e of run r has the column r · environments + e.
        stack: frames of an observation.
        frame_shape: shape of a frame.
        dtype: of its numbers.

    Attributes:
        frames: (rows · columns + 1, *frame_shape), row after row; the last one is black.
        depths: (rows, columns), how many frames of a step's stack belong to its episode.
        kept: of observations, and of next ones, {(step, column): the newest frames}, where the
            ring has others: the last frame of an episode, or all of what is no such stack.
    """

    def __init__(
        self,
        steps: int,
        runs: int,
        environments: int,
        stack: int,
        frame_shape: tuple[int, ...],
        dtype: DTypeLike = np.uint8,
    ) -> None:
        self.steps, self.stack = steps, stack
        self.runs, self.environments = runs, environments
        # The oldest step needs the stack − 1 frames before its own; a step that is being added
        # overwrites neither these nor the frame ahead of the newest one.
        self.rows, self.columns = steps + stack + 1, runs * environments
        count, frame = self.rows * self.columns + 1, np.dtype((dtype, frame_shape))
        promise_memory(self, "capacity", count * frame.itemsize)
        self.frames: NDArray = np.zeros(count, frame)
        self.depths = np.zeros((self.rows, self.columns), dtype=np.uint8)
        self.kept: tuple[dict[tuple[int, int], NDArray], ...] = {}, {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out frames that were never written."""
        rows = int(self.depths.any(axis=1).sum()) + 1  # with the one ahead of the newest step
        return vars(self) | {"frames": self.frames[: rows * self.columns]}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        written = self.frames
        self.frames = np.zeros((self.rows * self.columns + 1, *written.shape[1:]), written.dtype)
        self.frames[: len(written)] = written

    def compare(
        self, step: int, stacks: NDArray, next_stacks: NDArray, begins: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(columns,) each: whether stacks (columns, stack, ...) are as they will be rebuilt.

        The second array says whether the next ones are the same frames, shifted by one.

        Args:
            step: the one that is about to be `put`.
            begins: (columns,) where an episode begins, so that the newest frame may be any.
        """
        before = np.minimum(self.depths[(step - 1) % self.rows], self.stack - 1)
        self.depths[step % self.rows] = np.where(begins, 1, before + 1)  # not in use yet
        same = self.stacks(self.ids_of(step)).reshape(stacks.shape) == stacks
        same[begins, -1] = True
        shifted = stacks[:, 1:] == next_stacks[:, :-1]
        rest = tuple(range(1, stacks.ndim))
        return same.all(axis=rest), shifted.all(axis=rest)

    def put(self, step: int, frames: NDArray, next_frames: NDArray) -> None:
        """Write the newest frames (columns, ...) of a step, and the next ones ahead of them."""
        rows = self.frames[:-1].reshape(self.rows, self.columns, *self.frames.shape[1:])
        rows[step % self.rows] = frames
        rows[(step + 1) % self.rows] = next_frames

    def keep(self, step: int, columns: NDArray[np.bool_], frames: NDArray, ahead: int) -> None:
        """Keep the newest ``frames`` (columns, n, ...) of a step, in the ``columns`` that are True.

        With 1 step ahead, those of the next observation. What is kept already stays.
        """
        for column in np.flatnonzero(columns).tolist():
            self.kept[ahead].setdefault((step, column), frames[column].copy())

    def forget(self, step: int) -> None:
        """Before a `put`: forget what is kept of steps that are not stored, or were interrupted."""
        for kept in self.kept:  # in order of steps
            while kept and (first := next(iter(kept)))[0] < step - self.steps:
                del kept[first]
            while kept and next(reversed(kept))[0] >= step:
                kept.popitem()

    def stacks(self, ids: Slots, ahead: int = 0, ends: Slots | None = None) -> NDArray:
        """(runs, n, stack, *frame_shape): the observations of transitions (runs, n).

        With 1 step ahead, they are the next observations. If frames are kept only where episodes
        end, ``ends`` saves time: the (run, place) of these transitions, (m, 2); None: any.
        """
        indices = np.empty((*ids.shape, self.stack), dtype=np.int64)
        find_stacks(ids, self.environments, ahead, self.depths, indices)
        stacks, kept = self.frames.take(indices, axis=0), self.kept[ahead]
        if kept:
            numbers = ids.tolist()
            for run, k in product(*map(range, ids.shape)) if ends is None else ends.tolist():
                step, environment = divmod(numbers[run][k], self.environments)
                frames = kept.get((step, run * self.environments + environment))
                if frames is not None:
                    stacks[run, k, -len(frames) :] = frames
        return stacks

    def ids_of(self, step: int) -> Ints:
        """(runs, environments): the ids of the transitions of a step."""
        ids = step * self.environments + np.arange(self.environments)
        return np.broadcast_to(ids, (self.runs, self.environments))


class FrameStorage(RowStorage):
    """Ring buffers of transitions between stacks of frames, one per run; keeps each frame once.

    Args:
        capacity: transitions kept for each run; the oldest is overwritten.
        observation_shape: (stack, *frame shape), such as (4, 84, 84).
        runs: number of runs.
        environments: environments that feed each run; all add a transition in every step.
        n_step, discount: see `n_step_transitions`.

    Attributes:
        rows: (runs, capacity): action, reward, terminated and truncated.
        store: the `FrameStore`.

    Example:
        >>> import numpy as np
        >>> from per_tutorial import FrameStorage, Replay
        >>> from per_tutorial.replay import ProportionalSampler
        >>> storage = FrameStorage(1000, (4, 84, 84))
        >>> replay = Replay(storage, ProportionalSampler(1000, seeds=[0]))
        >>> screen = np.zeros((5, 84, 84), dtype=np.uint8)
        >>> replay.add([screen[:4]], [2], [0.0], [screen[1:]], [False], [False])  # one environment
        >>> replay.sample(1).observations.shape
        (1, 4, 84, 84)
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: tuple[int, ...],
        runs: int = 1,
        *,
        environments: int = 1,
        n_step: int = 1,
        discount: float = 0.99,
    ) -> None:
        shape = as_shape("observation_shape", observation_shape)
        if not shape or not 1 <= shape[0] <= LARGEST_STACK:
            raise ValueError(
                "observation_shape: must be (stack, *frame shape) with 1 to "
                f"{LARGEST_STACK} frames in a stack, got {shape}"
            )
        row = [
            ("action", np.int64),
            ("reward", np.float32),
            ("terminated", np.bool_),
            ("truncated", np.bool_),
        ]
        super().__init__(capacity, row, runs, n_step, discount, environments)
        self.leading_axes = (self.runs, self.environments)
        self.settings["observation_shape"] = list(shape)
        observation = np.dtype((np.uint8, shape))
        self._dtypes |= {"observation": observation, "next_observation": observation}
        steps = -(-self.capacity // self.environments)
        self.store = FrameStore(steps, self.runs, self.environments, shape[0], shape[1:])

    def add(self, transition: Fields, *, axis_of_runs: bool = True) -> Slots:
        """Store one transition of every environment; return their slots (runs, environments).

        Fields are shaped (runs, environments, ...), without the first axis if not ``axis_of_runs``.
        Only the newest frame of each stack is copied; the others are stored already. Raises
        ValueError or TypeError for a field that does not fit, or a stack that could not be rebuilt.
        """
        fields = self._fields(transition, axis_of_runs, environments=self.environments)
        store, step = self.store, self._step
        store.forget(step)
        every = (store.columns, *self._dtypes["observation"].shape)
        stacks, next_stacks = (fields[name].reshape(every) for name in OBSERVATIONS)
        same, moved = store.compare(step, stacks, next_stacks, self._ended(step - 1))
        if not (same & moved).all():
            run, environment = divmod(int((same & moved).argmin()), self.environments)
            raise ValueError(
                "observation: must be the last next_observation, or, where an episode begins, "
                "black except for the newest frame (in Gymnasium, FrameStackObservation with "
                'padding_type="zero"), and next_observation the same frames shifted by one (when '
                "you reset the environments, call truncate_episodes; if a step was not added, do "
                f"both); got other frames from environment {environment} of run {run}"
            )
        rows: NDArray = np.zeros(self.leading_axes, self.rows.dtype)
        for name in ("action", "reward", "terminated", "truncated"):
            rows[name] = fields[name]
        ended = (rows["terminated"] | rows["truncated"]).reshape(-1)
        # All frames are there before the step is counted. What they overwrite is no longer needed.
        store.keep(step, ended, next_stacks[:, -1:], ahead=1)
        store.put(step, stacks[:, -1], next_stacks[:, -1])
        return self._write(as_words(rows), self.environments)

    def n_step_transitions(self, slots: Slots) -> tuple[dict[str, NDArray], Singles]:
        """The n-step transitions that start in ``slots`` (runs, batch), a dict, and discounts.

        They are those of `TransitionStorage.n_step_transitions`.
        """
        rows = self._take(slots)
        returns, last_slots, last, discounts = self._walk(slots)
        ids, last_ids = self.ring.ids(slots), self.ring.ids(last_slots)
        ends = np.argwhere(last["terminated"] | last["truncated"])
        return {
            "observation": self.store.stacks(ids),
            "action": rows["action"],
            "reward": returns.astype(np.float32),
            "next_observation": self.store.stacks(last_ids, ahead=1, ends=ends),
            "terminated": last["terminated"],
            "truncated": last["truncated"],
        }, discounts

    def truncate_episodes(self) -> None:
        """Mark the running episodes as truncated, before their environments are reset."""
        step = self._step - 1
        running = ~self._ended(step)  # none before the first step
        self.store.forget(step + 1)
        following = self.store.stacks(self.store.ids_of(step), ahead=1)[:, :, -1:]
        self.store.keep(step, running, following.reshape(-1, *following.shape[2:]), ahead=1)
        slots = self.ring.since(self.ring.count - self.environments)[0]
        self.rows["truncated"][:, slots] |= running.reshape(self.leading_axes)

    @property
    def state(self) -> State:
        """The arrays that a checkpoint holds."""
        finals, shape = self.store.kept[1], self.store.frames.shape[1:]
        return super().state | {
            "final_places": np.array(list(finals), dtype=np.int64).reshape(-1, 2),
            "final_frames": np.array(list(finals.values()), dtype=np.uint8).reshape(-1, *shape),
        }

    def check(self, state: Mapping[str, AnyArray]) -> None:
        """Raise ValueError, "state: …", unless `restore` accepts this state."""
        super().check(state)
        count = getattr(state.get("final_places"), "shape", ())[:1]
        own = {
            "final_places": np.empty((*count, 2), dtype=np.int64),
            "final_frames": np.empty((*count, *self.store.frames.shape[1:]), dtype=np.uint8),
        }
        require_like(own, state)

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a checked state."""
        super().restore(state)
        places = map(tuple, np.asarray(state["final_places"]).tolist())
        frames = (frame[None].copy() for frame in np.asarray(state["final_frames"]))
        self.store.kept = {}, dict(zip(places, frames, strict=True))

    def _arrays(self, added: Ints) -> State:
        rows = min(int(added[0]) // self.environments + 1, self.store.rows)  # ever written
        frames = self.store.frames[: rows * self.store.columns]
        return super()._arrays(added) | {"frames": frames, "depths": self.store.depths}

    @property
    def _step(self) -> int:
        """The step that is added next."""
        return self.ring.count // self.environments

    def _ended(self, step: int) -> NDArray[np.bool_]:
        """(columns,): whether an episode ended with a step; True before the first one."""
        if step < 0:
            return np.ones(self.store.columns, dtype=bool)
        slots = (step * self.environments + np.arange(self.environments)) % self.capacity
        rows = self.rows[:, slots]
        return (rows["terminated"] | rows["truncated"]).reshape(-1)
