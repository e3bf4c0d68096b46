"""The last `capacity` transitions of every run, a row of a table each (notebook 02)."""

import numpy as np

from per_tutorial.replay.storages.ring import RingStorage, as_field, as_shape, claim_slots


class TransitionStorage(RingStorage):
    """Ring buffers of transitions, one per run (notebook 02).

    Args:
        capacity: transitions kept for each run; the oldest is overwritten.
        observation_shape: shape of one observation, a tuple of ints (or one int).
        runs: number of runs.
        n_step: steps whose rewards are summed, at most `capacity`; see `windows`.
        discount: γ of these sums.
        observation_dtype, action_shape, action_dtype: what else the rows hold.
    """

    def __init__(
        self,
        capacity,
        observation_shape,
        runs=1,
        *,
        n_step=1,
        discount=0.99,
        observation_dtype=np.float32,
        action_shape=(),
        action_dtype=np.int64,
    ):
        observation = (observation_dtype, as_shape("observation_shape", observation_shape))
        row = [
            ("observation", *observation),
            ("action", action_dtype, as_shape("action_shape", action_shape)),
            ("reward", np.float32),
            ("next_observation", *observation),
            ("terminated", np.bool_),
            ("truncated", np.bool_),
        ]
        super().__init__(capacity, row, runs, n_step, discount)
        self._every_run = np.ones(self.runs, dtype=bool)

    def add(
        self,
        observation,
        action,
        reward,
        next_observation,
        terminated,
        truncated=False,
        *,
        valid=None,
    ):
        """Write one transition for every run, fields shaped (runs, ...).

        ``truncated`` tells where something other than termination ended the episode, such as a
        time limit (False: nowhere). Rows where ``valid`` (runs,) is False are not written. Returns
        the slots, (runs, 1), with −1 for those. Raises ValueError or TypeError for a field that
        does not fit; nothing has been written then.
        """
        if truncated is False:
            truncated = np.zeros(self.runs, dtype=bool)
        fields = (observation, action, reward, next_observation, terminated, truncated)
        return self._write(fields, valid, runs=self.runs)

    def extend(self, observations, actions, rewards, next_observations, terminated, truncated):
        """Write n transitions for every run, fields shaped (runs, n, ...): the same as n times `add`.

        Returns the slots, (runs, n); of more than `capacity` transitions the last ones stay.
        """
        fields = (observations, actions, rewards, next_observations, terminated, truncated)
        n = np.atleast_2d(observations).shape[1]
        return self._write(fields, None, runs=self.runs, transitions=n)

    def _write(self, fields, valid, **counts):
        """Write fields with the leading axes ``counts``, all of them or, after an error, none."""
        dtypes = self.rows.dtype
        fields = [
            as_field(name, values, dtypes[name], **counts)
            for name, values in zip(dtypes.names, fields, strict=True)
        ]
        valid = self._every_run if valid is None else np.asarray(valid)
        if valid.shape != (self.runs,) or valid.dtype != np.bool_:
            raise ValueError(f"valid: must be True or False for each run, got {valid}")
        rows = np.zeros(tuple(counts.values()), dtype=dtypes)  # the bytes between fields as well
        for name, values in zip(dtypes.names, fields, strict=True):
            rows[name] = values
        slots = np.empty((self.runs, counts.get("transitions", 1)), dtype=np.int64)
        claim_slots(slots, self.added, valid, self.capacity)
        places = self._first_rows + slots
        if not valid.all():
            places, rows = (each.compress(valid, axis=0) for each in (places, rows))
        # More rows than the capacity come to the same slots again: what is put last stays.
        self._all_rows.put(places, rows)
        return slots

    def cut(self):
        """End the running episodes as a time limit does: the environments are about to start anew."""
        runs = np.flatnonzero(self.added)
        newest = runs, (self.added[runs] - 1) % self.capacity
        self.rows["truncated"][newest] |= ~self.rows["terminated"][newest]

    def gather(self, slots):
        """The rows in ``slots`` (runs, batch), copied into a structured array of that shape."""
        return self._take(slots)

    def windows(self, slots):
        """The n-step transitions that begin in ``slots`` (runs, batch): rows, and k for each.

        A window of k ≤ n_step steps has the reward Σ_{j<k} γ^j r_{t+j} and the next observation,
        `terminated` and `truncated` of its last step (Sutton & Barto 2018, section 7.1). It ends
        early where its episode ends, and at the newest transition: while a transition is young,
        its window grows with every step.
        """
        rows = self.gather(slots)
        if self.n_step == 1:
            steps = np.empty_like(slots)
            steps.fill(1)  # takes half the time of np.ones
            return rows, steps
        returns, last_slots, steps = self._walk(slots)
        last_rows = self.gather(last_slots)
        rows["reward"] = returns
        for name in ("next_observation", "terminated", "truncated"):
            rows[name] = last_rows[name]
        return rows, steps
