"""Prioritised replay as a replay buffer of Stable-Baselines3.

All environments share one sampler. With E environments, the transition of environment e in step t
has the id t · E + e. A `Ledger` maps ids to slots, and reports new transitions to the sampler.
"""

from __future__ import annotations  # so that `help` shows ArrayLike as a name

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.preprocessing import get_obs_shape
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from per_tutorial.common.arguments import index_array, plain_array, real_number, whole_number
from per_tutorial.common.memory import promise_memory
from per_tutorial.integrations.slot_sampler import errors_of, make_sampler
from per_tutorial.replay.contracts import Slots
from per_tutorial.replay.ledger import Ledger
from per_tutorial.replay.ring import sum_n_steps
from per_tutorial.replay.storages.fields import as_field


class PrioritizedSamples(ReplayBufferSamples):
    """A minibatch of SB3, with (batch, ...) tensors, and what prioritised replay adds to it.

    Dict observations are dicts of tensors.

    Attributes:
        discounts: (batch, 1) float32, γ^k of the k steps that the rewards are summed over.
        weights: (batch, 1) float32, importance-sampling weights, of the shape of SB3's loss.
        probabilities: (batch, 1) float32, P(i) of the transitions as they were drawn.
        indices: (batch,) ids of the transitions, counted from 0 as they were added; for
            `PrioritizedReplayBuffer.update_priorities`.
    """

    discounts: th.Tensor
    weights: th.Tensor
    probabilities: th.Tensor
    indices: NDArray[np.int64]


REMEDY = (
    "use PrioritizedDQN, PrioritizedQRDQN, PrioritizedSAC or PrioritizedTD3, or call "
    "update_priorities with the TD errors of each minibatch"
)


def for_each(function: Callable[..., Any], arrays: Any) -> Any:
    """Apply a function to an array, or to each array in the dict of Dict observations."""
    if isinstance(arrays, dict):
        return {key: function(array) for key, array in arrays.items()}
    return function(arrays)


def each_of(arrays: Any) -> list[NDArray]:
    """An array in a list, or the arrays in the dict of Dict observations."""
    return [*arrays.values()] if isinstance(arrays, dict) else [arrays]


class PrioritizedReplayBuffer(ReplayBuffer):
    """Prioritised replay (Schaul et al. 2016, 3.3 and 3.4) for Stable-Baselines3's agents.

    `PrioritizedDQN` and the other agents here multiply the loss by `weights`, and pass the TD
    errors to `update_priorities`. SB3's own agents do neither, so priorities never change.

    Args:
        buffer_size: transitions kept in all; each of E environments has buffer_size // E of them.
        observation_space, action_space, device, n_envs: as SB3 passes them; Dict observations, too.
        optimize_memory_usage: must be False; `FrameReplayBuffer` stores each frame once.
        handle_timeout_termination: bootstrap from the last state if a time limit ends an episode.
        n_steps, gamma: the length of n-step returns, and their discount γ.
        sampler: a name in `per_tutorial.replay.samplers.SAMPLERS`.
        alpha: how strongly priorities count, in [0, 1]; None: the sampler's own default.
        priority_epsilon, normalize: as in `ProportionalSampler`; None: the sampler's own default.
        seed: of the draws; None: from NumPy's global stream, which SB3's `set_random_seed` seeds
            and from which its own buffers draw.
        sort_every, kappa: settings of "rank" and of "lap" alone.

    Raises:
        ValueError, TypeError: an argument is invalid, or the sampler has no such setting.

    Example:
        >>> box, states = spaces.Box(0, 9, (1,)), np.array([[0.0], [1.0], [2.0]])
        >>> buffer = PrioritizedReplayBuffer(9, box, spaces.Discrete(2), "cpu", n_envs=3, alpha=1.0)
        >>> buffer.add(states, states, np.array([1, 0, 1]), np.ones(3), np.zeros(3), [{}] * 3)
        >>> buffer.update_priorities(np.arange(3), np.array([-2.0, 1.0, 1.0]))  # raw TD errors
        >>> buffer.probabilities().round(3).tolist()
        [0.5, 0.25, 0.25]
    """

    beta = 0.4  #: β of the next draws, which the agent sets

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
        whole_number("buffer_size", buffer_size)
        whole_number("n_envs", n_envs)
        if optimize_memory_usage:
            raise ValueError(
                "optimize_memory_usage: must be False (FrameReplayBuffer stores each frame once), "
                f"got {optimize_memory_usage}"
            )
        self.n_steps = whole_number("n_steps", n_steps)
        self.gamma = real_number("gamma", gamma, 0, 1)
        self._seed = seed
        super(ReplayBuffer, self).__init__(
            buffer_size, observation_space, action_space, device, n_envs
        )
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.capacity = self.buffer_size * n_envs
        settings: dict[str, Any] = {"alpha": alpha, "priority_epsilon": priority_epsilon}
        settings |= {"normalize": normalize, "sort_every": sort_every, "kappa": kappa}
        self._make_sampler = partial(make_sampler, sampler, self.capacity, **settings)
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        # A field's dtype includes its shape.
        self._action = np.dtype((self._maybe_cast_dtype(action_space.dtype), (self.action_dim,)))
        self._observed: Any = for_each(
            lambda space: np.dtype((space.dtype, get_obs_shape(space))),
            getattr(observation_space, "spaces", observation_space),
        )
        self.actions = self._zeros(self._action)
        self.rewards, self.dones, self.timeouts = (self._zeros(np.float32) for _ in range(3))
        self._make_room()
        self.reset()

    def _zeros(self, dtype: Any) -> NDArray:
        return np.zeros((self.buffer_size, self.n_envs), dtype)

    def _make_room(self) -> None:
        """Make the arrays of the observations."""
        stored = (for_each(self._zeros, self._observed) for _ in range(2))
        self.observations, self.next_observations = stored
        arrays = [self.actions, self.rewards, self.dones, self.timeouts]
        arrays += 2 * each_of(self.observations)
        promise_memory(self, "buffer_size", sum(array.nbytes for array in arrays))

    def reset(self) -> None:
        """Remove all transitions. With a seed, the random stream starts again."""
        super().reset()
        seed = int(np.random.randint(2**31)) if self._seed is None else self._seed
        self._ledger = Ledger(self._make_sampler(seed=seed), np.zeros(1, dtype=np.int64), REMEDY)
        self._last: dict[str, NDArray] = {}  # of the last minibatch, by the names of `metrics`

    def seed_draws(self, seed: int) -> None:
        """Start the stream of random numbers again, as if made with this seed."""
        state, other = (self._make_sampler(seed=each).state for each in (seed, seed + 1))
        for name, array in self._ledger.state.items():
            if (state[name] != other[name]).any():  # so it depends on the seed
                array[...] = state[name]

    @property
    def _steps(self) -> int:
        """Rows ever added, each a step of every environment."""
        return self._ledger.ring.count // self.n_envs

    def size(self) -> int:
        """Steps that are stored now; SB3's `pos` and `full` lag behind an interrupted call."""
        return min(self._steps, self.buffer_size)

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Store a step of every environment, at the largest priority so far; fields (n_envs, ...).

        Raises:
            ValueError: a field has the wrong shape, or a reward or an observation is not finite.
                Nothing was stored.
            TypeError: the type of a field does not fit its space.
        """
        observations = self._checked("observation", obs)
        next_observations = self._checked("next observation", next_obs)
        actions = self._field("action", action, self._action)
        rewards = self._field("reward", reward, self.rewards.dtype)
        dones = self._field("done", done, np.dtype(bool))
        if len(infos) != self.n_envs:
            raise ValueError(f"infos: must be one for each of {self.n_envs}, got {len(infos)}")
        self._ledger.catch_up()
        row = self._steps % self.buffer_size
        timeouts = [bool(info.get("TimeLimit.truncated", False)) for info in infos]
        self._write(row, observations, next_observations)
        self.actions[row], self.rewards[row], self.dones[row] = actions, rewards, dones
        self.timeouts[row] = timeouts if self.handle_timeout_termination else 0
        self._ledger.ring.added += self.n_envs  # what is counted is whole
        self.pos, self.full = self._steps % self.buffer_size, self._steps >= self.buffer_size
        self._ledger.add(np.arange(row * self.n_envs, (row + 1) * self.n_envs)[None])

    def truncate_episodes(self) -> None:
        """Truncate the running episodes, because the environments are about to be reset.

        Otherwise n-step returns would run on into the next episode.
        """
        if self._steps > 0:
            row = (self._steps - 1) % self.buffer_size
            self.timeouts[row, ~self._ended(row)] = 1

    def _ended(self, row: int) -> NDArray[np.bool_]:
        """(n_envs,): whether an episode ended with this row."""
        return (self.dones[row] != 0) | (self.timeouts[row] != 0)

    def _checked(self, name: str, values: Any) -> Any:
        """Observations, or a dict of them, as (n_envs, ...)."""
        dtypes = self._observed
        if not isinstance(dtypes, dict):
            return self._field(name, values, dtypes, any_shape=dtypes.shape == (1,))
        if missing := sorted(set(dtypes) - set(values)):
            raise ValueError(f"{name}: must have the keys {sorted(dtypes)}, lacks {missing}")
        return {
            key: self._field(f"{name}[{key!r}]", values[key], dtype, any_shape=dtype.shape == (1,))
            for key, dtype in dtypes.items()
        }

    def _field(self, name: str, values: Any, dtype: np.dtype, *, any_shape: bool = True) -> NDArray:
        """A field as (n_envs, *dtype.shape). Like SB3, accept ``any_shape`` of the right size."""
        array = plain_array(name, values)
        if any_shape and array.size == self.n_envs * math.prod(dtype.shape):
            array = array.reshape(self.n_envs, *dtype.shape)
        return as_field(name, array, dtype, environments=self.n_envs)

    def _write(self, row: int, observations: Any, next_observations: Any) -> None:
        arrays = each_of(self.observations) + each_of(self.next_observations)
        values = each_of(observations) + each_of(next_observations)
        for array, new in zip(arrays, values, strict=True):
            array[row] = new

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> PrioritizedSamples:
        """Draw a minibatch by priority, with weights for the current `beta`.

        Args:
            batch_size: may exceed the number stored: a transition may come more than once.
            env: normalizes observations and rewards, as in SB3.

        Raises:
            ValueError: nothing is stored yet.
        """
        batch_size = whole_number("batch_size", batch_size)
        if self._steps == 0:
            raise ValueError("sample: the replay buffer is empty")
        slots, probabilities, weights = self._ledger.sample(batch_size, self.beta)
        self._last["mean_weight"] = weights
        return self._batch(slots, probabilities, weights, env)

    def update_priorities(self, indices: ArrayLike, td_errors: ArrayLike) -> None:
        """Update priorities from the raw TD errors of a minibatch; |δ|, ε and α are applied here.

        Args:
            indices: (batch,) as in `PrioritizedSamples.indices`. Transitions that were overwritten
                since are skipped; of duplicates, the last one counts.
            td_errors: (batch,) or (batch, 1), with or without sign, NumPy or torch.

        Raises:
            IndexError: no such transition was added.
            ValueError: a TD error is not finite, or the shapes differ.
        """
        ids = index_array("indices", indices)
        errors = errors_of(ids, td_errors).reshape(1, -1)
        slots = self._ledger.ring.slots_to_update(ids.reshape(1, -1), errors)
        self._ledger.update(slots, errors)
        self._last["mean_td_error"] = np.abs(errors)

    def probabilities(self, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """(n,): P(i) now, of the transitions with these ids (n,), 0 for overwritten ones.

        None: of all that are stored, the oldest first.

        Raises:
            IndexError: no such transition was added.
        """
        ids = None if indices is None else index_array("indices", indices).reshape(1, -1)
        return self._ledger.probabilities(ids)[0]

    def metrics(self) -> dict[str, float]:
        """What an agent logs, by name: the sampler's metrics, and means of the last minibatch."""
        self._ledger.catch_up()
        measure = getattr(self._ledger.sampler, "metrics", None)  # which a sampler may leave out
        measured = measure(self._ledger.ring.sizes) if measure and self._steps else {}
        return {name: float(values.mean()) for name, values in (measured | self._last).items()}

    @property
    def settings(self) -> dict[str, Any]:
        """What must match to continue with another buffer's transitions and priorities."""
        return self._ledger.sampler.settings | {"n_steps": self.n_steps, "gamma": self.gamma}

    def _get_samples(
        self, batch_inds: np.ndarray, env: VecNormalize | None = None
    ) -> PrioritizedSamples:
        """SB3's own hook: these rows, each of a random environment, with weights of 1."""
        environments = np.random.randint(0, self.n_envs, size=len(batch_inds))
        slots = (np.asarray(batch_inds) * self.n_envs + environments)[None]
        probabilities = self._ledger.probabilities(self._ledger.ring.ids(slots))
        return self._batch(slots, probabilities, np.ones(slots.shape), env)

    def _batch(
        self, slots: Slots, probabilities: NDArray, weights: NDArray, env: VecNormalize | None
    ) -> PrioritizedSamples:
        """The transitions in ``slots`` (1, batch) as tensors."""
        first = slots[0]
        rewards, last, discounts = self._returns(first, env)
        ends = self.dones.reshape(-1)[last] * (1 - self.timeouts.reshape(-1)[last])
        batch = PrioritizedSamples(
            self._tensors(self._normalize_obs(self._observations(first), env)),
            self._tensors(self._taken(self.actions, first)),
            self._tensors(self._normalize_obs(self._observations(last, ahead=1), env)),
            self._tensors(ends[:, None]),
            self._tensors(rewards),
            self._tensors(discounts),
        )
        batch.weights = self._tensors(weights[0, :, None].astype(np.float32))
        batch.probabilities = self._tensors(probabilities[0, :, None].astype(np.float32))
        batch.indices = self._ledger.ring.ids(slots)[0]
        return batch

    def _returns(
        self, slots: NDArray[np.int64], env: VecNormalize | None
    ) -> tuple[NDArray, NDArray[np.int64], NDArray]:
        """Of ``slots`` (batch,): n-step returns (batch, 1), last slots, and γ^k (batch, 1).

        A return covers k ≤ n_steps steps: fewer if its episode or the stored data end. At the
        newest transition, as at a time limit, the value of the next observation counts.
        """
        shape = (1, len(slots))
        sums, last, steps = np.empty(shape), np.empty(shape, np.int64), np.empty(shape, np.int64)
        sum_n_steps(
            *(array.reshape(1, -1) for array in (self.rewards, self.dones, self.timeouts)),
            *(self._ledger.ring.added, self.n_envs, slots[None], self.n_steps, self.gamma),
            *(sums, last, steps),
        )
        lengths = steps[0, :, None]
        if env is not None:  # each reward is normalised before the sum
            ahead = np.arange(self.n_steps)
            windows = (slots[:, None] + ahead * self.n_envs) % self.capacity
            rewards = env.normalize_reward(self.rewards.reshape(-1).take(windows))
            factors = np.where(ahead < lengths, self.gamma**ahead, 0)
            sums = (rewards * factors).sum(axis=1)[None]
        discounts = self.gamma ** lengths.astype(np.float32)
        return sums[0, :, None].astype(np.float32), last[0], discounts

    def _observations(self, slots: NDArray[np.int64], ahead: int = 0) -> Any:
        """The observations of ``slots`` (batch,), or the next ones, which are 1 step ahead."""
        arrays = self.next_observations if ahead else self.observations
        return for_each(lambda array: self._taken(array, slots), arrays)

    def _taken(self, array: NDArray, slots: NDArray[np.int64]) -> NDArray:
        return array.reshape(self.capacity, *array.shape[2:]).take(slots, axis=0)

    def _tensors(self, values: Any) -> Any:
        """Arrays that nothing else uses, as tensors that share their memory on the CPU."""
        return for_each(lambda array: th.from_numpy(array).to(self.device), values)
