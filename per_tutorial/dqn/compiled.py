"""Faster updates: on a CPU one compiled function, on a GPU one CUDA graph.

Each PyTorch operation costs microseconds of the processor's time, which is most of an update of one
small network, and on a CPU it reads and writes memory by itself.

On a CPU, `torch.compile` turns the operations of an update into a few loops. This takes some
seconds at the first update; the results differ by rounding. After eight kinds of networks in a
process it warns, and further ones are updated operation by operation.

On a GPU, an update is recorded as a CUDA graph, from the minibatch to the step of the optimiser,
and one call starts all of it; so are the Q-values that choose actions. It computes the same.
"""

from collections.abc import Callable, Sequence
from typing import Any

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

    return torch.no_grad()(torch.compile(gradients, dynamic=False))


class Recorded:
    """A function of tensors as a CUDA graph, one for each combination of shapes.

    The first call with these shapes works as it is, since what it loads could not be recorded. The
    second records the function; from then on, a call copies its arguments to where the graph reads
    them, and starts it. What it returns is overwritten by the next call.

    Args:
        function: it takes tensors, on a GPU or not, and reads nothing that is replaced later.
        device: the GPU.
    """

    def __init__(self, function: Callable[..., Any], device: str) -> None:
        self._function, self._device = function, device
        self._recordings: dict[tuple, tuple[torch.cuda.CUDAGraph, list, Any] | None] = {}

    def __reduce__(self) -> tuple:  # a copy records for itself
        return Recorded, (self._function, self._device)

    def __call__(self, *tensors: Tensor) -> Any:
        shapes = tuple((each.shape, each.dtype) for each in tensors)
        if shapes not in self._recordings:
            self._recordings[shapes] = None
            return self._function(*tensors)
        recording = self._recordings[shapes] or self._record(tensors)
        graph, inputs, results = self._recordings[shapes] = recording
        for tensor, (pinned, there) in zip(tensors, inputs, strict=True):
            # From pinned memory the GPU copies while the processor goes on.
            source = tensor if tensor.is_cuda else pinned.copy_(tensor)
            there.copy_(source, non_blocking=True)
        graph.replay()
        return results

    def _record(self, tensors: Sequence[Tensor]) -> tuple[torch.cuda.CUDAGraph, list, Any]:
        pinned = [torch.empty_like(each, device="cpu").pin_memory() for each in tensors]
        there = [each.to(self._device) for each in pinned]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self._device), torch.cuda.graph(graph):
            results = self._function(*there)
        return graph, list(zip(pinned, there, strict=True)), results
