"""PyTorch's optimisers for a stack of runs, with moments from the start.

Adam (Kingma & Ba 2015), or the centred RMSprop of Mnih et al. (2015), which divides a gradient by
its standard deviation over the last steps. Both work number by number: the runs stay independent.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from per_tutorial.dqn.config import DQNConfig

RMSPROP_DECAY = 0.95  # of both moments; Mnih et al. call that of the first the gradient momentum
RMSPROP_EPSILON = 0.01

MOMENTS = {"adam": ("exp_avg", "exp_avg_sq"), "rmsprop": ("square_avg", "grad_avg")}


def make_optimizer(config: DQNConfig, parameters: Sequence[Tensor]) -> torch.optim.Optimizer:
    """The optimiser of these parameters, with its moments set to zero."""
    optimizer: torch.optim.Optimizer
    moments = list(MOMENTS[config.optimizer])
    # A CUDA graph reads the learning rate from where it is: it may change after the recording.
    recorded = config.compiled and parameters[0].is_cuda
    rate: Any = config.learning_rate
    if recorded:
        rate = torch.tensor(rate, dtype=torch.float32, device=parameters[0].device)
    if config.optimizer == "adam":
        optimizer = torch.optim.Adam(parameters, lr=rate, fused=True)
    else:
        optimizer = torch.optim.RMSprop(
            parameters,
            lr=rate,
            alpha=RMSPROP_DECAY,
            eps=RMSPROP_EPSILON,
            momentum=config.momentum,
            centered=True,
            capturable=recorded,
        )
        if config.momentum:
            moments.append("momentum_buffer")
    for parameter in parameters:
        optimizer.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            **{name: torch.zeros_like(parameter) for name in moments},
        }
    return optimizer


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of all parameters from now on."""
    (group,) = optimizer.param_groups
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate)
    else:
        group["lr"] = rate


@torch.no_grad()
def descend(optimizer: torch.optim.Optimizer, gradients: list[Tensor]) -> None:
    """One step of the optimiser with the gradients of its parameters."""
    (group,) = optimizer.param_groups
    parameters = group["params"]
    if isinstance(optimizer, torch.optim.Adam):
        _adam_step(group, [optimizer.state[parameter] for parameter in parameters], gradients)
        return
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()


def _adam_step(group: dict, moments: list[dict[str, Tensor]], gradients: list[Tensor]) -> None:
    """The kernel that `torch.optim.Adam` calls.

    For small networks Adam's own `step` takes four times as long, since it checks hooks, groups and
    devices each time.
    """
    means, squares, steps = (
        [each[name] for each in moments] for name in ("exp_avg", "exp_avg_sq", "step")
    )
    torch._foreach_add_(steps, 1)
    torch._fused_adam_(
        group["params"],
        gradients,
        means,
        squares,
        [],
        steps,
        lr=group["lr"],
        beta1=group["betas"][0],
        beta2=group["betas"][1],
        weight_decay=0.0,
        eps=group["eps"],
        amsgrad=False,
        maximize=False,
    )
