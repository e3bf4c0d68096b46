"""PyTorch's optimisers for a stack of runs, with moments from the start.

Adam (Kingma & Ba 2015), or the centred RMSprop of Mnih et al. (2015), which divides a gradient by
its standard deviation over the last steps. Both work number by number: the runs stay independent.

Their functions are called, not their classes. The first class that is made loads PyTorch's
compiler, for two seconds, and a step takes four times as long for small networks, since hooks,
groups and devices are checked each time.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.rmsprop import rmsprop

from per_tutorial.dqn.config import DQNConfig

RMSPROP_DECAY = 0.95  # of both moments; Mnih et al. call that of the first the gradient momentum
RMSPROP_EPSILON = 0.01

MOMENTS = {
    "adam": ("exp_avg", "exp_avg_sq"),
    "rmsprop": ("square_avg", "grad_avg", "momentum_buffer"),
}


class Optimizer:
    """The optimiser that the settings name.

    Attributes:
        learning_rate: of the next steps, a float, or a tensor on the GPU.
        moments: one dict of tensors for each parameter, all zero at the start.
    """

    def __init__(self, config: DQNConfig, parameters: Sequence[Tensor]) -> None:
        self._config, self._parameters = config, list(parameters)
        device = self._parameters[0].device
        self._recorded = config.compiled and device.type == "cuda"
        rate: Any = config.learning_rate
        if self._recorded:  # a CUDA graph reads it from where it is, so it may change later
            rate = torch.tensor(rate, dtype=torch.float32, device=device)
        self.learning_rate = rate
        self.moments: list[dict[str, Tensor]] = [
            {
                "step": torch.zeros((), dtype=torch.float32, device=device),
                **{name: torch.zeros_like(parameter) for name in MOMENTS[config.optimizer]},
            }
            for parameter in self._parameters
        ]

    def set_learning_rate(self, rate: float) -> None:
        if self._recorded:
            self.learning_rate.fill_(rate)
        else:
            self.learning_rate = rate

    @torch.no_grad()
    def descend(self, gradients: list[Tensor]) -> None:
        """One step with the gradients of the parameters."""
        of = {name: [each[name] for each in self.moments] for name in self.moments[0]}
        if self._config.optimizer == "adam":
            torch._foreach_add_(of["step"], 1)
            torch._fused_adam_(
                self._parameters,
                gradients,
                of["exp_avg"],
                of["exp_avg_sq"],
                [],
                of["step"],
                lr=self.learning_rate,
                beta1=0.9,
                beta2=0.999,
                weight_decay=0.0,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
            )
        else:
            rmsprop(
                self._parameters,
                gradients,
                of["square_avg"],
                of["grad_avg"],
                of["momentum_buffer"],
                of["step"],
                lr=self.learning_rate,
                alpha=RMSPROP_DECAY,
                eps=RMSPROP_EPSILON,
                weight_decay=0.0,
                momentum=self._config.momentum,
                centered=True,
                capturable=self._recorded,
            )
