"""What is learned from a minibatch: targets and losses as pure functions, and the learner.

Shapes: (runs, batch) unless a comment says otherwise.
"""

import dataclasses
import json
import math
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from per_tutorial.common.arguments import whole_number
from per_tutorial.common.files import atomic_write, part_of
from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.networks import QNetwork

STEEPEST = {"squared": math.inf, "huber": 1.0}  # the largest |∂L/∂δ| of a loss


def td_targets(rewards, terminated, next_q, discount, next_q_online=None):
    """r + γ · max_a Q(s', a), and r alone where the episode terminated.

    Over k steps, r is the discounted sum of their rewards, s' what the last one led to, and γ^k
    takes the place of γ.

    Args:
        rewards, terminated: (runs, batch).
        next_q: (runs, batch, actions), the target network's values of the next observations.
        discount: γ, or γ^k of each transition (runs, batch).
        next_q_online: the online network's values of them; if given, it chooses the action that
            the target network rates (double Q-learning).
    """
    if next_q_online is None:
        next_values = next_q.amax(dim=-1)
    else:
        next_values = of_actions(next_q, next_q_online.argmax(dim=-1))
    assert next_values.shape == rewards.shape == terminated.shape
    return rewards + discount * next_values.masked_fill(terminated, 0.0)


def of_actions(q_values, actions):
    """Q(s, a) of one action in each state: (..., actions), (...) → (...)."""
    return q_values.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def weighted_losses(td_errors, weights, loss="huber", clip=None):
    """The loss of each run, (runs,): mean over the batch of w_i · L(δ_i), L Huber or ½δ².

    With ``clip`` = c, δ is clipped to [−c, c] in the gradient (section 4 of Schaul et al.: c = 1).
    For a squared loss this is to go on as a straight line beyond |δ| = c, as Huber's does beyond 1.

    The weights must multiply each error before the mean. Shapes (batch,) and (batch, 1) would
    broadcast to (batch, batch) without a word and cancel the correction, hence the assertion.
    """
    assert td_errors.shape == weights.shape, (td_errors.shape, weights.shape)
    slopes = _slopes(td_errors.detach(), loss, clip)
    elementwise = slopes * (td_errors - 0.5 * slopes)  # ½δ², or limit · (|δ| − ½ limit)
    return (weights * elementwise).mean(dim=1)


def loss_gradients(td_errors, weights, loss="huber", clip=None):
    """The gradient of `weighted_losses` with respect to the Q(s, a) in δ = target − Q(s, a).

    Shaped like both, (runs, batch). Line 13 of Algorithm 1 with the opposite sign: it adds
    w_j · δ_j · ∇Q to what the parameters are moved by, an optimiser subtracts a gradient.
    """
    assert td_errors.shape == weights.shape, (td_errors.shape, weights.shape)
    return weights * _slopes(td_errors, loss, clip) / -td_errors.shape[1]


def _slopes(td_errors, loss, clip):
    """∂L/∂δ: δ, or ±limit where it is beyond."""
    limit = STEEPEST[loss] if clip is None else min(STEEPEST[loss], clip)
    return td_errors.clamp(-limit, limit)


def clip_by_run(gradients, largest):
    """Scale the gradient of each run, over all its parameters, down to the norm ``largest``, in place."""
    norms = sum(gradient.square().flatten(1).sum(dim=1) for gradient in gradients).sqrt()
    scales = (largest / (norms + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(scales.view(-1, *[1] * (gradient.dim() - 1)))


def _check_device(device):
    """ValueError if PyTorch cannot use the device."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device: {device!r} cannot be used ({error})") from error


class Tensors(NamedTuple):
    """A minibatch on the learner's device: observations as the networks take them, else (runs, batch)."""

    observations: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    next_observations: torch.Tensor
    terminated: torch.Tensor
    weights: torch.Tensor
    discounts: torch.Tensor  # γ^k


class Update(NamedTuple):
    """What an update saw, before it changed the network; NumPy arrays."""

    td_errors: np.ndarray  # (runs, batch), δ with its sign, clipped if the settings say so
    q_values: np.ndarray  # (runs, batch), Q(s, a) of the replayed actions
    losses: np.ndarray  # (runs,)


class DQNLearner:
    """Online network, target network and optimiser of a stack of runs.

    Args:
        config: a `DQNConfig`.
        observation_shape: shape of one observation. It is flattened, unless it is a stack of frames:
            then it is (stack, size, size).
        actions: number of actions.
        seeds: one int per run, for the initial networks.
    """

    def __init__(self, config, observation_shape, actions, seeds):
        self.config = config
        self.seeds = list(seeds)
        pixels = config.from_pixels
        inputs = tuple(observation_shape) if pixels else int(np.prod(observation_shape))
        _check_device(config.device)
        self.online, self.target = (
            QNetwork(
                inputs,
                actions,
                config.hidden,
                seeds,
                dueling=config.dueling,
                bfloat16=config.precision == "bfloat16",
            ).to(config.device)
            for _ in range(2)
        )  # made from the same seeds, so equal at the start
        self.target.requires_grad_(False)
        # One Adam over the whole stack: it works number by number, so the runs stay apart.
        self.optimizer = torch.optim.Adam(
            self.online.parameters(), lr=config.learning_rate, fused=True
        )
        self.updates = 0
        self._step = self.descend
        if config.compiled:
            from per_tutorial.dqn.compiled import CompiledStep

            self._step = CompiledStep(self)

    @torch.no_grad()
    def q_values(self, observations):
        """Q of observations (runs, n, *shape): (runs, n, actions), NumPy."""
        return self.online(self._observations(observations)).cpu().numpy()

    def policy(self, run):
        """The greedy policy of one run, a function from an observation to an action."""

        @torch.no_grad()
        def act(observation):
            stack = np.repeat(np.asarray(observation)[None, None], len(self.seeds), axis=0)
            return int(self.online(self._observations(stack))[run, 0].argmax())

        return act

    def save(self, path, run=None):
        """Write the online networks and the settings to a safetensors file. Atomic.

        Args:
            path: the file.
            run: only the network of this run; None for the whole stack.

        Raises:
            TypeError, ValueError: ``run`` is not one of the stack's.
        """
        from safetensors.torch import save

        runs = slice(None)
        if run is not None:
            run = whole_number("run", run, minimum=0)
            if run >= len(self.seeds):
                raise ValueError(f"run: must be less than {len(self.seeds)}, got {run}")
            runs = slice(run, run + 1)
        tensors = {
            name: parameter[runs].cpu().contiguous()
            for name, parameter in self.online.state_dict().items()
        }
        facts = {"config": dataclasses.asdict(self.config), "seeds": self.seeds[runs]}
        with atomic_write(path) as file:
            file.write(save(tensors, {name: json.dumps(fact) for name, fact in facts.items()}))

    @classmethod
    def load(cls, path, device="cpu"):
        """The learner that `save` wrote; its target networks equal the online ones, Adam starts anew.

        Nothing in the file is executed, so it need not be trusted.

        Args:
            path: the file.
            device: PyTorch device, in place of the one that it was saved from.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is damaged or holds something else, or the device cannot be used.
        """
        from safetensors import SafetensorError, safe_open

        _check_device(device)
        if not Path(path).is_file():
            raise FileNotFoundError(f"path: no file {os.fspath(path)!r}")
        # What reading a file of any other content, and fitting networks to it, may end in
        damage = (SafetensorError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
        try:
            with safe_open(path, framework="pt") as file:
                facts = {name: json.loads(fact) for name, fact in file.metadata().items()}
                tensors = {name: file.get_tensor(name) for name in file.keys()}
            config = DQNConfig(**facts["config"] | {"device": device})
            shape = (tensors["layers.0.weight"].shape[1],)
            if config.from_pixels:
                stack = tensors["convolutions.0.weight"].shape[2]
                shape = (stack, config.frame_size, config.frame_size)
            outputs = tensors[f"layers.{len(config.hidden)}.bias"].shape[2]
            learner = cls(config, shape, outputs - config.dueling, facts["seeds"])
            for network in (learner.online, learner.target):
                network.load_state_dict(tensors)
        except damage as error:
            raise ValueError(f"path: {os.fspath(path)!r} holds no agent ({error})") from error
        return learner

    @property
    def state(self):
        """Both networks, the optimiser and the number of updates, a dict of arrays."""
        tensors = {}
        for network in ("online", "target"):
            for name, tensor in getattr(self, network).state_dict().items():
                tensors[f"{network}.{name}"] = tensor
        for number, moments in self.optimizer.state_dict()["state"].items():
            for name, tensor in moments.items():
                tensors[f"adam.{number}.{name}"] = tensor
        arrays = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
        return {"updates": np.array(self.updates), **arrays}

    def restore(self, state):
        """Go on from what `state` gave, in a learner with the same settings."""

        def tensors(part):
            return {name: torch.from_numpy(array) for name, array in part_of(state, part).items()}

        self.updates = int(state["updates"])
        self.online.load_state_dict(tensors("online"))
        self.target.load_state_dict(tensors("target"))
        adam = self.optimizer.state_dict()
        numbers = adam["param_groups"][0]["params"]
        adam["state"] = {number: tensors(f"adam.{number}") for number in numbers}
        self.optimizer.load_state_dict(adam)

    def update(self, batch, step_size=None):
        """One gradient step of every run on its minibatch (Algorithm 1, lines 11 to 16).

        ``step_size`` is the learning rate from here on; None leaves it as it is. Returns an `Update`.
        """
        if step_size is not None:
            self.optimizer.param_groups[0]["lr"] = step_size
        rewards, terminated, actions = map(
            self._tensor, (batch.rewards, batch.terminated, batch.actions)
        )
        tensors = Tensors(
            self._observations(batch.observations),
            actions,
            rewards,
            self._observations(batch.next_observations),
            terminated,
            self._tensor(batch.weights).to(rewards.dtype),
            self._tensor(self.config.discount ** np.asarray(batch.steps)),
        )
        td_errors, q_values, losses = self._step(tensors)
        self.updates += 1
        if self.updates % self.config.target_update_every == 0:
            self.update_target(self.config.tau)
        clip = self.config.td_error_clip
        if clip is not None:
            td_errors = td_errors.clamp(-clip, clip)
        return Update(*(each.detach().cpu().numpy() for each in (td_errors, q_values, losses)))

    def descend(self, tensors):
        """Move the online networks down the gradient; returns δ, Q(s, a) and the losses."""
        q_values = of_actions(self.online(tensors.observations), tensors.actions)
        with torch.no_grad():
            td_errors, losses, gradients = self.judge(q_values, tensors)
        self.optimizer.zero_grad()
        q_values.backward(gradients)  # of Q: the rest of the way to the parameters
        if self.config.max_grad_norm is not None:
            clip_by_run([each.grad for each in self.online.parameters()], self.config.max_grad_norm)
        self.optimizer.step()
        return td_errors, q_values, losses

    def judge(self, q_values, tensors):
        """δ of Q(s, a), the losses, and their gradients with respect to Q(s, a)."""
        next_q = self.target(tensors.next_observations)
        targets = td_targets(
            tensors.rewards,
            tensors.terminated,
            next_q,
            tensors.discounts.to(next_q.dtype),
            self.online(tensors.next_observations) if self.config.double else None,
        )
        td_errors = targets - q_values
        how = self.config.loss, self.config.td_error_clip
        losses = weighted_losses(td_errors, tensors.weights, *how)
        return td_errors, losses, loss_gradients(td_errors, tensors.weights, *how)

    @torch.no_grad()
    def update_target(self, tau):
        """Move the target networks by the share ``tau`` of the way to the online ones (notebook 04)."""
        for target, online in zip(self.target.parameters(), self.online.parameters(), strict=True):
            target.lerp_(online, tau)

    def _tensor(self, array):
        return torch.from_numpy(np.asarray(array)).to(self.config.device)

    def _observations(self, observations):
        """(runs, n, *shape) → float32 (runs, n, inputs); frames stay bytes, for the network to scale."""
        tensor = self._tensor(observations)
        return tensor if self.config.from_pixels else tensor.to(torch.float32).flatten(start_dim=2)
