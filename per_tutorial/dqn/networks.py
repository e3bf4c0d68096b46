"""Q-networks for a stack of runs: every parameter has a leading axis, one slice per run.

A layer of R networks is one batched matrix product, so ten networks cost little more than one, and
no run touches the numbers of another. A single network is a stack of one.
"""

import math
from contextlib import nullcontext

import torch
from torch import nn

# Filters, kernel size and stride of each convolution. Those of Mnih et al. (2015) turn 84×84 pixels
# into 7×7; frames half as high and wide, with 4×4 in the end, take less than half of the computing.
CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
SMALL_CONVOLUTIONS = ((32, 5, 2), (64, 3, 2), (64, 3, 2))


def uniform_parameter(generators, inputs, *shape):
    """(runs, *shape) numbers, distributed as in PyTorch's own layers of so many inputs.

    The slice of each run comes from its own generator.
    """
    draws = [torch.rand(shape, generator=generator) for generator in generators]
    return nn.Parameter((2 * torch.stack(draws) - 1) * (1 / math.sqrt(inputs)))


class StackedLinear(nn.Module):
    """R linear layers side by side: (runs, batch, inputs) → (runs, batch, outputs)."""

    def __init__(self, inputs, outputs, generators):
        super().__init__()
        self.weight = uniform_parameter(generators, inputs, inputs, outputs)
        self.bias = uniform_parameter(generators, inputs, 1, outputs)

    def forward(self, inputs):
        return torch.baddbmm(self.bias, inputs, self.weight)


class StackedConvolution(nn.Module):
    """R convolutions side by side, the channels of one run after those of another.

    (batch, runs · channels, height, width) → (batch, runs · filters, smaller, smaller).
    """

    def __init__(self, channels, filters, kernel, stride, generators):
        super().__init__()
        inputs = channels * kernel**2
        self.weight = uniform_parameter(generators, inputs, filters, channels, kernel, kernel)
        self.bias = uniform_parameter(generators, inputs, filters)
        self.stride = stride

    def forward(self, images):
        weight, bias = self.weight.flatten(0, 1), self.bias.flatten()
        return nn.functional.conv2d(images, weight, bias, self.stride, groups=len(self.weight))


class QNetwork(nn.Module):
    """R multi-layer perceptrons: observations (runs, batch, inputs) → Q (runs, batch, actions).

    With ``dueling`` the last layer has one output for the value V of the state and one for the
    advantage A of each action: Q = V + A − mean(A) (Wang et al. 2016, equation 9; notebook 04).

    Args:
        inputs: numbers in an observation, an int. Or the shape of a stack of square frames, such as
            (4, 84, 84); observations are uint8 (runs, batch, 4, 84, 84) then, and convolutions come
            first (notebook 05).
        actions: number of actions.
        hidden: units of each hidden layer.
        seeds: one int per run.
        dueling: see above.
        bfloat16: whether all layers but the last one compute with 8 significant bits. The parameters
            keep all theirs.
    """

    def __init__(self, inputs, actions, hidden, seeds, *, dueling=False, bfloat16=False):
        super().__init__()
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.convolutions = nn.ModuleList()
        if not isinstance(inputs, int):
            channels, size, _ = inputs
            for filters, kernel, stride in CONVOLUTIONS if size >= 64 else SMALL_CONVOLUTIONS:
                layer = StackedConvolution(channels, filters, kernel, stride, generators)
                self.convolutions.append(layer)
                channels, size = filters, (size - kernel) // stride + 1
            inputs = channels * size**2
        sizes = [inputs, *hidden, actions + 1 if dueling else actions]
        self.layers = nn.ModuleList(
            StackedLinear(*pair, generators) for pair in zip(sizes, sizes[1:], strict=False)
        )
        self.dueling = dueling
        self.bfloat16 = bfloat16

    def forward(self, observations):
        *hidden, last = self.layers
        device = observations.device.type
        with torch.autocast(device, torch.bfloat16) if self.bfloat16 else nullcontext():
            features = self._look_at(observations) if self.convolutions else observations
            for layer in hidden:
                features = torch.relu_(layer(features))
        # What tells actions apart is small beside Q itself, so the last layer rounds nothing.
        outputs = last(features.to(last.weight.dtype))
        if not self.dueling:
            return outputs
        value, advantages = outputs[..., :1], outputs[..., 1:]
        return value + advantages - advantages.mean(dim=-1, keepdim=True)

    def _look_at(self, frames):
        """Frames (runs, batch, stack, size, size) uint8 → features (runs, batch, inputs)."""
        runs, batch = frames.shape[:2]
        images = frames.transpose(0, 1).flatten(1, 2)
        # Channels last in memory: measured to save a tenth of an update of 42×42 frames on a CPU.
        dtype = self.layers[0].weight.dtype
        images = images.to(dtype=dtype, memory_format=torch.channels_last) / 255
        for convolution in self.convolutions:
            images = torch.relu(convolution(images))
        return images.reshape(batch, runs, -1).transpose(0, 1)
