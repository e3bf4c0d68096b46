"""Prioritised replay in tianshou's agents; the extra `tianshou` installs what it needs.

    from per_tutorial.integrations.tianshou import PrioritizedVectorReplayBuffer

    buffer = PrioritizedVectorReplayBuffer(20_000, buffer_num=10, alpha=0.6, beta=0.4)
    collector = Collector[CollectStats](algorithm, environments, buffer)

The buffer replaces tianshou's own, which has the same name; one environment is ``buffer_num=1``.
New transitions get the largest priority so far, in `add`. tianshou's off-policy algorithms do the
rest: they multiply the squared error by ``batch.weight``, and call `update_weight` with their TD
errors. n-step returns are tianshou's.

In tianshou 2.0.1, `DQN` ignores the weights if it has a ``huber_loss_delta``. `C51`, `QRDQN`, `IQN`
and `FQF` pass their losses in place of TD errors. `SAC` and `TD3` pass the mean of two TD errors
with their signs, so opposite ones cancel.
"""

from __future__ import annotations  # so that `help` shows ArrayLike as a name

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from per_tutorial.common.arguments import up_to_one, whole_number
from per_tutorial.common.lazy import missing_extra
from per_tutorial.integrations.slot_sampler import SlotSampler, make_sampler

try:
    from tianshou.data import VectorReplayBuffer
except ImportError as error:
    raise missing_extra(error, __name__) from error


class PrioritizedVectorReplayBuffer(VectorReplayBuffer):
    """tianshou's `VectorReplayBuffer` with prioritised replay (Schaul et al. 2016, 3.3 and 3.4).

    All environments share one tree.

    Args:
        total_size: transitions kept in all.
        buffer_num: environments. Each has a ring of total_size / buffer_num slots, rounded up.
        alpha: how strongly priorities count, in [0, 1]; None: the sampler's own default.
        beta: exponent of the importance-sampling weights, in [0, 1]; see `set_beta`.
        sampler: a name in `per_tutorial.replay.samplers.SAMPLERS`.
        priority_epsilon, normalize: as in `ProportionalSampler`; None: the sampler's own default.
        seed: of the draws; None: from the system.
        stack_num, ignore_obs_next, save_only_last_obs: of tianshou's `VectorReplayBuffer`.
            Its ``sample_avail`` is not supported: with priorities, every transition may be drawn.
        sort_every, kappa: settings of "rank" and of "lap" alone.

    Raises:
        ValueError, TypeError: an argument is invalid, or the sampler has no such setting.

    Example:
        >>> from tianshou.data import Batch
        >>> from per_tutorial.integrations.tianshou import PrioritizedVectorReplayBuffer
        >>> buffer, three = PrioritizedVectorReplayBuffer(9, 3, alpha=1.0), np.zeros(3)
        >>> ends = {"terminated": three > 0, "truncated": three > 0}
        >>> slots, *_ = buffer.add(Batch(obs=three, act=three, rew=three, obs_next=three, **ends))
        >>> buffer.update_weight(slots, [-2.0, 1.0, 1.0])  # raw TD errors
        >>> buffer.probabilities()[slots].round(3).tolist()
        [0.5, 0.25, 0.25]
    """

    def __init__(
        self,
        total_size: int,
        buffer_num: int,
        alpha: float | None = None,
        beta: float = 0.4,
        *,
        sampler: str = "proportional",
        priority_epsilon: float | None = None,
        normalize: str | None = None,
        sort_every: int | None = None,
        kappa: float | None = None,
        seed: int | None = None,
        stack_num: int = 1,
        ignore_obs_next: bool = False,
        save_only_last_obs: bool = False,
    ) -> None:
        sizes = whole_number("total_size", total_size), whole_number("buffer_num", buffer_num)
        stored = {"stack_num": stack_num, "ignore_obs_next": ignore_obs_next}
        super().__init__(*sizes, **stored, save_only_last_obs=save_only_last_obs)
        settings: dict[str, Any] = {"alpha": alpha, "priority_epsilon": priority_epsilon}
        settings |= {"normalize": normalize, "sort_every": sort_every, "kappa": kappa}
        make = partial(make_sampler, sampler, self.maxsize, seed=seed, **settings)
        self._sampler = SlotSampler(make)
        self.beta = up_to_one("beta", beta)  # of the next draws

    def set_beta(self, beta: float) -> None:
        """Set β, as in tianshou's own buffers; call it in a trainer's ``training_fn``."""
        self.beta = beta

    def probabilities(self) -> NDArray[np.float64]:
        """(maxsize,): P(i) of every slot, 0 where nothing is stored."""
        self._sync()
        return self._sampler.probabilities()

    def add(self, batch: Any, buffer_ids: Any = None) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """tianshou's `add`, at the largest priority so far."""
        added = super().add(batch, buffer_ids)
        self._sampler.write(added[0])
        return added

    def sample(self, batch_size: int | None) -> tuple[Any, NDArray]:
        """Draw a minibatch by priority; its ``weight`` (batch,) is for the current `beta`.

        Args:
            batch_size: 0: every transition once, with weights of 1; None: as many draws as there
                are transitions.

        Raises:
            ValueError: nothing is stored yet.
        """
        slots, weights = self._drawn(batch_size)
        batch: Any = self[slots]
        batch.weight = weights
        return batch, slots

    def sample_indices(self, batch_size: int | None) -> NDArray:
        """Draw slots by priority, as `sample` does."""
        return self._drawn(batch_size)[0]

    def update_weight(self, index: NDArray, new_weight: ArrayLike) -> None:
        """Update priorities from the raw TD errors of a minibatch, which tianshou calls weights.

        Args:
            index: (batch,) as `sample` returned it. Transitions that were overwritten since are
                skipped; of duplicates, the last one counts.
            new_weight: (batch,) or (batch, 1) TD errors, with or without sign, NumPy or torch.

        Raises:
            IndexError: a slot holds no transition.
            ValueError: a TD error is not finite, or the shapes differ.
        """
        self._sync()
        self._sampler.update(index, new_weight)

    def reset(self, keep_statistics: bool = False) -> None:
        """Remove all transitions. With a seed, the random stream starts again."""
        super().reset(keep_statistics)
        self._sampler.clear()

    def _drawn(self, batch_size: int | None) -> tuple[NDArray, NDArray[np.float32]]:
        self._sync()
        if batch_size is not None and batch_size <= 0:  # tianshou's way to ask for all, or none
            slots = super().sample_indices(batch_size)
            return slots, np.ones(len(slots), dtype=np.float32)
        return self._sampler.sample(len(self) if batch_size is None else batch_size, self.beta)

    def _sync(self) -> None:
        """Tell the sampler of transitions that were added or removed without `add`."""
        self._sampler.sync(len(self), partial(super().sample_indices, 0))

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_sampler" not in state:
            raise ValueError(
                f"state: must be that of a {type(self).__name__} of per_tutorial, got one "
                "without per_tutorial's priorities"
            )
        super().__setstate__(state)
        # Make the rings views of the copy's memory: tianshou finds open episodes in them.
        if len(self._meta.get_keys()) > 0:
            self._set_batch_for_children()
