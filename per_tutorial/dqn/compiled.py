"""The gradients of an update as one compiled function, with fewer passes over memory.

Each PyTorch operation costs microseconds, which is most of an update of one small network, and
reads and writes memory by itself. `torch.compile` turns those of an update into a few loops. On a
GPU it also records them as a CUDA graph, which is started by one call instead of some hundred; so
are the Q-values that choose actions. This takes some seconds at the first update; the results
differ by rounding. After eight kinds of networks in a process it warns, and further ones are
updated operation by operation.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call, vjp

from per_tutorial.dqn.losses import Tensors, select_actions
from per_tutorial.dqn.networks import QNetwork

#: Of a minibatch: the gradients of all parameters, δ, Q(s, a) and the losses.
Gradients = tuple[list[Tensor], Tensor, Tensor, Tensor]


def compiled_gradients(
    network: QNetwork,
    errors_and_losses: Callable[[Tensor, Tensors], tuple[Tensor, Tensor, Tensor]],
) -> Callable[[Tensors], Gradients]:
    """What `DQNLearner.gradients` does with these two of its members, as one function."""

    def gradients(tensors: Tensors) -> Gradients:
        names, parameters = zip(*network.named_parameters(), strict=True)

        def q_of(*parameters: Tensor) -> Tensor:
            named = dict(zip(names, parameters, strict=True))
            q_values = functional_call(network, named, (tensors.observations,))
            return select_actions(q_values, tensors.actions)

        q_values, pull_back = vjp(q_of, *parameters)[:2]
        td_errors, losses, q_gradients = errors_and_losses(q_values, tensors)
        found = [gradient.contiguous() for gradient in pull_back(q_gradients)]
        return found, td_errors, q_values, losses

    mode = "reduce-overhead" if _on_gpu(network) else None
    return torch.no_grad()(torch.compile(gradients, dynamic=False, mode=mode))


def compiled_forward(network: QNetwork) -> Callable[[Tensor], Tensor]:
    """The network itself; on a GPU as a CUDA graph, whose result the next call overwrites."""
    if not _on_gpu(network):
        return network
    return torch.compile(network, dynamic=False, mode="reduce-overhead")


def _on_gpu(network: QNetwork) -> bool:
    return next(network.parameters()).is_cuda
