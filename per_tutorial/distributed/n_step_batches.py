"""N-step transitions on the way from an actor to a memory, with each frame sent and stored once.

An n-step transition from pixels has two stacks of 4 frames, and consecutive transitions share most
of them, so each frame would be sent and stored eight times. Instead, a message contains each frame
once, and stacks are indices of these frames. Index 0 is a black frame, which pads stacks at the
start of an episode.

Each message is self-contained, since any process may be replaced. So the few frames that the
transitions of two messages share are sent twice.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.states import ArraySpec, Schema, State
from per_tutorial.replay.compiling import njit_cached

FrameIndices = NDArray[np.int32]
Stack = tuple[NDArray[np.uint8] | None, ...]  # frames, the oldest first; None: black
MAX_SENT = 100_000  # frames in a message, which never has as many


class NStepBatch(NamedTuple):
    """n-step transitions, each field (n, ...), with discounted sums of rewards and TD errors.

    For pixels, observations are indices (n, stack) of the frames.
    """

    observations: NDArray
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    next_observations: NDArray  # those at the ends of the windows
    terminated: NDArray[np.bool_]
    steps: NDArray[np.int64]  # k: the value of the next observation is discounted by γ^k
    td_errors: NDArray[np.float64]
    frames: NDArray[np.uint8] | None = None  # (m, *frame shape), the first is black


@njit_cached
def use_frames(frame_indices, uses):
    """Count each of `frame_indices` (n,) in `uses`; the black frame is not counted."""
    for index in frame_indices:
        if index > 0:
            uses[index] += 1


@njit_cached
def drop_frames(frame_indices, uses, free, count):
    """Undo `use_frames`; append indices no longer in use to the first `count` of `free`.

    Returns the new count.
    """
    for index in frame_indices:
        if index > 0:
            uses[index] -= 1
            if uses[index] == 0:
                free[count] = index
                count += 1
    return count


class Vectors:
    """Observations that are sent as they are: a copy of each."""

    @staticmethod
    def begin(observation: NDArray) -> NDArray:
        """The first observation of an episode."""
        return observation.copy()

    @staticmethod
    def follow(before: NDArray, observation: NDArray) -> NDArray:
        """The observation after ``before``."""
        return observation.copy()

    @staticmethod
    def pack(
        observations: list[NDArray], following: list[NDArray]
    ) -> tuple[NDArray, NDArray, None]:
        """Both as arrays (n, ...)."""
        return np.array(observations), np.array(following), None


class Stacks:
    """Observations (stack, *frame) that are sent as frame indices; stacks share frame objects."""

    @staticmethod
    def begin(observation: NDArray) -> Stack:
        """The first observation of an episode, with one frame that is not black."""
        return (None,) * (len(observation) - 1) + (observation[-1].copy(),)

    @staticmethod
    def follow(before: Stack, observation: NDArray) -> Stack:
        """The observation after ``before``, with one new frame."""
        return (*before[1:], observation[-1].copy())

    @staticmethod
    def pack(
        observations: list[Stack], following: list[Stack]
    ) -> tuple[FrameIndices, FrameIndices, NDArray[np.uint8]]:
        """Indices (n, stack) of both, and the frames (m, *frame), the first one black."""
        frames: dict[int, NDArray] = {}  # id → frame, in the order of their indices from 1 on
        numbers: dict[int, int] = {id(None): 0}
        for stack in (*observations, *following):
            for frame in stack:
                if frame is not None and id(frame) not in numbers:
                    numbers[id(frame)] = len(numbers)
                    frames[id(frame)] = frame
        frame_indices = np.array(
            [[numbers[id(frame)] for frame in stack] for stack in (*observations, *following)],
            dtype=np.int32,
        )
        packed = np.zeros((len(frames) + 1, *following[0][-1].shape), dtype=np.uint8)  # type: ignore[union-attr]
        for index, frame in enumerate(frames.values(), start=1):
            packed[index] = frame
        return frame_indices[: len(observations)], frame_indices[len(observations) :], packed


class FramePool:
    """Frames, each kept for as long as a stack uses it.

    Args:
        frame_shape: of one frame.
        room: initial capacity in frames; it grows. Memory is allocated when it is written to.

    Attributes:
        frames: (room + 1, *frame_shape) uint8, the first one black.
    """

    def __init__(self, frame_shape: tuple[int, ...], room: int) -> None:
        self.frames = np.zeros((room + 1, *frame_shape), dtype=np.uint8)
        self._uses = np.zeros(room + 1, dtype=np.int32)  # how many stacks use each frame
        # The first `_count` are free indices, taken from the end.
        self._free = np.arange(room, -1, -1, dtype=np.int32)
        self._count = room
        self._most = 16 * room + MAX_SENT  # largest index: bounds the memory that a file can claim

    def __len__(self) -> int:
        """How many frames are stored."""
        return len(self.frames) - 1 - self._count

    def add(self, frames: NDArray[np.uint8], frame_indices: FrameIndices) -> FrameIndices:
        """Store the frames of a message for its stacks.

        Args:
            frames: (m, *frame_shape), the first one black. Those that no stack uses are dropped.
            frame_indices: stacks, as indices of these frames, of any shape.

        Returns:
            The stacks as indices in this pool, of the same shape.
        """
        more = len(frames) - 1
        if more > self._count:
            self._grow(max(more, len(self.frames) // 8))
        mine = np.zeros(len(frames), dtype=np.int32)
        mine[1:] = self._free[self._count - more : self._count]
        self._count -= more
        self.frames[mine[1:]] = frames[1:]
        found = mine[frame_indices]
        use_frames(found.reshape(-1), self._uses)
        idle = mine[1:][self._uses[mine[1:]] == 0]  # of windows beyond the capacity
        self._free[self._count : self._count + len(idle)] = idle
        self._count += len(idle)
        return found

    def drop(self, frame_indices: FrameIndices) -> None:
        """Release the frames of these stacks."""
        frame_indices = np.ascontiguousarray(frame_indices).reshape(-1)
        self._count = int(drop_frames(frame_indices, self._uses, self._free, self._count))

    def stacks(self, frame_indices: FrameIndices) -> NDArray[np.uint8]:
        """The frames at these indices (..., stack): (..., stack, *frame_shape)."""
        return self.frames.take(frame_indices, axis=0)

    def _grow(self, more: int) -> None:
        room = len(self.frames)
        frames = np.zeros((room + more, *self.frames.shape[1:]), dtype=np.uint8)
        frames[:room] = self.frames
        self.frames = frames
        self._uses = np.concatenate((self._uses, np.zeros(more, dtype=np.int32)))
        free = np.zeros(room + more, dtype=np.int32)
        free[:more] = np.arange(room + more - 1, room - 1, -1)
        free[more : more + self._count] = self._free[: self._count]
        self._free, self._count = free, self._count + more

    @property
    def state(self) -> State:
        """The frames in use, and their indices."""
        used = np.flatnonzero(self._uses).astype(np.int32)
        return {"indices": used, "frames": self.frames[used]}

    @property
    def schema(self) -> Schema:
        """What `restore` takes."""
        counts = range(self._most + 1)
        return {
            "indices": ArraySpec(np.int32, (counts,), 1, self._most),
            "frames": ArraySpec(np.uint8, (counts, *self.frames.shape[1:])),
        }

    @staticmethod
    def check(state: State, frame_indices: FrameIndices) -> None:
        """Raise ValueError unless the state holds each frame of these stacks exactly once."""
        used = np.unique(frame_indices[frame_indices != 0])
        if len(state["frames"]) != len(used) or not np.array_equal(state["indices"], used):
            raise ValueError("state: frames must be those of the stored stacks, each once")

    def restore(self, state: State, frame_indices: FrameIndices) -> None:
        """Fill an empty pool from a checked state, for stacks at ``frame_indices``."""
        used = state["indices"]
        if used.size and int(used[-1]) >= len(self.frames):
            self._grow(int(used[-1]) + 1 - len(self.frames))
        self.frames[used] = state["frames"]
        use_frames(np.ascontiguousarray(frame_indices).reshape(-1), self._uses)
        free = np.flatnonzero(self._uses[1:] == 0)[::-1] + 1
        self._free[: len(free)] = free
        self._count = len(free)
