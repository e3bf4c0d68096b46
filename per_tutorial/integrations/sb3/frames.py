"""Stable-Baselines3's replay buffer for stacked pictures: a million Atari steps in 7 GB.

The next observation of a step is the observation of the step after it, and a stack of 4 frames
shares 3 with the stack before. `replay.storages.frames` keeps each frame once and pads the first
stacks of an episode with black frames. What cannot be rebuilt so is kept here as it came.
"""

import math
import warnings
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.preprocessing import is_image_space_channels_first

from per_tutorial.common.arguments import whole_number
from per_tutorial.integrations.sb3.buffers import PrioritizedReplayBuffer
from per_tutorial.replay.storages.frames import LARGEST_STACK, FrameStore


class FrameReplayBuffer(PrioritizedReplayBuffer):
    """`PrioritizedReplayBuffer` for stacks of frames (`VecFrameStack`), each frame kept once.

    SB3 stores a frame of a stack of 4 eight times: in 4 observations and in 4 next observations.
    Here, observations come back exactly as they were added. The first stacks of an episode cost
    nothing more where they are padded with black frames, as by SB3's `VecFrameStack`; other ones,
    such as copies of the first frame in Gymnasium's `FrameStackObservation`, are stored in full.
    So are observations that are not stacks at all, such as the channels of one colour picture: for
    these, give ``stack=1``; a warning says so.

    Args:
        stack: how many frames are stacked on the channel axis, the oldest first; None: one for each
            channel. It is 4 for 4 colour frames, which have 12 channels, and 1 for a single one.
        optimize_memory_usage: either way, each frame is kept once.
        others: as in `PrioritizedReplayBuffer`.

    Raises:
        ValueError: observations are no pictures with the channels first, or `stack` does not
            divide the channels.

    Example:
        >>> from gymnasium.spaces import Box, Discrete
        >>> from per_tutorial.integrations.sb3 import FrameReplayBuffer
        >>> buffer = FrameReplayBuffer(9, Box(0, 255, (4, 84, 84), "uint8"), Discrete(2), "cpu")
        >>> seen = np.zeros((1, 4, 84, 84), np.uint8)
        >>> buffer.add(seen, seen, np.array([1]), np.array([0.5]), np.array([False]), [{}])
        >>> buffer.sample(2).observations.shape
        torch.Size([2, 4, 84, 84])
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        stack: int | None = None,
        n_steps: int = 1,
        gamma: float = 0.99,
        sampler: str = "proportional",
        alpha: float | None = None,
        priority_epsilon: float | None = None,
        normalize: str | None = None,
        sort_every: int | None = None,
        kappa: float | None = None,
        seed: int | None = None,
    ) -> None:
        if (
            not isinstance(observation_space, spaces.Box)
            or len(observation_space.shape) != 3
            or not is_image_space_channels_first(observation_space)
        ):
            raise ValueError(
                "observation_space: must be a Box of the shape (channels, height, width), as SB3 "
                f"makes pictures, got {observation_space}"
            )
        channels = observation_space.shape[0]
        self.stack = whole_number("stack", channels if stack is None else stack, 1, LARGEST_STACK)
        if channels % self.stack:
            raise ValueError(f"stack: must divide the number of channels, {channels}, got {stack}")
        super().__init__(
            *(buffer_size, observation_space, action_space, device, n_envs),
            handle_timeout_termination=handle_timeout_termination,
            n_steps=n_steps,
            gamma=gamma,
            sampler=sampler,
            alpha=alpha,
            priority_epsilon=priority_epsilon,
            normalize=normalize,
            sort_every=sort_every,
            kappa=kappa,
            seed=seed,
        )

    def _make_room(self) -> None:
        """Nothing here: `reset` makes the store of the frames."""

    def reset(self) -> None:
        super().reset()  # first: while something is counted, its frames are there
        size = math.prod(self.obs_shape) // self.stack
        dtype = np.dtype(self.observation_space.dtype)
        self._frames = FrameStore(self.buffer_size, 1, self.n_envs, self.stack, (size,), dtype)
        self._unmoved = 0  # steps whose observations were no stacks

    def _write(self, row: int, observations: Any, next_observations: Any) -> None:
        """May be called again for the same step, even with other observations."""
        shape = self.n_envs, self.stack, -1
        stacks, next_stacks = observations.reshape(shape), next_observations.reshape(shape)
        store, step = self._frames, self._steps
        store.forget(step)
        begins = self._ended(row - 1) | (step == 0)
        if step > 0:
            following = store.stacks(store.ids_of(step - 1), ahead=1)[0, :, -1:]
            # Also where an environment was reset without an end: `put` overwrites the frame ahead.
            begins |= (stacks[:, -1:] != following).any(axis=(1, 2))
            store.keep(step - 1, begins, following, ahead=1)
        same, moved = store.compare(step, stacks, next_stacks, begins)
        self._unmoved += not moved.all()
        if self._unmoved == 10 and not moved.all():  # a few may be resets by hand
            warnings.warn(
                f"stack: observations are no stacks of {self.stack} frames, so they are stored in "
                'full; for the colours of one picture, give replay_buffer_kwargs={"stack": 1}',
                stacklevel=3,
            )
        store.keep(step, ~same, stacks, ahead=0)
        store.keep(step, ~(same & moved), next_stacks, ahead=1)
        store.put(step, stacks[:, -1], next_stacks[:, -1])

    def _observations(self, slots: NDArray[np.int64], ahead: int = 0) -> NDArray:
        stacks = self._frames.stacks(self._ledger.ring.ids(slots[None]), ahead)
        return stacks.reshape(-1, *self.obs_shape)
