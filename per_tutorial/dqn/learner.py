"""The agent: Q-networks of runs side by side, and how they learn from minibatches.

Shapes: (runs, batch) unless a comment says otherwise.
"""

from __future__ import annotations  # so that `help` shows ArrayLike as a name

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from per_tutorial.common.arguments import index_array, whole_number
from per_tutorial.common.files import AnyArray, PathLike, join_parts, require_like
from per_tutorial.common.provenance import full_name
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.cuda_graphs import Recorded
from per_tutorial.dqn.env_specs import env_spec
from per_tutorial.dqn.losses import (
    Tensors,
    check_losses,
    clip_by_run,
    clipped,
    select_actions,
    td_targets,
)
from per_tutorial.dqn.networks import QNetwork, make_network, seed_list
from per_tutorial.dqn.optimizers import Optimizer
from per_tutorial.dqn.saved_agents import SavedAgent, read_agent, write_agent
from per_tutorial.replay.contracts import Batch, Sampler, State


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


def as_batch(fields: Any, runs: int) -> tuple[Batch, bool]:
    """A minibatch as a `Batch` with an axis of runs, and whether it came without one.

    Args:
        fields: an object with the attributes of a `Batch`, or a tuple of its fields in their order,
            arrays or tensors. The first five are enough: the weights are then all 1, and the
            indices 0. Those of a single run may lack the axis of runs.
        runs: how many there must be.

    Raises:
        TypeError: one of the first five is missing, or indices are no integers.
        ValueError: they differ in shape, or there are other runs.
    """
    if not isinstance(fields, Batch):
        fields = _named(fields)
    alone = np.ndim(fields.rewards) == 1 and runs == 1
    if alone:
        fields = Batch(*(each if np.ndim(each) == 0 else each[None] for each in fields))
    shape = np.shape(fields.rewards)
    if len(shape) != 2 or shape[0] != runs:
        raise ValueError(f"batch: must have rewards of the shape ({runs}, batch), got {shape}")
    for name, field in zip(Batch._fields, fields, strict=True):  # or they would broadcast
        found = np.shape(field)
        of_each = found[:2] if name in ("observations", "next_observations") else found
        if field is not None and of_each != shape:
            raise ValueError(f"batch: must have {name} of the shape {shape}, got {found}")
    return fields, alone


def _named(fields: Any) -> Batch:
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
    index_array("indices", arrays.get("indices", 0))  # or they are weights: the order is another
    shape = tuple(arrays["rewards"].shape)
    return Batch(**{"weights": np.ones(shape), "indices": np.zeros(shape, np.int64)} | arrays)


class DQNLearner:
    """Online network, target network and optimiser of one run or of several side by side.

    For a loss, a network or an optimiser of your own, override `losses`, `network_class` or
    `optimizer_class` in a subclass, the ``learner`` of `train`.

    Args:
        config: a `DQNConfig`.
        observation_shape: shape of one observation, which is flattened; or (frames, size, size),
            which is not.
        actions: number of actions.
        seeds: ints, one run each, for the initial networks; a single int is one run.

    Attributes:
        first_action: what an environment calls the agent's action 0 (`Discrete.start`).
        network_class: makes a module, such as `QNetwork`, from (inputs, actions, hidden, seeds),
            and from ``dueling=True`` and ``bfloat16=True`` if the settings say so. The module turns
            observations (runs, batch, inputs), or frames (runs, batch, *inputs) of uint8 or bool,
            into Q (runs, batch, actions). Its tensors are float32 and have a leading axis of runs,
            one for each seed, so that no run depends on another one. Its parameters all learn; its
            buffers are copied at each target update; it is always in training mode.
        optimizer_class: `Optimizer`, which is Adam, or a subclass of it.
        needs: what `train` must find beside it, such as {"sampler": "uniform"}: the name of a
            "sampler", of a "loss" or of the class of a "learner". Samplers may have it, too.

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

    network_class: type[nn.Module] = QNetwork
    optimizer_class: type[Optimizer] = Optimizer
    needs: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        config: DQNConfig,
        observation_shape: Sequence[int],
        actions: int,
        seeds: int | Iterable[int],
    ) -> None:
        check_device(config.device)
        self.observation_shape = tuple(int(length) for length in observation_shape)
        self.actions, self.first_action = actions, 0
        self.seeds = seed_list(seeds)
        self.config = config
        self._env_spec = env_spec(config.env)
        self._device_type = torch.device(config.device).type
        inputs = self._env_spec.network_inputs(self.observation_shape)
        online = make_network(self.network_class, config, inputs, actions, self.seeds)
        self.online = online.to(config.device)
        self._check_network()
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        # As lists: walking through a module takes longer than a step with its parameters.
        self._parameters: list[Tensor] = list(self.online.parameters())
        self._target_parameters: list[Tensor] = list(self.target.parameters())
        # Such as the running means of a network of one's own
        self._buffers = [*zip(self.target.buffers(), self.online.buffers(), strict=True)]
        self.optimizer = self.optimizer_class(config, self._parameters)
        self.updates = 0
        self._forward: Callable[..., Tensor] = self._q_values
        self._descend: Callable[..., tuple[Tensor, Tensor, Tensor]] = self._gradient_step
        if config.compiled and self._device_type == "cuda":
            self._forward, self._descend = (
                Recorded(function, config.device) for function in (self._forward, self._descend)
            )

    def losses(self, td_errors: Tensor, weights: Tensor) -> Tensor:
        """The loss of each transition, (runs, batch): override it for a loss of your own.

        Here it is w · L(δ) with the ``loss`` of the settings, and L is a straight line beyond their
        ``td_error_clip``. A loss of your own replaces all that. An update descends the mean over
        the batch; its gradient is found by autograd.

        Args:
            td_errors: δ = target − Q(s, a), (runs, batch), with the gradient of Q(s, a).
            weights: importance-sampling weights, (runs, batch).

        Example:
            >>> import torch
            >>> from per_tutorial import DQNConfig, DQNLearner, train
            >>> class CauchyLearner(DQNLearner):
            ...     def losses(self, td_errors, weights):
            ...         return weights * torch.log1p(td_errors**2)
            >>> config = DQNConfig(steps=200, learning_starts=100, hidden=(16,))
            >>> train(config, seeds=0, learner=CauchyLearner).agent.updates
            101
        """
        slopes = clipped(td_errors.detach(), self.config.td_error_clip)
        if self.config.loss == "huber":
            slopes = clipped(slopes, self.config.kappa)
        # ½δ², or a straight line beyond the limit; as slopes are constants, they are its gradient.
        return weights * (slopes * torch.sub(td_errors, slopes, alpha=0.5))

    @torch.no_grad()
    def _check_network(self) -> None:
        """Raise ValueError unless the network is one for these runs, observations and actions."""
        runs, name = len(self.seeds), self.network_class.__name__
        parameters = dict(self.online.named_parameters())
        frozen = [key for key, each in parameters.items() if not each.requires_grad]
        if frozen or not parameters:
            got = f"{frozen[0]}, which requires no gradient" if frozen else "none"
            raise ValueError(f"{name}: must have parameters that all learn, got {got}")
        for key, tensor in self.online.state_dict().items():
            if tensor.shape[:1] != (runs,) or tensor.dtype != torch.float32:
                raise ValueError(
                    f"{name}: must have float32 tensors with a leading axis of runs ({runs}), got "
                    f"{key}, {tensor.dtype} of the shape {tuple(tensor.shape)}"
                )
        shown = torch.zeros(runs, 2, *self.observation_shape, dtype=torch.uint8)
        wanted, found = (runs, 2, self.actions), self._q_values(self._observations(shown)).shape
        if found != wanted:
            raise ValueError(
                f"{name}: must return Q (runs, batch, actions), here {wanted}, got {tuple(found)}"
            )

    def check_partner(self, sampler: Sampler) -> None:
        """Raise ValueError unless all that the learner and the sampler need is there (`needs`)."""
        found: dict[str, list[Any]] = {
            "sampler": [getattr(sampler, "settings", {}).get("sampler")],
            "loss": [self.config.loss],
            "learner": [each.__name__ for each in type(self).__mro__],
        }
        for part in (self, sampler):
            for name, needed in getattr(part, "needs", {}).items():
                if needed not in found[name]:
                    raise ValueError(
                        f"{name}: must be {needed!r} with {type(part).__name__}, "
                        f"got {found[name][0]!r}"
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
        network = full_name(self.network_class)
        facts = (self.config, self.observation_shape, self.actions, self.first_action)
        write_agent(path, SavedAgent(*facts, self.seeds[runs], network, tensors))

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
            ValueError: it is damaged or holds something else, such as the network of another
                learner, or the device cannot be used.
        """
        agent = read_agent(path, device, cls.network_class, trusted=trusted)
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
        require_like(self.state, state)
        self.updates = int(np.asarray(state["updates"]))
        for name, tensor in self._tensors.items():
            tensor.copy_(torch.from_numpy(np.asarray(state[name])))

    def update(self, batch: Any, step_size: float | None = None) -> Update:
        """One gradient step of every run on its minibatch (Algorithm 1, lines 11 to 16).

        Args:
            batch: a `Batch`, or what `as_batch` makes one of. That of a single run may lack the
                axis of runs; the results then lack it, too.
            step_size: the learning rate from now on; None keeps the last one.
        """
        batch, alone = as_batch(batch, len(self.seeds))
        if step_size is not None:
            self.optimizer.set_learning_rate(step_size)
        update = self._update(batch)
        return Update(*(array[0] for array in update)) if alone else update

    def _update(self, batch: Batch) -> Update:
        """`update` by a minibatch with an axis of runs."""
        results = self._descend(*self._tensors_of(batch))
        self.updates += 1
        if self.updates % self.config.target_update_every == 0:
            self.update_target(self.config.tau)
        return Update(*(tensor.cpu().numpy() for tensor in results))

    @torch.enable_grad()  # also where the caller has turned gradients off
    def _gradient_step(self, *fields: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One step of the optimiser: δ, Q(s, a) and the losses before it.

        Nothing in here waits for a GPU, so a CUDA graph can hold it.
        """
        tensors = Tensors(*map(self._on_device, fields))
        q_values, td_errors = self._estimates(tensors)
        losses = self.losses(td_errors, tensors.weights)
        check_losses(f"{type(self).__name__}.losses", losses, td_errors)
        # The mean over the batch; runs share no parameter, so theirs can be added.
        shares = torch.full_like(losses, 1 / losses.shape[1])
        found = torch.autograd.grad(losses, self._parameters, shares)
        gradients = [each.contiguous() for each in found]  # those of convolutions may not be
        if self.config.max_grad_norm is not None:
            clip_by_run(gradients, self.config.max_grad_norm)
        self.optimizer.descend(gradients)
        td_errors = clipped(td_errors, self.config.td_error_clip)
        return td_errors.detach(), q_values.detach(), losses.detach().mean(dim=1)

    def _q_values(self, observations: Tensor) -> Tensor:
        return self.online(self._on_device(observations))

    @torch.no_grad()
    def td_errors(self, batch: Any) -> NDArray:
        """The δ that `update` would return for this minibatch. Nothing changes."""
        batch, alone = as_batch(batch, len(self.seeds))
        _, found = self._estimates(Tensors(*map(self._on_device, self._tensors_of(batch))))
        td_errors = clipped(found, self.config.td_error_clip).cpu().numpy()
        return td_errors[0] if alone else td_errors

    def _estimates(self, tensors: Tensors) -> tuple[Tensor, Tensor]:
        """Q(s, a), and δ = target − Q(s, a), in which the target counts as a constant."""
        q_values = select_actions(self.online(tensors.observations), tensors.actions)
        with torch.no_grad():
            next_q = self.target(tensors.next_observations)
            chosen_by = self.online(tensors.next_observations) if self.config.double else None
            rewards, terminated = tensors.rewards, tensors.terminated
            targets = td_targets(rewards, terminated, next_q, tensors.discounts, chosen_by)
        return q_values, targets - q_values

    @torch.no_grad()
    def update_target(self, tau: float) -> None:
        """Move the target networks a share ``tau`` of the way to the online ones (notebook 04)."""
        torch._foreach_lerp_(self._target_parameters, self._parameters, tau)
        for kept, seen in self._buffers:
            kept.copy_(seen)

    def _tensors_of(self, batch: Batch) -> Tensors:
        """A minibatch as tensors that may not be on the device yet."""
        discounts = self.config.discount if batch.discounts is None else batch.discounts
        if batch.discounts is None and self.config.n_step > 1:  # the target needs γ^k
            raise ValueError(
                f"batch: must have discounts with n_step = {self.config.n_step}, got none"
            )
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
