"""An update as one compiled function, with fewer passes over memory than separate operations.

Each PyTorch operation costs microseconds, which is most of an update of one small network, and
reads and writes memory by itself. `torch.compile` turns the whole update into a few loops. This
takes some seconds at the first update; the results differ by rounding. After eight kinds of
networks in a process it warns, and further ones are updated operation by operation.
"""

import math
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.func import functional_call, vjp

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.losses import Tensors, clip_by_run, select_actions
from per_tutorial.dqn.networks import QNetwork


class Learner(Protocol):
    """The members of a `DQNLearner` that are used here."""

    config: DQNConfig
    online: QNetwork
    optimizer: torch.optim.Optimizer  # with its moments
    updates: int

    def errors_and_losses(
        self, q_values: Tensor, tensors: Tensors
    ) -> tuple[Tensor, Tensor, Tensor]:
        """δ of Q(s, a), the losses, and their gradients with respect to Q(s, a)."""


class CompiledStep:
    """A learner's gradient and its optimiser's step as one function.

    Adam is algorithm 1 of Kingma & Ba (2015); RMSprop is PyTorch's.

    Args:
        learner: its optimiser holds the moments, as if it had made the steps.
    """

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        (self.group,) = learner.optimizer.param_groups
        self.epsilon, self.momentum = self.group["eps"], learner.config.momentum
        self.adam = learner.config.optimizer == "adam"
        decays = self.group["betas"] if self.adam else (self.group["alpha"],) * 2
        self.first_decay, self.second_decay = decays
        self._compiled = torch.compile(self._step, dynamic=False)

    @torch.no_grad()
    def __call__(self, tensors: Tensors) -> tuple[Tensor, Tensor, Tensor]:
        """Move the online networks down the gradient; returns δ, Q(s, a) and the losses."""
        states = [self.learner.optimizer.state[parameter] for parameter in self.group["params"]]
        # Only Adam corrects for moments that begin at zero.
        k = self.learner.updates + 1 if self.adam else math.inf
        # As tensors: plain numbers would be compiled in, once for each value. Tensors without axes
        # do not change the dtype of the parameters.
        scale = torch.tensor(1 / (1 - self.second_decay**k), dtype=torch.float64)
        step_size = torch.tensor(self.group["lr"] / (1 - self.first_decay**k), dtype=torch.float64)
        return self._compiled(tensors, states, step_size, scale)

    def _step(
        self, tensors: Tensors, states: list[dict[str, Any]], step_size: Tensor, scale: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        learner = self.learner
        names, parameters = zip(*learner.online.named_parameters(), strict=True)

        def q_of(*parameters: Tensor) -> Tensor:
            named = dict(zip(names, parameters, strict=True))
            q_values = functional_call(learner.online, named, (tensors.observations,))
            return select_actions(q_values, tensors.actions)

        q_values, pull_back = vjp(q_of, *parameters)[:2]
        td_errors, losses, gradients = learner.errors_and_losses(q_values, tensors)
        gradients = pull_back(gradients)
        if learner.config.max_grad_norm is not None:
            clip_by_run(gradients, learner.config.max_grad_norm)
        for parameter, gradient, state in zip(parameters, gradients, states, strict=True):
            state["step"] += 1
            move = self._adam if self.adam else self._rmsprop
            parameter.sub_(move(gradient, state, step_size, scale))
        return td_errors, q_values, losses

    def _adam(
        self, gradient: Tensor, state: dict[str, Any], step_size: Tensor, scale: Tensor
    ) -> Tensor:
        mean = state["exp_avg"].lerp_(gradient, 1 - self.first_decay)
        square = state["exp_avg_sq"].lerp_(gradient.square(), 1 - self.second_decay)
        return step_size * mean / ((scale * square).sqrt() + self.epsilon)

    def _rmsprop(
        self, gradient: Tensor, state: dict[str, Any], step_size: Tensor, scale: Tensor
    ) -> Tensor:
        mean = state["grad_avg"].lerp_(gradient, 1 - self.first_decay)
        square = state["square_avg"].lerp_(gradient.square(), 1 - self.second_decay)
        step = gradient / ((square - mean.square()).sqrt() + self.epsilon)
        if self.momentum:
            step = state["momentum_buffer"].mul_(self.momentum).add_(step)
        return step_size * step
