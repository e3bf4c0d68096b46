"""Q-networks for a stack of runs: every parameter has a leading axis, one slice per run.

A layer of R networks is one batched matrix product, so ten networks cost little more than one, and
no run touches the numbers of another. A single network is a stack of one.
"""

import math

import torch
from torch import nn


class StackedLinear(nn.Module):
    """R linear layers side by side: (runs, batch, inputs) → (runs, batch, outputs).

    Each is initialised as `torch.nn.Linear` would be, from the generator of its run.
    """

    def __init__(self, inputs, outputs, generators):
        super().__init__()
        bound = 1 / math.sqrt(inputs)

        def uniform(*shape):
            draws = [torch.rand(shape, generator=generator) for generator in generators]
            return nn.Parameter((2 * torch.stack(draws) - 1) * bound)

        self.weight = uniform(inputs, outputs)
        self.bias = uniform(1, outputs)

    def forward(self, inputs):
        return torch.baddbmm(self.bias, inputs, self.weight)


class QNetwork(nn.Module):
    """R multi-layer perceptrons: observations (runs, batch, inputs) → Q (runs, batch, actions).

    With ``dueling`` the last layer has one output for the value V of the state and one for the
    advantage A of each action: Q = V + A − mean(A) (Wang et al. 2016, equation 9; notebook 04).
    """

    def __init__(self, inputs, actions, hidden, seeds, *, dueling=False):
        super().__init__()
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        sizes = [inputs, *hidden, actions + 1 if dueling else actions]
        self.layers = nn.ModuleList(
            StackedLinear(*pair, generators) for pair in zip(sizes, sizes[1:], strict=False)
        )
        self.dueling = dueling

    def forward(self, observations):
        *hidden, last = self.layers
        features = observations
        for layer in hidden:
            features = torch.relu(layer(features))
        outputs = last(features)
        if not self.dueling:
            return outputs
        value, advantages = outputs[..., :1], outputs[..., 1:]
        return value + advantages - advantages.mean(dim=-1, keepdim=True)
