"""Prioritised replay in torchrl, which the extra `torchrl` installs.

    from per_tutorial.integrations.torchrl import PrioritizedSampler

    sampler = PrioritizedSampler(100_000, alpha=0.6, beta=0.4, squared=True)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(100_000), sampler=sampler)

The sampler replaces torchrl's own, which has the same name. New transitions get the largest
priority so far. The rest is yours (`examples/torchrl_dqn.py`): multiply the losses of a minibatch
by its ``priority_weight``, take the mean, and write the TD errors back by
``buffer.update_tensordict_priority(minibatch)``. Make torchrl's losses with
``use_prioritized_weights=False, reduction="none"``: their own weighting divides by the sum of the
weights, which undoes the division by the largest one.

`DQNLoss`, `DDPGLoss`, `TD3Loss`, `IQLLoss`, `CQLLoss` and `REDQLoss` report δ² as ``td_error``,
which would double α. With ``squared=True`` the sampler takes the root. `SACLoss` and `CrossQLoss`
report |δ|.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.common.arguments import (
    float_array,
    index_array,
    one_of,
    plain_array,
    up_to_one,
    whole_number,
)
from per_tutorial.common.files import open_arrays, require_like, require_settings, write_arrays
from per_tutorial.common.lazy import missing_extra
from per_tutorial.integrations.slot_sampler import SlotSampler, make_sampler
from per_tutorial.replay.contracts import State

try:
    from torchrl.data.replay_buffers.samplers import PrioritizedSampler as TorchRLSampler
    from torchrl.data.replay_buffers.samplers import Sampler
except ImportError as error:
    error.add_note("A wheel of torchrl fits one version of torch, and fails with any other.")
    raise missing_extra(error, __name__) from error

import torch

# torchrl asks for a `default_priority` and passes it back as if it were a TD error. This number
# means "keep the priority": float32 holds it exactly, and no TD error has this value.
KEEP_PRIORITY = -(2.0**127)
NOT_STORED = -1  # the index that a writer returns for an element that it did not store
FILE = "draws.npz"


class PrioritizedSampler(Sampler):
    """A sampler of torchrl's `ReplayBuffer` and `TensorDictReplayBuffer` (Schaul et al. 2016).

    It returns the index and ``priority_weight`` (batch,), float32. It takes TD errors δ, with or
    without sign, or δ²: |δ|, ε and α are applied here. It ignores a buffer's ``generator``.

    Args:
        max_capacity: `max_size` of the storage.
        alpha: how strongly priorities count, in [0, 1]; None: the sampler's own default.
        beta: exponent of the importance-sampling weights, in [0, 1]. Set it, or let a scheduler of
            torchrl do it, such as ``LinearScheduler(buffer, "beta", final_value=1.0,
            num_steps=…)``.
        sampler: a name in `per_tutorial.replay.samplers.SAMPLERS`.
        priority_epsilon, normalize: as in `ProportionalSampler`; None: the sampler's own default.
        seed: of the draws; None: from the system.
        reduction: "max", "min", "median" or "mean": how several TD errors become one, if an element
            of the storage is a trajectory.
        squared: whether updates contain δ², as those of `DQNLoss` do (see above).
        sort_every, kappa: settings of "rank" and of "lap" alone.

    Raises:
        ValueError, TypeError: an argument is invalid, or the sampler has no such setting.

    Example:
        >>> from torchrl.data import LazyTensorStorage, ReplayBuffer
        >>> from per_tutorial.integrations.torchrl import PrioritizedSampler
        >>> sampler = PrioritizedSampler(3, alpha=1.0, seed=0)
        >>> buffer = ReplayBuffer(storage=LazyTensorStorage(3), sampler=sampler, batch_size=2)
        >>> _ = buffer.extend(torch.arange(3.0))
        >>> buffer.update_priority(torch.arange(3), torch.tensor([-2.0, 1.0, 1.0]))  # raw TD errors
        >>> sampler.probabilities()
        tensor([0.5000, 0.2500, 0.2500], dtype=torch.float64)
    """

    def __init__(
        self,
        max_capacity: int,
        alpha: float | None = None,
        beta: float = 0.4,
        *,
        sampler: str = "proportional",
        priority_epsilon: float | None = None,
        normalize: str | None = None,
        sort_every: int | None = None,
        kappa: float | None = None,
        seed: int | None = None,
        reduction: str = "max",
        squared: bool = False,
    ) -> None:
        self.reduction = one_of("reduction", reduction, ("max", "min", "median", "mean"))
        self.squared = squared
        settings: dict[str, Any] = {"alpha": alpha, "priority_epsilon": priority_epsilon}
        settings |= {"normalize": normalize, "sort_every": sort_every, "kappa": kappa}
        whole_number("max_capacity", max_capacity)
        make = partial(make_sampler, sampler, max_capacity, seed=seed, **settings)
        self._sampler = SlotSampler(make)
        self.beta = up_to_one("beta", beta)  # of the next draws
        self._marked: Any = None  # the last index passed to `mark_update`

    def probabilities(self) -> torch.Tensor:
        """(max_capacity,): P(i) of every element, 0 where nothing is stored."""
        return torch.from_numpy(self._sampler.probabilities())

    @property
    def default_priority(self) -> float:
        """What torchrl passes back if there is no TD error: the priority stays as it is."""
        return KEEP_PRIORITY

    def sample(self, storage: Any, batch_size: int) -> tuple[Any, dict[str, Any]]:
        """Draw by priority: an index (batch,), or one for each axis of the storage, and weights.

        Raises:
            RuntimeError: nothing is stored yet.
        """
        if len(storage) == 0:
            raise RuntimeError("sample: the storage is empty")
        self._sync(storage)
        slots, weights = self._sampler.sample(batch_size, self.beta)
        index: Any = torch.from_numpy(slots)
        if storage.ndim > 1:
            index = torch.unravel_index(index, storage.shape)
        return index, {"priority_weight": torch.from_numpy(weights)}

    def mark_update(self, index: Any, *, storage: Any = None) -> None:
        """Give written elements the largest priority so far. Writers call this; so may you.

        Raises:
            ValueError: the storage is larger than `max_capacity`.
        """
        slots, capacity = _slots(index, storage), self._sampler.capacity
        if (slots >= capacity).any():
            raise ValueError(
                f"max_capacity: must be that of the storage, got {capacity} and an element at "
                f"{slots.max()}"
            )
        self._sampler.write(slots[slots != NOT_STORED])
        self._marked = index

    def extend(self, index: Any) -> None:
        """Register written elements, unless `mark_update` has just done it."""
        if index is not None and index is not self._marked:  # None: a writer stored nothing
            self.mark_update(index)
        self._marked = None

    add = extend  # the same for one element

    def update_priority(self, index: Any, priority: Any, *, storage: Any = None) -> None:
        """Update priorities from raw TD errors.

        Args:
            index: exactly as drawn, so that elements overwritten since are skipped. Any other index
                refers to the elements there now. In a storage of one axis, −1 is skipped.
            priority: TD errors, one for each index or one for all; δ² if `squared`.
            storage: needed if it has several axes.

        Raises:
            IndexError: nothing is stored at an index.
            ValueError: a TD error is not finite, a squared one is negative, the shapes differ, or
                an index of several axes is outside the storage.
            TypeError: the index is not of integers.
        """
        if storage is not None:
            self._sync(storage)
        slots, errors = _slots(index, storage), float_array("priority", priority)
        if errors.size not in (1, slots.size):
            raise ValueError(
                f"priority: must be one, or one for each of {slots.size} indices, got {errors.size}"
            )
        errors = np.broadcast_to(errors.reshape(-1), slots.shape)
        known = (slots != NOT_STORED) & (errors != KEEP_PRIORITY)
        slots, errors = slots[known], errors[known]
        if self.squared and (errors < 0).any():
            raise ValueError(f"priority: must be δ², at least 0, got {errors[errors < 0][0]}")
        if len(slots) > 0:
            self._sampler.update(slots, np.sqrt(errors) if self.squared else errors)

    def _sync(self, storage: Any) -> None:
        """Catch up with elements that were stored or removed without this sampler's knowledge."""
        self._sampler.sync(len(storage), lambda: np.arange(len(storage)))

    def _empty(self) -> None:
        self._sampler.clear()

    def state_dict(self) -> dict[str, Any]:
        """Priorities, β and random stream, copied, as tensors."""
        state = {name: torch.from_numpy(array.copy()) for name, array in self._state.items()}
        return {"settings": self._sampler.settings, "state": state}

    @property
    def _state(self) -> State:
        return self._sampler.state | {"beta": np.array(self.beta)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict`.

        Raises:
            ValueError: it belongs to something else, or to other settings. Nothing has changed.
        """
        settings, state = (state_dict.get(part, {}) for part in ("settings", "state"))
        require_settings("state_dict:", self._sampler.settings, settings)
        arrays = {name: plain_array(name, array) for name, array in state.items()}
        require_like(self._state, arrays)
        self._sampler.restore(arrays)
        self.beta = float(arrays["beta"])

    def dumps(self, path: str | os.PathLike[str]) -> None:
        """Write one file into a folder, which is created if missing."""
        folder = Path(path)
        folder.mkdir(exist_ok=True)
        write_arrays(folder / FILE, self._sampler.settings, self._state)

    def loads(self, path: str | os.PathLike[str]) -> None:
        """Continue from what `dumps` wrote. The file need not be trusted.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is damaged, or has other settings. Nothing has changed then.
        """
        with open_arrays(Path(path) / FILE) as (settings, state):
            self.load_state_dict({"settings": settings, "state": state})


# torchrl's buffers write TD errors back only to instances of torchrl's own class.
TorchRLSampler.register(PrioritizedSampler)


def _slots(index: Any, storage: Any) -> NDArray[np.int64]:
    """(n,): torchrl's index as slots in [0, capacity); −1 stays, if there is one axis."""
    if isinstance(index, tuple):
        index = torch.stack([torch.as_tensor(axis) for axis in index], -1)
    slots = np.atleast_1d(index_array("index", index))
    if slots.ndim < 2:
        return slots
    if storage is None:
        raise ValueError("storage: is needed for an index of several axes, got None")
    *_, axes = slots.shape
    flat = np.ravel_multi_index(tuple(slots.reshape(-1, axes).T), storage.shape)
    return np.asarray(flat, dtype=np.int64)
