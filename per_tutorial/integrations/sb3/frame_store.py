"""Observations that are kept once, although two transitions and several stacks contain them.

The next observation of a step is the observation of the step after it, and a stack of 4 frames
shares 3 with the stack before. `replay.storages.frames` keeps each frame once and pads the first
stacks of an episode with black frames. What cannot be rebuilt so is kept here as it came.
"""

import warnings

import numpy as np
from numpy.typing import DTypeLike, NDArray

from per_tutorial.replay.contracts import Slots
from per_tutorial.replay.storages.frames import FrameStore


class ObservationStore(FrameStore):
    """A `FrameStore` for one run, from which all observations come back exactly.

    `add` may be called again for the same step, even with other observations: the last call counts.

    Args:
        steps: how many steps are kept; the oldest is overwritten.
        environments: each has a column; all act in every step.
        stack: frames of an observation; 1: an observation is one frame.
        frame_size: numbers in a frame.
        dtype: of these.

    Attributes:
        whole: {(step, environment): an observation and its next one, (2, stack, frame_size)}, such
            as the first stacks of an episode that repeat its first frame.
    """

    def __init__(
        self, steps: int, environments: int, stack: int, frame_size: int, dtype: DTypeLike
    ) -> None:
        super().__init__(steps, 1, environments, stack, (frame_size,), dtype)
        self.whole: dict[tuple[int, int], NDArray] = {}
        self._unmoved = 0  # steps whose observations were no stacks

    def add(
        self,
        step: int,
        observations: NDArray,
        next_observations: NDArray,
        ended: NDArray[np.bool_],
    ) -> None:
        """Store a step: fields (environments, stack, frame_size), the last frame the newest.

        ``ended`` (environments,): whether the step before ended an episode.
        """
        for column in range(self.columns):
            self.whole.pop((step, column), None)
            self.finals.pop((step, column), None)
        begins = ended | (step == 0)
        if step > 0:
            ahead = self.stacks(self.ids_of(step - 1), ahead=1)[0, :, -1]
            # Also where an environment was reset without an end: `put` overwrites the frame ahead.
            begins |= (observations[:, -1] != ahead).any(axis=1)
            kept = [(step - 1, column) in self.finals for column in range(self.columns)]
            self.keep_final(step - 1, begins & ~np.array(kept), ahead)
        same, moved = self.compare(step, observations, next_observations, begins)
        self._unmoved += not moved.all()
        if self._unmoved == 10 and not moved.all():  # a few may be resets by hand
            warnings.warn(
                f"stack: observations are no stacks of {self.stack} frames, so they are stored in "
                'full; for the colours of one picture, give replay_buffer_kwargs={"stack": 1}',
                stacklevel=4,
            )
        for column in np.flatnonzero(~(same & moved)).tolist():
            self.whole[step, column] = np.stack((observations[column], next_observations[column]))
        self.put(step, observations[:, -1], next_observations[:, -1])
        self.forget(step + 1 - self.steps)

    def observations(self, ids: Slots, ahead: int = 0) -> NDArray:
        """(batch, stack, frame_size): the observations of transitions (1, batch).

        With 1 step ahead, they are the next observations.
        """
        stacks = self.stacks(ids, ahead)[0]
        for k, number in enumerate(ids[0].tolist()):
            place = divmod(number, self.environments)
            if place in self.whole:
                stacks[k] = self.whole[place][ahead]
            elif ahead and place in self.finals:
                stacks[k, -1] = self.finals[place]
        return stacks

    def forget(self, oldest: int) -> None:
        """Forget what steps before the ``oldest`` one left outside the ring."""
        super().forget(oldest)
        while self.whole and (first := next(iter(self.whole)))[0] < oldest:
            del self.whole[first]

    @property
    def nbytes(self) -> int:
        """Bytes of a full ring, and of what is kept outside it so far."""
        outside = [*self.finals.values(), *self.whole.values()]
        return self.frames.nbytes + self.depths.nbytes + sum(each.nbytes for each in outside)
