"""The gradients of an update as one compiled function, with fewer passes over memory.

Each PyTorch operation costs microseconds, which is most of an update of one small network, and
reads and writes memory by itself. `torch.compile` turns those of an update into a few loops. This
takes some seconds at the first update; the results differ by rounding. After eight kinds of
networks in a process it warns, and further ones are updated operation by operation.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor
from torch.func import functional_call, vjp

from per_tutorial.dqn.losses import Tensors, select_actions
from per_tutorial.dqn.networks import QNetwork

#: Of a minibatch: the gradients of all parameters, δ, Q(s, a) and the losses.
Gradients = tuple[list[Tensor], Tensor, Tensor, Tensor]


class Learner(Protocol):
    """The members of a `DQNLearner` that are used here."""

    online: QNetwork

    def errors_and_losses(
        self, q_values: Tensor, tensors: Tensors
    ) -> tuple[Tensor, Tensor, Tensor]:
        """δ of Q(s, a), the losses, and their gradients with respect to Q(s, a)."""


def compiled_gradients(learner: Learner) -> Callable[[Tensors], Gradients]:
    """What `DQNLearner.gradients` does, as one function; autograd itself is not compiled."""

    def gradients(tensors: Tensors) -> Gradients:
        names, parameters = zip(*learner.online.named_parameters(), strict=True)

        def q_of(*parameters: Tensor) -> Tensor:
            named = dict(zip(names, parameters, strict=True))
            q_values = functional_call(learner.online, named, (tensors.observations,))
            return select_actions(q_values, tensors.actions)

        q_values, pull_back = vjp(q_of, *parameters)[:2]
        td_errors, losses, q_gradients = learner.errors_and_losses(q_values, tensors)
        return list(pull_back(q_gradients)), td_errors, q_values, losses

    return torch.no_grad()(torch.compile(gradients, dynamic=False))
