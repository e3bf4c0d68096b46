"""The agent: Q-networks of runs side by side, and how they learn from minibatches.

Shapes: (runs, batch) unless a comment says otherwise.
"""

from __future__ import annotations  # so that `help` shows ArrayLike as a name

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from per_tutorial.common.arguments import whole_number
from per_tutorial.common.files import AnyArray, PathLike, copy_arrays, join_parts, require_like
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.cuda_graphs import Recorded
from per_tutorial.dqn.env_specs import env_spec
from per_tutorial.dqn.losses import (
    Tensors,
    clip_by_run,
    clipped,
    losses_and_gradients,
    select_actions,
    td_targets,
)
from per_tutorial.dqn.networks import QNetwork
from per_tutorial.dqn.optimizers import Optimizer
from per_tutorial.dqn.saved_agents import SavedAgent, read_agent, write_agent
from per_tutorial.replay.contracts import Batch, State


def check_device(device: str) -> None:
    """Raise ValueError unless PyTorch can compute on the device and return the result."""
    try:
        with warnings.catch_warnings(action="ignore"):  # about deprecated names
            (torch.ones(2, device=device) + 1).cpu()
    except Exception as error:  # which one depends on the kind of device
        # PyTorch's message is a page long; its first sentence is enough.
        reason = str(error).partition("\n")[0].partition(". ")[0] or type(error).__name__
        raise ValueError(f"device: {device!r} cannot be used ({reason[:120]})") from error


class Update(NamedTuple):
    """What an update computed before it changed the network, as NumPy arrays."""

    td_errors: NDArray  # (runs, batch), δ with its sign, clipped if the settings say so
    q_values: NDArray  # (runs, batch), Q(s, a) of the replayed actions
    losses: NDArray  # (runs,)


def as_batch(fields: Any) -> Batch:
    """A minibatch as a `Batch` of arrays or tensors.

    Args:
        fields: an object with the attributes of a `Batch`, or a tuple of its fields in their order.
            The first five are enough: the weights are then all 1, and the indices 0.

    Raises:
        TypeError: one of the first five is missing.
    """
    if isinstance(fields, Batch):
        return fields
    names, found = Batch._fields, {}
    if hasattr(fields, "observations"):
        found = {name: getattr(fields, name) for name in names if hasattr(fields, name)}
    else:
        found = dict(zip(names, fields, strict=False))
    for name in names[:5]:
        if name not in found:
            raise TypeError(f"batch: must have {', '.join(names[:5])}, got none of {name}")
    arrays: dict[str, Any] = {
        name: field if isinstance(field, Tensor) else np.asarray(field)
        for name, field in found.items()
    }
    shape = tuple(arrays["rewards"].shape)
    arrays = {"weights": np.ones(shape), "indices": np.zeros(shape, np.int64)} | arrays
    return Batch(**arrays)


def with_axis_of_runs(batch: Batch) -> Batch:
    """A minibatch of one run, (batch, ...), as one of shape (1, batch, ...)."""
    fields: Any = batch
    return Batch(*(field if np.ndim(field) == 0 else field[None] for field in fields))


class DQNLearner:
    """Online network, target network and optimiser of one run or of several side by side.

    Args:
        config: a `DQNConfig`.
        observation_shape: shape of one observation, which is flattened; or (frames, size, size),
            which is not.
        actions: number of actions.
        seeds: one int per run, for the initial networks.

    Attributes:
        first_action: what an environment calls the agent's action 0 (`Discrete.start`).

    Example:
        >>> from per_tutorial import DQNConfig, DQNLearner, PrioritizedReplayBuffer
        >>> agent = DQNLearner(DQNConfig(), (4,), actions=2, seeds=[0])
        >>> buffer = PrioritizedReplayBuffer(100, (4,), seed=0)
        >>> for step in range(32):
        ...     buffer.add([step, 0, 0, 0], 0, 1.0, [step, 0, 0, 1], False)
        >>> batch = buffer.sample(32)
        >>> update = agent.update(batch)  # (1, 32) with an axis of runs, (32,) without
        >>> buffer.update_priorities(batch.indices, update.td_errors)
        >>> agent.updates
        1
    """

    def __init__(
        self,
        config: DQNConfig,
        observation_shape: Sequence[int],
        actions: int,
        seeds: Sequence[int],
    ) -> None:
        check_device(config.device)
        self.observation_shape = tuple(int(length) for length in observation_shape)
        self.actions, self.first_action = actions, 0
        self.seeds = list(seeds)
        self.config = config
        self._env_spec = env_spec(config.env)
        self._device_type = torch.device(config.device).type
        inputs = self._env_spec.network_inputs(self.observation_shape)
        options = {"dueling": config.dueling, "bfloat16": config.precision == "bfloat16"}
        self.online, self.target = (
            QNetwork(inputs, actions, config.hidden, self.seeds, **options).to(config.device)
            for _ in range(2)
        )  # made from the same seeds, so equal at the start
        self.target.requires_grad_(False)
        # As lists: walking through a module takes longer than a step with its parameters.
        self._parameters: list[Tensor] = list(self.online.parameters())
        self._target_parameters: list[Tensor] = list(self.target.parameters())
        self.optimizer = Optimizer(config, self._parameters)
        self.updates = 0
        self._forward: Callable[..., Tensor] = self._q_values
        self._descend: Callable[..., tuple[Tensor, Tensor, Tensor]] = self._gradient_step
        if config.compiled and self._device_type == "cuda":
            self._forward, self._descend = (
                Recorded(function, config.device) for function in (self._forward, self._descend)
            )

    @torch.no_grad()
    def q_values(self, observations: ArrayLike) -> NDArray:
        """Q of observations (runs, n, *shape): (runs, n, actions), NumPy."""
        return self._forward(self._observations(observations)).cpu().numpy()

    def policy(self, run: int) -> Callable[[ArrayLike], int]:
        """The greedy policy of one run: from an observation to an action of the environment."""

        @torch.no_grad()
        def act(observation: ArrayLike) -> int:
            shown = np.repeat(np.asarray(observation)[None, None], len(self.seeds), axis=0)
            q_values = self._q_values(self._observations(shown))
            return self.first_action + int(q_values[run, 0].argmax())

        return act

    def save(self, path: PathLike, run: int | None = None) -> None:
        """Write the online networks and the settings to a safetensors file. Atomic.

        Args:
            path: the file.
            run: only the network of this run, by its number from 0; None for all.
        """
        runs = slice(None)
        if run is not None:
            run = whole_number("run", run, minimum=0, maximum=len(self.seeds) - 1)
            runs = slice(run, run + 1)
        tensors = {
            name: parameter[runs].cpu().contiguous()
            for name, parameter in self.online.state_dict().items()
        }
        facts = (self.config, self.observation_shape, self.actions, self.first_action)
        write_agent(path, SavedAgent(*facts, self.seeds[runs], tensors))

    @classmethod
    def load(
        cls,
        path: PathLike,
        device: str = "cpu",
        *,
        precision: str | None = None,
        trusted: bool = False,
    ) -> Self:
        """The learner that `save` wrote; targets equal online networks, and moments are zero.

        Nothing in the file is executed, and sizes are compared before anything is allocated.

        Args:
            path: the file.
            device: PyTorch device, in place of the one that it was saved from.
            precision: in place of the one that it was trained with; None keeps that.
            trusted: whether its environment may be one that is not registered, such as
                "module:Name-v0", for which Gymnasium imports the module.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is damaged or holds something else, or the device cannot be used.
        """
        check_device(device)
        agent = read_agent(path, device, trusted=trusted)
        config = agent.config if precision is None else agent.config.replace(precision=precision)
        learner = cls(config, agent.observation_shape, agent.actions, agent.seeds)
        learner.first_action = agent.first_action
        for network in (learner.online, learner.target):
            network.load_state_dict(agent.tensors)
        return learner

    @property
    def _tensors(self) -> dict[str, Tensor]:
        """Both networks and the optimiser's moments: all that changes, except `updates`."""
        parts = {"online": self.online.state_dict(), "target": self.target.state_dict()}
        for k, moments in enumerate(self.optimizer.moments):
            parts[f"adam.{k}"] = moments
        return join_parts(**parts)

    @property
    def state(self) -> State:
        """Both networks, the optimiser and the number of updates, a dict of arrays."""
        arrays = {name: tensor.cpu().numpy() for name, tensor in self._tensors.items()}
        return {"updates": np.array(self.updates), **arrays}

    @torch.no_grad()
    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from the `state` of a learner with the same settings; ValueError for others."""
        own = self.state
        require_like(own, state)
        own = {name: array.copy() for name, array in own.items()}
        copy_arrays(own, state)
        self.updates = int(own["updates"])
        for name, tensor in self._tensors.items():
            tensor.copy_(torch.from_numpy(own[name]))

    def update(self, batch: Any, step_size: float | None = None) -> Update:
        """One gradient step of every run on its minibatch (Algorithm 1, lines 11 to 16).

        Args:
            batch: a `Batch`, or what `as_batch` makes one of. That of a single run may lack the
                axis of runs; the results then lack it, too.
            step_size: the learning rate from now on; None keeps the last one.
        """
        batch = as_batch(batch)
        alone = np.ndim(batch.rewards) == 1 and len(self.seeds) == 1
        if alone:
            batch = with_axis_of_runs(batch)
        if step_size is not None:
            self.optimizer.set_learning_rate(step_size)
        results = self._descend(*self._tensors_of(batch))
        self.updates += 1
        if self.updates % self.config.target_update_every == 0:
            self.update_target(self.config.tau)
        found = (tensor.cpu().numpy() for tensor in results)
        return Update(*(array[0] for array in found)) if alone else Update(*found)

    def _gradient_step(self, *fields: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One step of the optimiser: δ, Q(s, a) and the losses before it."""
        found = self.gradients(Tensors(*map(self._on_device, fields)))
        gradients, td_errors, q_values, losses = found
        if self.config.max_grad_norm is not None:
            clip_by_run(gradients, self.config.max_grad_norm)
        self.optimizer.descend(gradients)
        return clipped(td_errors, self.config.td_error_clip), q_values.detach(), losses.detach()

    def _q_values(self, observations: Tensor) -> Tensor:
        return self.online(self._on_device(observations))

    @torch.no_grad()
    def td_errors(self, batch: Batch) -> NDArray:
        """The δ that `update` would return for this minibatch. Nothing changes."""
        tensors = self.tensors(batch)
        q_values = select_actions(self.online(tensors.observations), tensors.actions)
        td_errors = self._targets(tensors) - q_values
        return clipped(td_errors, self.config.td_error_clip).cpu().numpy()

    def gradients(self, tensors: Tensors) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
        """The gradients of all parameters, δ, Q(s, a) and the losses of a minibatch."""
        q_values = select_actions(self.online(tensors.observations), tensors.actions)
        with torch.no_grad():
            td_errors, losses, q_gradients = self.errors_and_losses(q_values, tensors)
        # From Q to the parameters. Convolution gradients may be non-contiguous.
        found = torch.autograd.grad(q_values, self._parameters, q_gradients)
        return [gradient.contiguous() for gradient in found], td_errors, q_values, losses

    def errors_and_losses(
        self, q_values: Tensor, tensors: Tensors
    ) -> tuple[Tensor, Tensor, Tensor]:
        """δ of Q(s, a), the losses, and their gradients with respect to Q(s, a)."""
        td_errors = self._targets(tensors) - q_values
        config = self.config
        losses, gradients = losses_and_gradients(
            td_errors, tensors.weights, config.loss, config.td_error_clip, config.kappa
        )
        return td_errors, losses, gradients

    def _targets(self, tensors: Tensors) -> Tensor:
        next_q = self.target(tensors.next_observations)
        chosen_by = self.online(tensors.next_observations) if self.config.double else None
        rewards, terminated = tensors.rewards, tensors.terminated
        return td_targets(rewards, terminated, next_q, tensors.discounts, chosen_by)

    @torch.no_grad()
    def update_target(self, tau: float) -> None:
        """Move the target networks a share ``tau`` of the way to the online ones (notebook 04)."""
        torch._foreach_lerp_(self._target_parameters, self._parameters, tau)

    def tensors(self, batch: Batch) -> Tensors:
        """A minibatch (runs, batch, ...) as tensors on the learner's device."""
        return Tensors(*map(self._on_device, self._tensors_of(batch)))

    def _tensors_of(self, batch: Batch) -> Tensors:
        """A minibatch as tensors that may not be on the device yet."""
        discounts = self.config.discount ** np.asarray(batch.steps)
        return Tensors(
            self._observations(batch.observations),
            _tensor(batch.actions, torch.int64),
            _tensor(batch.rewards, torch.float32),
            self._observations(batch.next_observations),
            _tensor(batch.terminated, torch.bool),
            _tensor(batch.weights, torch.float32),
            _tensor(discounts, self._parameters[0].dtype),
        )

    def _observations(self, observations: ArrayLike) -> Tensor:
        """Vectors (runs, n, *shape) → float32 (runs, n, inputs); frames keep shape and dtype."""
        if self._env_spec.frames:
            return _tensor(observations)
        return _tensor(observations, torch.float32).flatten(start_dim=2)

    def _on_device(self, tensor: Tensor) -> Tensor:
        if self._device_type == "cpu" or tensor.is_cuda:
            return tensor
        if self._device_type != "cuda":
            return tensor.to(self.config.device)
        # From pinned memory the GPU copies while the processor goes on.
        pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)
        return pinned.to(self.config.device, non_blocking=True)


def _tensor(array: ArrayLike, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor of this type; converted before it is moved, since some devices have no float64."""
    tensor = array if isinstance(array, Tensor) else torch.from_numpy(np.asarray(array))
    return tensor if dtype is None else tensor.to(dtype)
