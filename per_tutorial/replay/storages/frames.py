"""Which experiences are kept when they are pictures: every frame once (notebook 05).

An agent that plays Atari sees the last 4 frames. As transitions, each frame would be stored eight
times: in four observations and in four next observations. Here it is stored once, and the stacks are
rebuilt when they are sampled.

E environments take turns in adding to a run, so transition k is one of environment k % E, and its
predecessor there is transition k − E. The newest frame of its observation has the number k, too.
With E = 3, in the order they are added:

    transition    0  1  2  |  3  4  5  |  6  7  8  |  9 10 11  |  ...
    environment   0  1  2  |  0  1  2  |  0  1  2  |  0  1  2  |  ...

    observation of transition 10 = frames 1 4 7 10, its next observation = frames 4 7 10 13

Where an episode has begun less than 4 frames ago, the missing frames are black (zeros).
"""

import numpy as np
from numba import njit

from per_tutorial.replay.storages.ring import RingStorage, as_field, as_shape

FIELDS = ("observation", "action", "reward", "next_observation", "terminated", "truncated")


@njit(cache=True)
def find_stacks(newest, depths, stride, ring, places):
    """Where the frames of stacks lie, oldest first: `places` (runs, batch, stack) is written.

    `newest` (runs, batch) are the numbers of their newest frames, `depths` how many frames each has.
    The others, before the episode began, are at −1.
    """
    runs, batch, stack = places.shape
    for run in range(runs):
        for k in range(batch):
            for back in range(stack):
                number = newest[run, k] - back * stride
                place = run * ring + number % ring if back < depths[run, k] else -1
                places[run, k, stack - 1 - back] = place


class FrameStorage(RingStorage):
    """Ring buffers of transitions between stacks of frames, each frame kept once.

    Args:
        capacity: transitions kept for each run; the oldest is overwritten.
        observation_shape: (stack, *frame shape), such as (4, 84, 84).
        runs: number of runs.
        environments: environments that feed each run. All of them add a transition in every step.
        n_step, discount: see `windows`.

    Attributes:
        rows: (runs, capacity) what is small: action, reward, terminated, truncated, and the depth,
            the number of frames that the observation has seen of its episode, at most the stack.
        frames: (places, *frame shape) uint8, `ring` places for each run, and a black frame.
        final_frames: {(run, slot): the last frame of the episode that ended with that transition}.
    """

    def __init__(
        self, capacity, observation_shape, runs=1, *, environments=1, n_step=1, discount=0.99
    ):
        self.stack, *frame_shape = as_shape("observation_shape", observation_shape)
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
        # The oldest transition needs the stack − 1 frames before its own, the newest step the frames
        # after it: with E·(stack − 1) and E places more than transitions, none is overwritten early.
        self.ring = self.capacity + self.environments * self.stack
        self.frames = np.zeros((self.runs * self.ring + 1, *frame_shape), dtype=np.uint8)
        self.final_frames = {}

    def by_run(self, rows):
        return rows.reshape(self.runs, self.environments, *rows.shape[1:])

    def add(
        self, observation, action, reward, next_observation, terminated, truncated, *, valid=None
    ):
        """Write one transition of every environment, fields shaped (runs, environments, ...).

        Of the stacks only the newest frames are taken. Returns the slots, (runs, environments).
        Raises ValueError or TypeError for a field that does not fit; nothing has been written then.
        """
        if valid is not None and not np.all(valid):
            raise ValueError(
                "valid: frames need a transition of every environment in every step "
                f"(SAME_STEP autoreset), got {valid}"
            )
        fields = (observation, action, reward, next_observation, terminated, truncated)
        counts = {"runs": self.runs, "environments": self.environments}
        fields = {
            name: as_field(name, values, self._dtypes[name], **counts)
            for name, values in zip(FIELDS, fields, strict=True)
        }
        frames, next_frames = fields["observation"][:, :, -1], fields["next_observation"][:, :, -1]
        numbers = self.added[:, None] + np.arange(self.environments)
        slots = numbers % self.capacity
        before = self._take((numbers - self.environments) % self.capacity)
        begins = before["terminated"] | before["truncated"] | (numbers < self.environments)
        rows = np.zeros(slots.shape, self.rows.dtype)
        for name in ("action", "reward", "terminated", "truncated"):
            rows[name] = fields[name]
        rows["depth"] = np.where(begins, 1, np.minimum(before["depth"], self.stack - 1) + 1)
        np.put_along_axis(self.rows, slots, rows, axis=1)
        # The next frame is written ahead, so that the newest transition is whole. If the episode
        # goes on, that frame stays; if not, the first one of the next episode will take its place.
        self.frames[self._places(numbers)] = frames
        self.frames[self._places(numbers + self.environments)] = next_frames
        for (run, _), slot in np.ndenumerate(slots):
            self.final_frames.pop((run, slot), None)
        self._keep_final_frames(slots, next_frames, rows["terminated"] | rows["truncated"])
        self.added += self.environments
        return slots

    def extend(self, *fields):
        """Not for frames: raises TypeError."""
        raise TypeError("extend: frames are added one step of the environments at a time, by add")

    def windows(self, slots):
        """The n-step transitions that begin in ``slots`` (runs, batch), a dict of arrays, and k.

        One goes k ≤ n_step steps ahead, as in `TransitionStorage.windows`.
        """
        rows = self._take(slots)
        returns, last_slots, steps = self._walk(slots)
        last = self._take(last_slots)
        # One array for both: the allocator keeps the memory of one large block for the next batch.
        places = np.empty((2, *slots.shape, self.stack), dtype=np.int64)
        ring = (self.environments, self.ring)
        find_stacks(self.ids(slots), rows["depth"], *ring, places[0])
        next_frames = self.ids(last_slots) + self.environments
        find_stacks(next_frames, last["depth"] + 1, *ring, places[1])
        stacks = self.frames.take(places, axis=0)
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

    def cut(self):
        """End the running episodes as a time limit does: the environments are about to start anew."""
        if self.added[0] == 0:
            return
        numbers = self.added[:, None] + np.arange(-self.environments, 0)
        slots = numbers % self.capacity
        rows = self._take(slots)
        running = ~(rows["terminated"] | rows["truncated"])
        rows["truncated"] |= running
        np.put_along_axis(self.rows, slots, rows, axis=1)
        next_frames = self.frames[self._places(numbers + self.environments)]
        self._keep_final_frames(slots, next_frames, running)

    @property
    def state(self):
        """The arrays that a checkpoint holds."""
        written = min(int(self.added[0]) + self.environments, self.ring)
        shape = self.frames.shape[1:]
        keys = np.array(list(self.final_frames), dtype=np.int64)
        frames = np.array(list(self.final_frames.values()), dtype=np.uint8)
        return {
            **super().state,
            "frames": self._rings[:, :written],
            "final_keys": keys.reshape(-1, 2),
            "final_frames": frames.reshape(-1, *shape),
        }

    def restore(self, state):
        """Take over what `state` was; the storage continues from there."""
        super().restore(state)
        frames = state["frames"]
        self._rings[:, : frames.shape[1]] = frames
        keys = map(tuple, state["final_keys"].tolist())
        self.final_frames = dict(zip(keys, state["final_frames"].copy(), strict=True))

    @property
    def _rings(self):
        return self.frames[:-1].reshape(self.runs, self.ring, *self.frames.shape[1:])

    def _places(self, numbers):
        return np.arange(self.runs)[:, None] * self.ring + numbers % self.ring

    def _keep_final_frames(self, slots, next_frames, ended):
        """Keep the frames after the transitions in ``slots`` where ``ended`` (runs, environments)."""
        for run, k in np.argwhere(ended).tolist():
            self.final_frames[run, int(slots[run, k])] = next_frames[run, k].copy()
