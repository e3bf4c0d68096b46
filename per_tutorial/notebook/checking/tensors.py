"""Exercises in torch: tensors as arguments, and results that carry a gradient."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from per_tutorial.notebook.checking.answers import Case, Give, Hint, call, same
from per_tutorial.notebook.checking.comparing import Function

NO_GRADIENT = (
    "the values are right, but no gradient flows back through them, so the network could not "
    "learn: stay in torch, without `.item()`, `.detach()`, `float()` or NumPy."
)
NOT_ONE = "the values are right, but they come as {}. Return one tensor: `torch.stack` makes it."
BACKWARD = (
    "your function calls `.backward()` itself. The caller does that, and then the gradient would "
    "count twice: only return the result."
)


def tensors(trained: Sequence[str] = ()) -> Give:
    """Gives copies of tensors; the ``trained`` ones carry a gradient, like a network's output."""

    def give(name: str, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        # Like a network's output, it is not a leaf: a leaf could not be changed in place.
        return value.clone().requires_grad_().clone() if name in trained else value.clone()

    return give


def of_the_other_kind(name: str, value: Any) -> Any:
    """A copy of an argument: a tensor for an array, and an array for a tensor."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    return value.numpy().copy() if isinstance(value, torch.Tensor) else deepcopy(value)


def check_gradient(answer: Any, right: Function, case: Case, trained: Sequence[str]) -> None:
    """Raise a `Hint` unless the gradient of the answer is that of the right function."""
    gradients = []
    for function in (right, answer):
        leaves = {name: case[name].clone().requires_grad_() for name in trained}
        given = {name: leaves[name].clone() if name in trained else case[name] for name in case}
        result = call(function, given)
        if any(leaf.grad is not None for leaf in leaves.values()):
            raise Hint(BACKWARD)
        if isinstance(result, list | tuple) and any(map(torch.is_tensor, result)):
            raise Hint(NOT_ONE.format(f"a {type(result).__name__} of tensors"))
        if not isinstance(result, torch.Tensor) or not result.requires_grad:
            raise Hint(NO_GRADIENT)
        # A different factor for each number: two that are swapped get noticed.
        factors = torch.linspace(1.0, 2.0, result.numel()).reshape(result.shape)
        back = torch.autograd.grad(
            (result * factors).sum(), list(leaves.values()), materialize_grads=True
        )
        gradients.append(torch.cat([each.flatten() for each in back]).double().numpy())
    should, does = gradients
    if same(does, should):
        return
    times = (should @ does) / (should @ should)
    if times > 1 and same(does, times * should):
        raise Hint(
            f"the values are right, but the gradient is {times:.3g} times the right one: something "
            "enters the gradient that cancels in the value, such as `x - x.detach()`."
        )
    raise Hint(
        "the values are right, but the gradient is not: a part of the formula is cut off from "
        "it (`.detach()`, `torch.no_grad()` or the like)."
    )
