"""The n-step returns of transitions in a buffer of Stable-Baselines3."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.replay.ring import sum_n_steps


class Returns(NamedTuple):
    """n-step returns of a minibatch, each over k ≤ n_steps steps."""

    rewards: NDArray[np.float32]  # (batch, 1), discounted sums
    last: NDArray[np.int64]  # (batch,), slots of the last steps, whose next observations count
    discounts: NDArray[np.float32] | None  # (batch, 1), γ^k for the values of those observations


def n_step_returns(
    slots: NDArray[np.int64],
    rewards: NDArray[np.float32],
    dones: NDArray[np.float32],
    timeouts: NDArray[np.float32],
    *,
    added: int,
    n_steps: int,
    gamma: float,
    normalize: Callable[[NDArray], NDArray] | None,
) -> Returns:
    """The returns of the transitions in ``slots`` (batch,).

    A return covers ``n_steps`` steps, or fewer if its episode or the stored data end. At the newest
    transition, as at a time limit, the value of the next observation counts.

    Args:
        rewards, dones, timeouts: (steps, environments), of the whole buffer.
        added: transitions ever added.
        n_steps, gamma: n and γ.
        normalize: applied to each reward before the sum, if given.
    """
    environments = rewards.shape[1]
    shape = (1, len(slots))
    sums, last, steps = np.empty(shape), np.empty(shape, np.int64), np.empty(shape, np.int64)
    sum_n_steps(
        *(rewards.reshape(1, -1), dones.reshape(1, -1), timeouts.reshape(1, -1)),
        *(np.array([added]), environments, slots[None], n_steps, gamma),
        *(sums, last, steps),
    )
    if normalize is not None:
        ahead = np.arange(n_steps)
        windows = (slots[:, None] + ahead * environments) % rewards.size
        factors = np.where(ahead < steps[0, :, None], gamma**ahead, 0)
        sums = (normalize(rewards.reshape(-1).take(windows)) * factors).sum(axis=1)[None]
    discounts = gamma ** steps[0, :, None].astype(np.float32)
    return Returns(sums[0, :, None].astype(np.float32), last[0], discounts)
