"""Prioritised replay as a replay buffer of Stable-Baselines3."""

import warnings
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import ArrayLike, DTypeLike, NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from per_tutorial.common.arguments import plain_array, real_number, whole_number
from per_tutorial.common.memory import promise_memory
from per_tutorial.integrations.hosted import refuse_unknown
from per_tutorial.integrations.sb3.frame_store import ObservationStore
from per_tutorial.integrations.sb3.returns import Returns, n_step_returns
from per_tutorial.integrations.sb3.ring_sampler import RingSampler
from per_tutorial.integrations.sb3.samples import (
    PrioritizedDictSamples,
    PrioritizedSamples,
    Samples,
    for_each,
)
from per_tutorial.replay.contracts import Slots
from per_tutorial.replay.random_streams import RandomStreams
from per_tutorial.replay.replay import DRAWS_WITHOUT_UPDATE
from per_tutorial.replay.storages.fields import as_field

ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class PrioritizedReplayBuffer(ReplayBuffer):
    """Prioritised replay (Schaul et al. 2016, 3.3 and 3.4) for Stable-Baselines3's agents.

    `PrioritizedDQN` and the other agents here multiply the loss by `weights`, and pass the TD
    errors to `update_priorities`. SB3's own agents do neither, so priorities never change.

    Args:
        buffer_size: transitions kept in all; each of E environments has buffer_size // E of them.
        observation_space, action_space, device, n_envs: as SB3 passes them.
        optimize_memory_usage: store each observation once, not again as the next one of the step
            before. Unlike in SB3, `handle_timeout_termination` may be on as well.
        handle_timeout_termination: bootstrap from the last state if a time limit ends an episode.
        n_steps, gamma: the length of n-step returns, and their discount γ.
        sampler: a name in `per_tutorial.replay.samplers.SAMPLERS`.
        seed: of the draws; None: from NumPy's global stream, which SB3's `set_random_seed` seeds
            and from which its own buffers draw.
        settings: of the sampler, such as `alpha`, `priority_epsilon` and `normalize`.

    Raises:
        ValueError, TypeError: an argument is invalid, or the sampler has no such setting.

    Example:
        >>> box, states = spaces.Box(0, 9, (1,)), np.array([[0.0], [1.0], [2.0]])
        >>> buffer = PrioritizedReplayBuffer(9, box, spaces.Discrete(2), "cpu", n_envs=3, alpha=1.0)
        >>> buffer.add(states, states, np.array([1, 0, 1]), np.ones(3), np.zeros(3), [{}] * 3)
        >>> buffer.update_priorities(np.arange(3), np.array([-2.0, 1.0, 1.0]))  # raw TD errors
        >>> buffer.probabilities[0].round(3).tolist()
        [0.5, 0.25, 0.25]
    """

    beta = 0.4  #: β of the next draws, which the agent sets
    _steps = 0  # rows ever added, each a step of every environment

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
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        whole_number("buffer_size", buffer_size)
        whole_number("n_envs", n_envs)
        refuse_unknown(type(self), sampler, settings, ["handle_timeout_termination"])
        self._check_space(observation_space, optimize_memory_usage)
        self.n_steps = whole_number("n_steps", n_steps)
        self.gamma = real_number("gamma", gamma, 0, 1)
        self.sampler_settings = {"sampler": sampler, "seed": seed, "settings": settings}
        super(ReplayBuffer, self).__init__(
            buffer_size, observation_space, action_space, device, n_envs
        )
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.capacity = self.buffer_size * n_envs
        self.optimize_memory_usage = optimize_memory_usage
        self.handle_timeout_termination = handle_timeout_termination
        dtype = np.dtype(self._maybe_cast_dtype(action_space.dtype))
        self.actions = self._zeros((self.action_dim,), dtype)
        self.rewards, self.dones, self.timeouts = (self._zeros((), np.float32) for _ in range(3))
        if not optimize_memory_usage:
            self.observations = self._empty_observations()
            self.next_observations = self._empty_observations()
        self.reset()
        promise_memory(self, "buffer_size", self._bytes_of_arrays())

    def _check_space(self, observation_space: spaces.Space, optimize_memory_usage: bool) -> None:
        """Raise ValueError unless observations of this space can be stored in this way."""
        if isinstance(observation_space, spaces.Dict):
            raise ValueError(
                "observation_space: Dict observations need a PrioritizedDictReplayBuffer, "
                f"got {observation_space}"
            )

    def _zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
        return np.zeros((self.buffer_size, self.n_envs, *shape), dtype)

    def _empty_observations(self) -> Any:
        return self._zeros(self.obs_shape, self._dtype)

    @property
    def _dtype(self) -> np.dtype:
        return np.dtype(self.observation_space.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of a full buffer, without its priorities (16 to 32 for each transition)."""
        return self._bytes_of_arrays() + (0 if self._frames is None else self._frames.nbytes)

    def _bytes_of_arrays(self) -> int:
        arrays = self._arrays().values()
        parts = [
            part for one in arrays for part in (one.values() if isinstance(one, dict) else [one])
        ]
        return sum(part.nbytes for part in parts)

    def _arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ARRAYS if hasattr(self, name)}

    @property
    def pos(self) -> int:
        """The row that is written next."""
        return self._steps % self.buffer_size

    @pos.setter
    def pos(self, row: int) -> None:
        if row != self.pos:
            self._steps = row + self.full * self.buffer_size

    @property
    def full(self) -> bool:
        """Whether every row holds a step."""
        return self._steps >= self.buffer_size

    @full.setter
    def full(self, is_full: bool) -> None:
        if is_full != self.full:
            self._steps = self.pos + is_full * self.buffer_size

    def reset(self) -> None:
        """Remove all transitions. With a seed, the random stream starts again."""
        self._steps = 0
        self._frames = self._new_frames() if self.optimize_memory_usage else None
        self._start_sampler()

    def _new_frames(self) -> ObservationStore:
        """The store for observations if each is kept once."""
        size = int(np.prod(self.obs_shape))
        return ObservationStore(self.buffer_size, self.n_envs, 1, size, self._dtype)

    def _start_sampler(self) -> None:
        settings: dict[str, Any] = dict(self.sampler_settings)
        if settings["seed"] is None:
            settings["seed"] = int(np.random.randint(2**31))
        self._sampler = RingSampler(self.capacity, **settings)

    def seed_draws(self, seed: int) -> None:
        """Start the stream of random numbers again, as if made with this seed."""
        self._sampler.sampler.streams.states[:] = RandomStreams([seed], "replay").states

    def _sync(self) -> None:
        """Tell the sampler of transitions that it does not know yet."""
        added = self._steps * self.n_envs
        if self._sampler.added > added:  # a user moved `pos` back
            self._start_sampler()
        if self._sampler.added < added:
            self._sampler.add(added)

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

        As in SB3, observations may hold NaN.

        Raises:
            ValueError: a field has the wrong shape, or a reward is not finite. Nothing was stored.
            TypeError: the type of a field does not fit its space.
        """
        self._sync()  # completes an interrupted `add`
        observations = self._checked("observation", obs)
        next_observations = self._checked("next observation", next_obs)
        actions = self._field("action", action, self.actions.dtype, (self.action_dim,))
        rewards = self._field("reward", reward, self.rewards.dtype, ())
        dones = self._field("done", done, np.dtype(bool), ())
        if len(infos) != self.n_envs:
            raise ValueError(f"infos: must be one for each of {self.n_envs}, got {len(infos)}")
        row = self.pos
        timeouts = [bool(info.get("TimeLimit.truncated", False)) for info in infos]
        self._write(row, observations, next_observations)
        self.actions[row], self.rewards[row], self.dones[row] = actions, rewards, dones
        self.timeouts[row] = timeouts if self.handle_timeout_termination else 0
        self._steps += 1
        self._sync()

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
        return self._space_field(name, values, self.observation_space, self.obs_shape)

    def _space_field(
        self, name: str, values: ArrayLike, space: spaces.Space, shape: tuple[int, ...]
    ) -> NDArray:
        """Observations of one space as (n_envs, *shape)."""
        array = plain_array(name, values)
        if isinstance(space, spaces.Discrete):  # stored with one more axis
            array = array.reshape(-1, *shape)
        return as_field(name, array, np.dtype((space.dtype, shape)), environments=self.n_envs)

    def _field(
        self, name: str, values: ArrayLike, dtype: np.dtype, shape: tuple[int, ...]
    ) -> NDArray:
        """One of the other fields. Like SB3, accept any shape of the right size."""
        array = plain_array(name, values)
        if array.size == self.n_envs * int(np.prod(shape)):
            array = array.reshape(self.n_envs, *shape)
        return as_field(name, array, np.dtype((dtype, shape)), environments=self.n_envs)

    def _write(self, row: int, observations: Any, next_observations: Any) -> None:
        if self._frames is None:
            self.observations[row], self.next_observations[row] = observations, next_observations
        else:
            stacks = self._to_stacks(observations), self._to_stacks(next_observations)
            self._frames.add(self._steps, *stacks, self._ended(row - 1))

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Samples:  # type: ignore[override]
        """Draw a minibatch by priority, with weights for the current `beta`.

        Args:
            batch_size: may exceed the number stored: a transition may come more than once.
            env: normalizes observations and rewards, as in SB3.

        Raises:
            ValueError: nothing is stored yet.
        """
        self._sync()
        batch_size = whole_number("batch_size", batch_size)
        if self._steps == 0:
            raise ValueError("sample: the replay buffer is empty")
        slots, weights = self._sampler.sample(batch_size, self.beta)
        if self._sampler.since_update == DRAWS_WITHOUT_UPDATE and self._sampler.needs_updates:
            warnings.warn(
                f"{DRAWS_WITHOUT_UPDATE} minibatches were drawn and no TD error came back, so "
                "priorities stay what they are. Use PrioritizedDQN, PrioritizedQRDQN, "
                "PrioritizedSAC or PrioritizedTD3, or call update_priorities.",
                stacklevel=2,
            )
        return self._batch(slots, weights, env)

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
        self._sync()
        self._sampler.update(indices, td_errors)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """(buffer_size, n_envs): P(i) of every transition, 0 where nothing is stored."""
        self._sync()
        return self._sampler.probabilities().reshape(self.buffer_size, self.n_envs)

    def metrics(self) -> dict[str, float]:
        """What an agent logs, by name: the sampler's metrics, and means of the last minibatch."""
        self._sync()
        return self._sampler.metrics()

    @property
    def settings(self) -> dict[str, Any]:
        """What must match to continue with another buffer's transitions and priorities."""
        return self._sampler.sampler.settings | {"n_steps": self.n_steps, "gamma": self.gamma}

    def _get_samples(self, batch_inds: np.ndarray, env: VecNormalize | None = None) -> Samples:  # type: ignore[override]
        """SB3's own hook: these rows, each of a random environment, with weights of 1."""
        environments = np.random.randint(0, self.n_envs, size=len(batch_inds))
        self._sync()
        slots = (np.asarray(batch_inds) * self.n_envs + environments)[None]
        return self._batch(slots, np.ones(slots.shape), env)

    def _batch(self, slots: Slots, weights: NDArray, env: VecNormalize | None) -> Samples:
        """The transitions in ``slots`` (1, batch) as tensors."""
        first, ids = slots[0], self._sampler.ring.ids(slots)[0]
        rewards, last, discounts = self._returns(first, env)
        ends = self.dones.reshape(-1)[last] * (1 - self.timeouts.reshape(-1)[last])
        fields = (
            self._tensors(self._normalize_obs(self._observations(first), env)),
            self._tensors(self._taken(self.actions, first)),
            self._tensors(self._normalize_obs(self._observations(last, ahead=1), env)),
            self._tensors(ends[:, None]),
            self._tensors(rewards),
            None if discounts is None else self._tensors(discounts),
        )
        kind = PrioritizedDictSamples if isinstance(fields[0], dict) else PrioritizedSamples
        return kind(*fields).with_draw(self._tensors(weights[0, :, None].astype(np.float32)), ids)

    def _returns(self, slots: NDArray[np.int64], env: VecNormalize | None) -> Returns:
        """The returns of ``slots`` (batch,); as in SB3, no discounts if n_steps is 1."""
        if self.n_steps == 1:
            rewards = self.rewards.reshape(-1).take(slots)[:, None]
            return Returns(self._normalize_reward(rewards, env), slots, None)
        return n_step_returns(
            *(slots, self.rewards, self.dones, self.timeouts),
            added=self._sampler.added,
            n_steps=self.n_steps,
            gamma=self.gamma,
            normalize=None if env is None else env.normalize_reward,
        )

    def _observations(self, slots: NDArray[np.int64], ahead: int = 0) -> Any:
        """The observations of ``slots`` (batch,), or the next ones, which are 1 step ahead."""
        if self._frames is None:
            arrays = self.next_observations if ahead else self.observations
            return for_each(lambda array: self._taken(array, slots), arrays)
        steps, environments = np.divmod(self._sampler.ring.ids(slots[None])[0], self.n_envs)
        return self._from_stacks(self._frames.observations(steps, environments, ahead))

    def _taken(self, array: NDArray, slots: NDArray[np.int64]) -> NDArray:
        return array.reshape(self.capacity, *array.shape[2:]).take(slots, axis=0)

    def _tensors(self, values: Any) -> Any:
        """Arrays that nothing else uses, as tensors that share their memory on the CPU."""
        return for_each(lambda array: th.from_numpy(array).to(self.device), values)

    def _to_stacks(self, observations: NDArray) -> NDArray:
        """Observations (n_envs, *obs_shape) in the shape of an `ObservationStore`."""
        return np.ascontiguousarray(observations.reshape(self.n_envs, 1, -1), self._dtype)

    def _from_stacks(self, stacks: NDArray) -> NDArray:
        """Stacks of an `ObservationStore` as observations (batch, *obs_shape)."""
        return stacks.reshape(len(stacks), *self.obs_shape)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles leave out empty rows."""
        rows = self.size()
        kept = {
            name: for_each(lambda array: array[:rows], one) for name, one in self._arrays().items()
        }
        return vars(self) | kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        def whole(array: NDArray) -> NDArray:
            grown = self._zeros(array.shape[2:], array.dtype)
            grown[: len(array)] = array
            return grown

        vars(self).update(state)
        for name, array in self._arrays().items():
            setattr(self, name, for_each(whole, array))
