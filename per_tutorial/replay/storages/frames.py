"""A storage for stacks of frames that keeps every frame once (notebook 05).

An agent that plays Atari sees the last 4 frames. A storage of transitions would keep each frame
eight times: in four observations and in four next observations. Here it is stored once, and the
stacks are rebuilt when they are sampled.

E environments take turns in adding to a run, so transition k belongs to environment k % E, and its
predecessor is transition k − E. The newest frame of its observation also has the id k. With E = 3,
in the order of adding:

    transition    0  1  2  |  3  4  5  |  6  7  8  |  9 10 11  |  ...
    environment   0  1  2  |  0  1  2  |  0  1  2  |  0  1  2  |  ...

    observation of transition 10 = frames 1 4 7 10, its next observation = frames 4 7 10 13

If an episode began less than 4 frames ago, the missing frames are black (zeros). In Gymnasium that
is `FrameStackObservation(env, 4, padding_type="zero")`; its default repeats the first frame. Other
stacks could not be rebuilt and are rejected. `FrameReplayBuffer`, for Stable-Baselines3, accepts
both kinds, since that library's wrappers make both: it compares every stack, and stores unchanged
what it could not rebuild.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.states import ArraySpec, Schema, State
from per_tutorial.replay.compiling import njit_cached
from per_tutorial.replay.contracts import Fields, Slots, Transition
from per_tutorial.replay.ring import NO_SLOT
from per_tutorial.replay.storages.ring import RingStorage, as_field, as_shape

LARGEST_STACK = 255  # a row counts the frames of its stack in one byte


@njit_cached
def find_stacks(newest, depths, stride, ring, indices):
    """Write into `indices` (runs, batch, stack) the rows of the frames of stacks, oldest first.

    `newest` (runs, batch) are the ids of their newest frames, and `depths` the number of frames of
    each. These are `stride` apart in the ring of `ring` frames of their run. Frames before the
    episode are NO_SLOT.
    """
    runs, batch, stack = indices.shape
    for run in range(runs):
        for k in range(batch):
            for back in range(stack):
                frame = run * ring + (newest[run, k] - back * stride) % ring
                indices[run, k, stack - 1 - back] = frame if back < depths[run, k] else NO_SLOT


@njit_cached
def first_unlike(stacks, next_stacks, begins, frames, indices):
    """The first of `stacks` that differs from what will be rebuilt, or −1 if there is none.

    `stacks` and `next_stacks` are (n, stack, pixels), `begins` (n,), `frames` (all, pixels) uint8,
    and `indices` (n, stack) those of the rebuilt frames. The first frame of an episode may be any.
    """
    n, stack, pixels = stacks.shape
    for k in range(n):
        unlike = np.uint8(0)  # no early exit, so that the loops are vectorised
        for j in range(stack):
            if j < stack - 1 or not begins[k]:
                for pixel in range(pixels):
                    unlike |= stacks[k, j, pixel] ^ frames[indices[k, j], pixel]
            if j > 0:
                for pixel in range(pixels):
                    unlike |= stacks[k, j, pixel] ^ next_stacks[k, j - 1, pixel]
        if unlike:
            return k
    return -1


class FrameWrite(NamedTuple):
    """A step of every environment, prepared for a `FrameStorage`; (runs, environments) each."""

    slots: Slots
    added: NDArray[np.int64]  # (runs,)
    rows: NDArray
    frames: NDArray[np.uint8]  # the newest of each observation …
    next_frames: NDArray[np.uint8]  # … and of each next one
    indices: NDArray[np.int64]  # of `frames`
    next_indices: NDArray[np.int64]


class FrameStorage(RingStorage):
    """Ring buffers of transitions between stacks of frames, one per run; keeps each frame once.

    Args:
        capacity: transitions kept for each run; the oldest is overwritten.
        observation_shape: (stack, *frame shape), such as (4, 84, 84).
        runs: number of runs.
        environments: environments that feed each run; all add a transition in every step.
        n_step, discount: see `n_step_transitions`.

    Attributes:
        rows: (runs, capacity): action, reward, terminated, truncated, and depth, the number of
            frames in the observation that belong to its episode.
        frames: (frames, *frame shape) uint8, `frame_capacity` for each run, then a black frame.
        final_frames: {(run, slot): the last frame of the episode that ended with that transition}.

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
        self.stack, *frame_shape = shape
        row = [
            ("action", np.int64),
            ("reward", np.float32),
            ("terminated", np.bool_),
            ("truncated", np.bool_),
            ("depth", np.uint8),
        ]
        super().__init__(capacity, row, runs, n_step, discount, environments)
        self.settings["observation_shape"] = [self.stack, *frame_shape]
        observation = np.dtype((np.uint8, (self.stack, *frame_shape)))
        self._dtypes = {"observation": observation, "next_observation": observation}
        self._dtypes |= {name: self.rows.dtype[name] for name in self.rows.dtype.names}
        # The oldest transition needs the stack − 1 frames before its own, the newest step the
        # frames after it: E·(stack − 1) and E frames more than transitions.
        self.frame_capacity = self.capacity + self.environments * self.stack
        self.frames = np.zeros((self.runs * self.frame_capacity + 1, *frame_shape), dtype=np.uint8)
        self.final_frames: dict[tuple[int, int], NDArray[np.uint8]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"frames": self._written_frames}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        super().__setstate__(kept)
        written = kept["frames"]
        self.frames = np.zeros(
            (self.runs * self.frame_capacity + 1, *written.shape[2:]), dtype=np.uint8
        )
        self._rings[:, : written.shape[1]] = written

    @property
    def leading_axes(self) -> tuple[int, ...]:
        """The leading axes of fields that are added."""
        return (self.runs, self.environments)

    def prepare(
        self, transition: Fields, valid: ArrayLike | None = None, *, stacked: bool = True
    ) -> FrameWrite:
        """Prepare to write one transition of every environment.

        Fields are shaped (runs, environments, ...), or (environments, ...) if not ``stacked``. Only
        the newest frame of each stack is copied; the others are stored already. Raises ValueError
        or TypeError for a field that does not fit, or for a stack that could not be rebuilt.
        """
        if valid is not None and not np.all(valid):
            raise ValueError(
                "valid: frames need a transition of every environment in every step "
                f"(SAME_STEP autoreset), got {valid}"
            )
        if transition[5] is False:
            nowhere = np.zeros(self.leading_axes[not stacked :], dtype=bool)
            transition = (*transition[:5], nowhere)
        counts = {"runs": self.runs} if stacked else {}
        counts["environments"] = self.environments
        fields = {}
        for name, values in zip(Transition._fields, transition, strict=True):
            array = as_field(name, values, self._dtypes[name], **counts)
            fields[name] = array if stacked else array[None]
        ids = self.ring.added[:, None] + np.arange(self.environments)
        before = self._take((ids - self.environments) % self.capacity)
        begins = before["terminated"] | before["truncated"] | (ids < self.environments)
        rows = np.zeros(before.shape, before.dtype)  # with zeros between fields, too
        for name in ("action", "reward", "terminated", "truncated"):
            rows[name] = fields[name]
        rows["depth"] = np.where(begins, 1, np.minimum(before["depth"], self.stack - 1) + 1)
        stacks = fields["observation"], fields["next_observation"]
        self._refuse_other_frames(ids, rows["depth"], begins, *stacks)
        return FrameWrite(
            slots=ids % self.capacity,
            added=self.ring.added + self.environments,
            rows=rows,
            frames=fields["observation"][:, :, -1].copy(),
            next_frames=fields["next_observation"][:, :, -1].copy(),
            indices=self._indices(ids),
            next_indices=self._indices(ids + self.environments),
        )

    def _refuse_other_frames(
        self,
        ids: NDArray[np.int64],
        depths: NDArray[np.uint8],
        begins: NDArray[np.bool_],
        *stacks: NDArray,
    ) -> None:
        """Raise ValueError unless these stacks and the next ones equal what will be rebuilt."""
        frames = self.frames.reshape(len(self.frames), -1)
        shape = (-1, self.stack, frames.shape[1])
        now, following = (each.astype(np.uint8, copy=False).reshape(shape) for each in stacks)
        indices = np.empty((*ids.shape, self.stack), dtype=np.int64)
        find_stacks(ids, depths, self.environments, self.frame_capacity, indices)
        k = first_unlike(
            now, following, begins.reshape(-1), frames, indices.reshape(-1, self.stack)
        )
        if k < 0:
            return
        run, environment = divmod(k, self.environments)
        allowed = (
            "black except for the newest frame, since an episode begins (in Gymnasium, "
            'FrameStackObservation with padding_type="zero")'
            if begins[run, environment]
            else "the last next_observation, since its episode continues (when you reset the "
            "environments, call truncate_episodes; if a step was not added, do both)"
        )
        raise ValueError(
            f"observation: must be {allowed}, and next_observation the same frames shifted by "
            f"one; got other frames from environment {environment} of run {run}"
        )

    def commit(self, write: FrameWrite) -> None:
        """Write what was prepared. A second call writes the same to the same slots."""
        np.put_along_axis(self.rows, write.slots, write.rows, axis=1)
        # The next frame is written ahead, so that the newest transition is complete. If the episode
        # has ended, the first frame of the next one will overwrite it.
        self.frames[write.indices] = write.frames
        self.frames[write.next_indices] = write.next_frames
        for (run, _), slot in np.ndenumerate(write.slots):
            self.final_frames.pop((run, int(slot)), None)
        ended = write.rows["terminated"] | write.rows["truncated"]
        self._keep_final_frames(write.slots, write.next_frames, ended)
        self.ring.added[:] = write.added

    def n_step_transitions(self, slots: Slots) -> tuple[dict[str, NDArray], NDArray[np.int64]]:
        """The n-step transitions that start in ``slots`` (runs, batch), a dict of arrays, and k.

        Each spans k ≤ n_step steps, as in `TransitionStorage.n_step_transitions`.
        """
        rows = self._take(slots)
        returns, last_slots, steps = self._walk(slots)
        last = self._take(last_slots)
        # One array for both: the allocator reuses one large block for the next batch.
        indices = np.empty((2, *slots.shape, self.stack), dtype=np.int64)
        ring = (self.environments, self.frame_capacity)
        find_stacks(self.ring.ids(slots), rows["depth"], *ring, indices[0])
        next_frames = self.ring.ids(last_slots) + self.environments
        find_stacks(next_frames, last["depth"] + 1, *ring, indices[1])
        stacks = self.frames.take(indices, axis=0)
        for run, k in np.argwhere(last["terminated"] | last["truncated"]):
            stacks[1, run, k, -1] = self.final_frames[run, last_slots[run, k]]
        return {
            "observation": stacks[0],
            "action": rows["action"],
            "reward": returns.astype(np.float32),
            "next_observation": stacks[1],
            "terminated": last["terminated"],
            "truncated": last["truncated"],
        }, steps

    def truncate_episodes(self) -> Slots:
        """Mark the running episodes as truncated, before their environments are reset.

        Returns the newest slots (runs, environments), `NO_SLOT` where nothing was added.
        """
        slots = self.ring.newest(self.environments)
        if self.ring.added[0] == 0:
            return slots
        rows = self._take(slots)
        running = ~(rows["terminated"] | rows["truncated"])
        rows["truncated"] |= running
        next_frames = self.frames[
            self._indices(self.ring.added[:, None] + np.arange(self.environments))
        ]
        self._keep_final_frames(slots, next_frames, running)
        np.put_along_axis(self.rows, slots, rows, axis=1)
        return slots

    @property
    def state(self) -> State:
        """The arrays that a checkpoint holds."""
        shape = self.frames.shape[1:]
        keys = np.array(list(self.final_frames), dtype=np.int64)
        frames = np.array(list(self.final_frames.values()), dtype=np.uint8)
        return {
            **super().state,
            "frames": self._written_frames,
            "final_keys": keys.reshape(-1, 2),
            "final_frames": frames.reshape(-1, *shape),
        }

    @property
    def schema(self) -> Schema:
        """What `restore` takes."""
        shape, ends = self.frames.shape[1:], range(self.runs * self.capacity + 1)
        return {
            **super().schema,
            "frames": ArraySpec(np.uint8, (self.runs, range(self.frame_capacity + 1), *shape)),
            "final_keys": ArraySpec(np.int64, (ends, 2), 0),
            "final_frames": ArraySpec(np.uint8, (ends, *shape)),
        }

    def check(self, state: State) -> NDArray[np.int64]:
        """As in `RingStorage`; also checks depths, the number of frames, and that exactly the
        stored transitions that ended an episode have a final frame.
        """
        sizes = super().check(state)
        added, rows = state["added"], state["rows"]
        if (added != added[0]).any() or added[0] % self.environments:
            raise ValueError("state: added must be whole steps of all environments")
        if not ((rows["depth"] >= 1) & (rows["depth"] <= self.stack)).all():
            raise ValueError(f"state: depth must be in [1, {self.stack}] everywhere")
        written = min(int(added[0]) + self.environments, self.frame_capacity)
        if state["frames"].shape[1] != written:
            raise ValueError(
                f"state: frames must be {written} for each run, got {state['frames'].shape[1]}"
            )
        ends = np.argwhere(rows["terminated"] | rows["truncated"])
        keys = sorted(map(tuple, state["final_keys"].tolist()))
        if keys != sorted(map(tuple, ends.tolist())) or len(keys) != len(state["final_frames"]):
            raise ValueError("state: final_frames must belong to the episodes that ended, one each")
        return sizes

    def restore(self, state: State) -> None:
        """Continue from a checked state."""
        super().restore(state)
        frames = state["frames"]
        self._rings[:, : frames.shape[1]] = frames
        self._rings[:, frames.shape[1] :] = 0
        keys = ((run, slot) for run, slot in state["final_keys"].tolist())
        self.final_frames = dict(zip(keys, state["final_frames"].copy(), strict=True))

    @property
    def _rings(self) -> NDArray[np.uint8]:
        return self.frames[:-1].reshape(self.runs, self.frame_capacity, *self.frames.shape[1:])

    @property
    def _written_frames(self) -> NDArray[np.uint8]:
        """(runs, frames, *frame shape): those written so far, the next ones included."""
        return self._rings[
            :, : min(int(self.ring.added[0]) + self.environments, self.frame_capacity)
        ]

    def _indices(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows in `frames` of these ids (runs, environments)."""
        return np.arange(self.runs)[:, None] * self.frame_capacity + ids % self.frame_capacity

    def _keep_final_frames(self, slots: Slots, next_frames: NDArray, ended: NDArray) -> None:
        """Keep the frames after ``slots`` where episodes ``ended``; both (runs, environments)."""
        for run, k in np.argwhere(ended).tolist():
            self.final_frames[run, int(slots[run, k])] = next_frames[run, k].copy()
