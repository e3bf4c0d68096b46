"""Q-networks of runs side by side: every parameter has a leading axis, one slice per run.

A layer of R networks is one batched matrix product, so ten networks cost little more than one, and
the runs stay independent.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from per_tutorial.common.arguments import whole_number
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.env_specs import SMALLEST_FRAME

LARGEST_SEED = 2**64 - 1  # for PyTorch's generators

# Filters, kernel size and stride of each convolution. Those of Mnih et al. (2015) turn 84×84 pixels
# into 7×7; the small ones turn 42×42 into 4×4, with less than half of the computing.
CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
SMALL_CONVOLUTIONS = ((32, 5, 2), (64, 3, 2), (64, 3, 2))
BOARD_CONVOLUTIONS = ((16, 3, 1),)  # for the 10×10 cells of MinAtar (Young & Tian 2019)

Inputs = int | tuple[int, ...]  # numbers in an observation, or the shape of its frames


def seed_list(seeds: int | Iterable[int]) -> list[int]:
    """One int for each run; a single int is one run. ValueError unless all are different."""
    given = list(seeds) if isinstance(seeds, Iterable) else [seeds]
    if not given:
        raise ValueError("seeds: at least one is needed, got none")
    checked = [whole_number("seeds", seed, minimum=0, maximum=LARGEST_SEED) for seed in given]
    if len(set(checked)) < len(checked):
        raise ValueError(f"seeds: must differ from one another, got {checked}")
    return checked


def _convolutions(size: int) -> tuple[tuple[int, int, int], ...]:
    """The convolutions for images of this height and width."""
    if size >= 64:
        return CONVOLUTIONS
    return SMALL_CONVOLUTIONS if size >= SMALLEST_FRAME else BOARD_CONVOLUTIONS


def uniform_parameter(
    generators: Sequence[torch.Generator], inputs: int, *shape: int
) -> nn.Parameter:
    """(runs, *shape) numbers, initialised as in PyTorch's own layers for this fan-in.

    The slice of each run comes from its own generator.
    """
    draws = [torch.rand(shape, generator=each, dtype=torch.float32) for each in generators]
    return nn.Parameter((2 * torch.stack(draws) - 1) * (1 / math.sqrt(inputs)))


class StackedLinear(nn.Module):
    """R linear layers side by side: (runs, batch, inputs) → (runs, batch, outputs)."""

    def __init__(self, inputs: int, outputs: int, generators: Sequence[torch.Generator]) -> None:
        super().__init__()
        self.weight = uniform_parameter(generators, inputs, inputs, outputs)
        self.bias = uniform_parameter(generators, inputs, 1, outputs)

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, inputs, self.weight)


class StackedConvolution(nn.Module):
    """R convolutions side by side, the channels of one run after those of another.

    (batch, runs · channels, height, width) → (batch, runs · filters, smaller, smaller).
    """

    def __init__(
        self,
        channels: int,
        filters: int,
        kernel: int,
        stride: int,
        generators: Sequence[torch.Generator],
    ) -> None:
        super().__init__()
        inputs = channels * kernel**2
        self.weight = uniform_parameter(generators, inputs, filters, channels, kernel, kernel)
        self.bias = uniform_parameter(generators, inputs, filters)
        self.stride = stride

    def forward(self, images: Tensor) -> Tensor:
        weight, bias = self.weight.flatten(0, 1), self.bias.flatten()
        return nn.functional.conv2d(images, weight, bias, self.stride, groups=len(self.weight))


class QNetwork(nn.Module):
    """R multi-layer perceptrons: observations (runs, batch, inputs) → Q (runs, batch, actions).

    With ``dueling`` the last layer has one output for the value V of the state and one for the
    advantage A of each action: Q = V + A − mean(A) (Wang et al. 2016, equation 9; notebook 04).

    Args:
        inputs: numbers in an observation, an int; or the shape of square frames, such as (4, 84,
            84). Observations are then uint8 or bool, (runs, batch, 4, 84, 84), and convolutions
            come first (notebook 05).
        actions: number of actions.
        hidden: units of each hidden layer.
        seeds: one int per run.
        dueling: see above.
        bfloat16: whether all layers but the last one compute with 8 significant bits; the
            parameters keep their precision.

    Example:
        >>> import torch
        >>> from per_tutorial import QNetwork
        >>> network = QNetwork(inputs=4, actions=2, hidden=(32, 32), seeds=[0, 1, 2], dueling=True)
        >>> network(torch.zeros(3, 5, 4)).shape  # three runs, five observations
        torch.Size([3, 5, 2])
    """

    def __init__(
        self,
        inputs: Inputs,
        actions: int,
        hidden: Sequence[int],
        seeds: Sequence[int],
        *,
        dueling: bool = False,
        bfloat16: bool = False,
    ) -> None:
        super().__init__()
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.convolutions = nn.ModuleList()
        if not isinstance(inputs, int):
            channels, size, _ = inputs
            for filters, kernel, stride in _convolutions(size):
                layer = StackedConvolution(channels, filters, kernel, stride, generators)
                self.convolutions.append(layer)
                channels, size = filters, (size - kernel) // stride + 1
            inputs = channels * size**2
        sizes = [inputs, *hidden, actions + 1 if dueling else actions]
        self.layers = nn.ModuleList(StackedLinear(*each, generators) for each in pairwise(sizes))
        self.dueling = dueling
        self.in_bfloat16 = bfloat16

    def forward(self, observations: Tensor) -> Tensor:
        *hidden, last = cast(Iterable[StackedLinear], self.layers)
        device = observations.device.type
        with torch.autocast(device, torch.bfloat16) if self.in_bfloat16 else nullcontext():
            features = (
                self._convolved(observations, last.weight.dtype)
                if self.convolutions
                else observations
            )
            for layer in hidden:
                features = torch.relu_(layer(features))
        # Differences between actions are small compared with Q, so the last layer is not rounded.
        outputs = last(features.to(last.weight.dtype))
        if not self.dueling:
            return outputs
        value, advantages = outputs[..., :1], outputs[..., 1:]
        return value + advantages - advantages.mean(dim=-1, keepdim=True)

    def _convolved(self, frames: Tensor, dtype: torch.dtype) -> Tensor:
        """Frames (runs, batch, stack, size, size) of bytes or bits → (runs, batch, inputs)."""
        runs, batch = frames.shape[:2]
        images = frames.transpose(0, 1).flatten(1, 2)
        # Channels last in memory: saved a tenth of an update of 42×42 frames on a CPU.
        images = images.to(dtype=dtype, memory_format=torch.channels_last)
        if frames.dtype != torch.bool:
            images = images / 255
        *first, last = self.convolutions
        for convolution in first:
            images = torch.relu(convolution(images))
        # The last ReLU comes after the copy to another layout. The numbers are the same; before it,
        # its gradients and outputs would differ in layout: a fifth of an update of MinAtar.
        return torch.relu(last(images).reshape(batch, runs, -1)).transpose(0, 1)


def make_network(
    network_class: type[nn.Module],
    config: DQNConfig,
    inputs: Inputs,
    actions: int,
    seeds: Sequence[int],
) -> nn.Module:
    """A network of these settings; a class of one's own need not have options that are off."""
    options = {"dueling": config.dueling, "bfloat16": config.precision == "bfloat16"}
    chosen = {name: True for name, on in options.items() if on}
    return network_class(inputs, actions, config.hidden, seeds, **chosen)
