"""Observations stored once, although two transitions and several stacks contain them.

The next observation of a step is the observation of the step after it, and a stack of 4 frames
shares 3 with the stack before. So a step adds one frame to a ring, and observations are rebuilt
when they are sampled. With a stack of 4 and one environment:

    observation of step 10 = frames 7 8 9 10, its next observation = frames 8 9 10 11

Every observation is compared with the expected one, and frames that cannot be rebuilt are kept in
two dicts: the padding of an episode's first stack (such as copies of the first frame; black frames
need no memory), and the last observation of an episode. So observations come back as they were.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from per_tutorial.integrations.sb3.arrays import grown
from per_tutorial.replay.contracts import Slots
from per_tutorial.replay.storages.frames import find_stacks


class FrameStore:
    """A ring of frames for each environment, from which stacks of `stack` frames are rebuilt.

    Steps are counted from 0, and every environment acts in each. `add` may be called again for the
    same step, even with other observations: the last call counts.

    Args:
        steps: how many steps are kept; the oldest is overwritten.
        environments: E.
        frame_size: numbers in a frame.
        dtype: of these.
        stack: frames of an observation; 1: an observation is one frame.
    """

    def __init__(
        self, steps: int, environments: int, frame_size: int, dtype: DTypeLike, stack: int
    ) -> None:
        self.stack = stack
        self.environments = environments
        # The oldest step needs the stack − 1 frames before it.
        self.rows = steps + stack - 1
        self.frames = np.zeros((self.rows, environments, frame_size), dtype)
        # How many frames of an observation are in the ring: those of its episode, at most `stack`.
        self.depths = np.zeros((self.rows, environments), dtype=np.int32)
        # The padding of an episode's first stack, unless black.
        self.older: dict[tuple[int, int], NDArray] = {}
        self.has_final = np.zeros((self.rows, environments), dtype=bool)
        self.finals: dict[tuple[int, int], NDArray] = {}  # the newest frame, or the whole stack
        # The next observations of the newest step and the one before, by step % 2, and whether they
        # are the observation shifted by one frame.
        self.newest = np.zeros((2, environments, stack, frame_size), dtype)
        self.moved_on = np.zeros((2, environments), dtype=bool)

    def add(
        self, step: int, observations: NDArray, next_observations: NDArray
    ) -> NDArray[np.bool_]:
        """Store a step; both fields are (environments, stack, frame_size).

        Returns (environments,): whether the observation shares its frames with the step before.
        """
        row, now, before = step % self.rows, step % 2, (step - 1) % 2
        for key in ((row, environment) for environment in range(self.environments)):
            self.older.pop(key, None)
            self.finals.pop(key, None)
        self.has_final[row] = False
        continues = self._continues(step, observations)
        depths = np.minimum(self.depths[(step - 1) % self.rows], self.stack - 1) + 1
        self.depths[row] = np.where(continues, depths, 1)
        self.has_final[(step - 1) % self.rows] = ~continues if step > 0 else False
        for environment in np.flatnonzero(~continues).tolist():
            if step > 0:
                frames = 1 if self.moved_on[before, environment] else self.stack
                final = self.newest[before, environment, -frames:].copy()
                self.finals[(step - 1) % self.rows, environment] = final
            self._keep_older(row, environment, observations[environment])
        self.frames[row] = observations[:, -1]
        self.newest[now] = next_observations
        self.moved_on[now] = _equal(next_observations[:, :-1], observations[:, 1:])
        return continues

    def observations(self, steps: Slots, environments: Slots) -> NDArray:
        """(batch, stack, frame_size): the observations of steps that are stored."""
        # The row after the newest step may be empty: `next_observations` uses `newest` instead.
        depths = np.maximum(self.depths[steps % self.rows, environments], 1)
        frames = self.frames.reshape(-1, self.frames.shape[-1])
        indices = np.empty((1, len(steps), self.stack), dtype=np.int64)
        ids = steps * self.environments + environments  # as in `FrameStorage`
        find_stacks(ids[None], self.environments, 0, self.depths, indices)
        stacks = frames.take(indices[0], axis=0)
        for k in np.flatnonzero(depths < self.stack).tolist():
            depth = int(depths[k])
            first = (int(steps[k] - depth + 1) % self.rows, int(environments[k]))
            older = self.older.get(first)
            stacks[k, : self.stack - depth] = 0 if older is None else older[depth - 1 :]
        return stacks

    def next_observations(self, steps: Slots, environments: Slots, newest: int) -> NDArray:
        """(batch, stack, frame_size): the next observations; ``newest`` is the last step added."""
        stacks = self.observations(steps + 1, environments)
        last = steps == newest
        if last.any():
            stacks[last] = self.newest[newest % 2, environments[last]]
        rows = steps % self.rows
        ended = np.flatnonzero(self.has_final[rows, environments] & ~last)
        if len(ended):
            before = self.observations(steps[ended], environments[ended])
            stacks[ended, :-1] = before[:, 1:]
            for k in ended.tolist():
                final = self.finals[int(rows[k]), int(environments[k])]
                stacks[k, -len(final) :] = final
        return stacks

    @property
    def nbytes(self) -> int:
        """Bytes of a full ring, and of the two dicts so far."""
        ends = [*self.older.values(), *self.finals.values()]
        # Padding that repeats one frame holds it once, with stride 0.
        kept = sum(one.nbytes if one.strides[0] else one[0].nbytes for one in ends)
        return self.frames.nbytes + self.depths.nbytes + self.has_final.nbytes + kept

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles leave out empty rows, whose depth is 0."""
        written = int((self.depths[:, 0] > 0).sum())
        return vars(self) | {"frames": self.frames[:written]}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self.frames = grown(kept["frames"], self.rows)

    def _continues(self, step: int, observations: NDArray) -> NDArray[np.bool_]:
        """Whether each observation is the next observation of the step before."""
        if step == 0:
            return np.zeros(self.environments, dtype=bool)
        before = (step - 1) % 2
        return self.moved_on[before] & _equal(self.newest[before], observations)

    def _keep_older(self, row: int, environment: int, observation: NDArray) -> None:
        older = observation[:-1]
        if not older.any():  # black ones need no memory, and a stack of 1 has no older frames
            return
        if (older == observation[-1]).all():  # one copy is enough
            self.older[row, environment] = np.broadcast_to(observation[-1].copy(), older.shape)
        else:
            self.older[row, environment] = older.copy()


def _equal(some: NDArray, others: NDArray) -> NDArray[np.bool_]:
    """(environments,): whether all numbers are equal; NaN equals nothing."""
    return (some == others).reshape(len(some), -1).all(axis=1)
