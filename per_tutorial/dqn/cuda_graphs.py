"""Functions of tensors on a GPU as CUDA graphs.

Each PyTorch operation costs microseconds of the processor's time, which is most of an update of one
small network: a GPU mostly waits. A CUDA graph starts hundreds of operations by one call, and
computes the same.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


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
        self._seen: set[tuple] = set()  # the shapes of earlier calls
        self._recordings: dict[tuple, tuple[torch.cuda.CUDAGraph, list, Any]] = {}

    def __reduce__(self) -> tuple:  # a copy records for itself
        return Recorded, (self._function, self._device)

    def __call__(self, *tensors: Tensor) -> Any:
        shapes = tuple((each.shape, each.dtype) for each in tensors)
        if shapes not in self._seen:
            self._seen.add(shapes)
            return self._function(*tensors)
        if shapes not in self._recordings:
            self._recordings[shapes] = self._record(tensors)
        graph, inputs, results = self._recordings[shapes]
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
