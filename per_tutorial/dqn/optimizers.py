"""Adam (Kingma & Ba 2015), with moments from the start.

PyTorch's function is called, not its class. The first class that is made loads PyTorch's compiler,
for two seconds, and a step takes four times as long for small networks, since hooks, groups and
devices are checked each time.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from per_tutorial.dqn.config import DQNConfig


class Optimizer:
    """Adam for all runs: it works number by number, so they stay independent.

    Another optimiser is a subclass with a `descend` of its own (`DQNLearner.optimizer_class`).

    Attributes:
        parameters: tensors (runs, ...), which `descend` changes in place.
        learning_rate: of the next steps, a float, or a tensor on the GPU.
        moments: one dict of tensors for each parameter, all zero at the start; checkpoints have it.
    """

    def __init__(self, config: DQNConfig, parameters: Sequence[Tensor]) -> None:
        self.parameters = list(parameters)
        device = self.parameters[0].device
        self._recorded = config.compiled and device.type == "cuda"
        rate: Any = config.learning_rate
        if self._recorded:  # a CUDA graph reads it from where it is, so it may change later
            rate = torch.tensor(rate, dtype=torch.float32, device=device)
        self.learning_rate = rate
        self.moments: list[dict[str, Tensor]] = [
            {
                "step": torch.zeros((), dtype=torch.float32, device=device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
            for parameter in self.parameters
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
        torch._foreach_add_(of["step"], 1)
        torch._fused_adam_(
            self.parameters,
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
