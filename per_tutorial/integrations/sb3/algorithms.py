"""Stable-Baselines3's agents with prioritised replay: what all share, DQN, and QRDQN.

Each is SB3's agent with its own `train`, which differs in three lines: each transition's loss is
multiplied by its weight before the mean is taken, and the raw TD errors go back to the buffer.
"""

import inspect
import warnings
from typing import Any, ClassVar

import numpy as np
import torch as th
from gymnasium import spaces
from sb3_contrib import QRDQN
from stable_baselines3 import DQN
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.save_util import load_from_pkl
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import LinearSchedule
from torch.nn import functional as F

from per_tutorial.common.arguments import up_to_one
from per_tutorial.common.files import require_settings
from per_tutorial.integrations.sb3.buffers import PrioritizedReplayBuffer, PrioritizedSamples


class PrioritizedAlgorithm(OffPolicyAlgorithm):
    """A mixin that makes SB3's agents learn from prioritised replay; see `PrioritizedDQN`."""

    replay_buffer: PrioritizedReplayBuffer  # None until it is set up
    kappa: ClassVar[float | None] = None  # of the Huber loss, if that is the loss

    def __init_subclass__(cls) -> None:
        """Show the arguments of SB3's agent, and then ours, in `help` and in notebooks."""
        own = vars(cls).get("__init__")  # of a subclass of yours
        signature = inspect.signature(own or super().__init__)
        _, *shown = signature.parameters.values()
        if own is None:
            ours = inspect.signature(PrioritizedAlgorithm.__init__).parameters
            shown += [ours["alpha"], ours["beta"]]
        cls.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str,
        *args: Any,
        alpha: float | None = None,
        beta: float | Schedule | None = None,
        **kwargs: Any,
    ) -> None:
        self.alpha = alpha
        self.beta: float | Schedule = LinearSchedule(0.4, 1.0, 1.0) if beta is None else beta
        super().__init__(policy, env, *args, **kwargs)

    def _setup_model(self) -> None:
        for remaining in (1.0, 0.5, 0.0):
            now = self.beta(remaining) if callable(self.beta) else self.beta
            up_to_one("beta, or what its schedule returns", now)
        actions = self.action_space
        if isinstance(actions, spaces.Discrete) and actions.start != 0:
            raise ValueError(
                f"env: the actions must begin at 0, as SB3 counts them, got {actions}; "
                "gymnasium.wrappers.TransformAction can shift them"
            )
        if self.replay_buffer is None:
            self.replay_buffer = self._new_buffer()
        kappa = self.replay_buffer.settings.get("kappa")
        if kappa not in (None, self.kappa):
            allowed = f"kappa={self.kappa:g}" if self.kappa else "another sampler than 'lap'"
            raise ValueError(
                f"replay_buffer_kwargs: must have {allowed} with {type(self).__name__}, since LAP "
                f"is for the Huber loss of the same κ, got kappa={kappa:g}"
            )
        n_steps = self.n_steps
        self.n_steps = 1  # otherwise SB3 warns that it is ignored; the buffer has it already
        try:
            super()._setup_model()
        finally:
            self.n_steps = n_steps

    def _new_buffer(self) -> PrioritizedReplayBuffer:
        kind = self.replay_buffer_class = self.replay_buffer_class or PrioritizedReplayBuffer
        if not issubclass(kind, PrioritizedReplayBuffer):
            raise TypeError(
                "replay_buffer_class: must be None or a PrioritizedReplayBuffer of per_tutorial, "
                f"got {kind.__module__}.{kind.__qualname__}; others have no priorities, and HER's "
                "relabelled goals are not supported. For an agent that Stable-Baselines3 saved: "
                "load(path, replay_buffer_class=None)"
            )
        given = self.replay_buffer_kwargs
        agents: dict[str, Any] = {"gamma": self.gamma}
        agents |= {} if self.alpha is None else {"alpha": self.alpha}
        agents |= {"n_steps": self.n_steps} if self.n_steps > 1 else {}
        for name, value in agents.items():
            if given.get(name, value) != value:
                raise ValueError(
                    f"replay_buffer_kwargs: {name} must be the agent's, {value}, got {given[name]}"
                )
        return kind(
            *(self.buffer_size, self.observation_space, self.action_space),
            device=self.device,
            n_envs=self.n_envs,
            optimize_memory_usage=self.optimize_memory_usage,
            **({"seed": self.seed} | given | agents),
        )

    def set_random_seed(self, seed: int | None = None) -> None:
        """SB3's; a seed starts the draws of the buffer again, too, unless it has one of its own."""
        if seed is not None and self.replay_buffer_kwargs.get("seed") is None:
            self.replay_buffer.seed_draws(seed)
        super().set_random_seed(seed)

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        reset_num_timesteps: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if reset_num_timesteps or self._last_obs is None:
            self.replay_buffer.truncate_episodes()  # SB3 is about to reset the environments
        begun = super()._setup_learn(
            total_timesteps, callback, reset_num_timesteps, *args, **kwargs
        )
        if self.num_timesteps > 0:  # learn(0) may have no steps to divide by
            now = self._beta_at(1 - self.num_timesteps / self._total_timesteps)
            if now < self.replay_buffer.beta:
                warnings.warn(
                    f"beta: falls from {self.replay_buffer.beta:.2f} to {now:.2f}, since its "
                    "schedule follows the progress to the end of this learn; beta=1.0 goes on "
                    "where it ended",
                    stacklevel=4,
                )
        return begun

    def load_replay_buffer(self, path: Any, truncate_last_traj: bool = True) -> None:
        """Continue with what `save_replay_buffer` wrote, priorities and random streams included.

        Like every pickle, the file must be trusted: it can run any code.

        Args:
            path: of the file, or an open file.
            truncate_last_traj: whether the episodes that were running are over; False if the
                environments continue them. `learn` ends them itself where it resets environments.

        Raises:
            ValueError: the file holds another kind of buffer, or one with other spaces, n_envs,
                n_steps, gamma, sampler or sampler settings. The agent keeps its buffer then. The
                size may differ, as in SB3.
        """
        loaded = load_from_pkl(path, self.verbose)
        if not isinstance(loaded, PrioritizedReplayBuffer):
            raise ValueError(
                f"path: must hold a PrioritizedReplayBuffer, got a {type(loaded).__name__}, which "
                "has no priorities"
            )
        names = "observation_space", "action_space", "n_envs"
        wanted = {name: getattr(self, name) for name in names} | self.replay_buffer.settings
        found = {name: getattr(loaded, name) for name in names} | loaded.settings
        require_settings("path: its buffer", wanted, found)
        loaded.device = self.device
        if truncate_last_traj:
            loaded.truncate_episodes()
        self.replay_buffer = loaded

    def _begin_training(self) -> PrioritizedReplayBuffer:
        """Set β for the minibatches of one call of `train`, and log it."""
        self.replay_buffer.beta = self._beta_at(self._current_progress_remaining)
        self.logger.record("train/beta", self.replay_buffer.beta)
        return self.replay_buffer

    def _beta_at(self, remaining: float) -> float:
        """β; training may pass its end, where a schedule may leave [0, 1]."""
        beta = self.beta(remaining) if callable(self.beta) else self.beta
        return min(max(float(beta), 0.0), 1.0)

    def dump_logs(self) -> None:
        """Write the log, with the metrics of replay: at every step they would cost too much."""
        for name, value in self.replay_buffer.metrics().items():
            self.logger.record(f"train/{name}", value)
        super().dump_logs()


def n_step_targets(batch: PrioritizedSamples, next_values: th.Tensor) -> th.Tensor:
    """r + γ^k · V(s') over k steps, or r alone if the episode terminated."""
    return batch.rewards + (1 - batch.dones) * batch.discounts * next_values


def weighted_mean(losses: th.Tensor, weights: th.Tensor) -> th.Tensor:
    """The mean of w_i · loss_i; both must be (batch, 1).

    If one were (batch,), the product would be (batch, batch) and its mean the product of two means:
    the weights would have no effect, silently.
    """
    assert losses.shape == weights.shape, f"{losses.shape} is not {weights.shape}"
    return (weights * losses).mean()


class PrioritizedQLearner(PrioritizedAlgorithm):
    """The training of agents that learn Q-values from one loss: DQN and QRDQN."""

    kappa = 1.0
    max_grad_norm: Any  # a number; in QRDQN also None

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """SB3's `train` with weights and priorities."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        buffer = self._begin_training()
        losses = []
        for _ in range(gradient_steps):
            batch = buffer.sample(batch_size, env=self._vec_normalize_env)
            each, td_errors = self._losses(batch)
            loss = weighted_mean(each, batch.weights)
            buffer.update_priorities(batch.indices, td_errors.detach())
            losses.append(loss.item())

            self.policy.optimizer.zero_grad()
            loss.backward()
            if self.max_grad_norm is not None:
                th.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps

        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))

    def _losses(self, batch: PrioritizedSamples) -> tuple[th.Tensor, th.Tensor]:
        """The loss and the TD error of each transition, both (batch, 1)."""
        raise NotImplementedError


class PrioritizedDQN(PrioritizedQLearner, DQN):
    """SB3's `DQN` with prioritised replay: its arguments, and `alpha` and `beta`.

    Args:
        alpha: how strongly priorities count, in [0, 1]; None: the sampler's own default.
        beta: exponent of the importance-sampling weights, in [0, 1], or a schedule: a function of
            the remaining progress of `learn` (from 1 to 0). None: linear from 0.4 to 1, as in the
            paper. With ``learn(…, reset_num_timesteps=False)`` SB3 counts the progress to the end
            of that call, so β (like ε) falls back when an agent is continued; a warning says so.
            Load the agent with `beta=1.0` to prevent it.
        replay_buffer_class: a kind of `PrioritizedReplayBuffer`; None: that one itself.
        replay_buffer_kwargs: settings of the buffer and of its sampler, such as
            `{"sampler": "rank", "normalize": "none"}`.

    Raises:
        ValueError, TypeError: an argument is invalid, or not supported with prioritised replay.

    Example:
        >>> from per_tutorial.integrations.sb3 import PrioritizedDQN
        >>> model = PrioritizedDQN(
        ...     "MlpPolicy", "CartPole-v1", buffer_size=1000, learning_starts=50, seed=0
        ... )
        >>> model = model.learn(60)
        >>> model.replay_buffer.size(), model.replay_buffer.beta > 0.9  # β goes from 0.4 to 1
        (60, True)
    """

    def _losses(self, batch: PrioritizedSamples) -> tuple[th.Tensor, th.Tensor]:
        with th.no_grad():
            next_values = self.q_net_target(batch.next_observations).max(dim=1, keepdim=True)[0]
            targets = n_step_targets(batch, next_values)
        values = self.q_net(batch.observations).gather(dim=1, index=batch.actions.long())
        return F.smooth_l1_loss(values, targets, reduction="none"), targets - values


def quantile_losses(quantiles: th.Tensor, targets: th.Tensor) -> th.Tensor:
    """The quantile Huber loss (Dabney et al. 2018, eq. 10) of each transition: (batch, 1).

    Args:
        quantiles, targets: (batch, n) each. Each quantile is compared with every target.
    """
    n = quantiles.shape[1]
    fractions = (th.arange(n, device=quantiles.device, dtype=quantiles.dtype) + 0.5) / n
    errors = targets[:, None, :] - quantiles[:, :, None]  # (batch, quantile, target)
    huber = F.huber_loss(errors, th.zeros_like(errors), reduction="none")
    tilt = (fractions[None, :, None] - (errors.detach() < 0).to(errors.dtype)).abs()
    return (tilt * huber).sum(dim=1).mean(dim=1, keepdim=True)


class PrioritizedQRDQN(PrioritizedQLearner, QRDQN):
    """`QRDQN` of sb3-contrib with prioritised replay: its arguments, and `alpha` and `beta` as in
    `PrioritizedDQN`.

    Priorities come from the |δ| of the Q-values, the means of the quantiles. The loss itself is not
    used: it has another unit, and stays positive even if the Q-value is right.
    """

    def _losses(self, batch: PrioritizedSamples) -> tuple[th.Tensor, th.Tensor]:
        with th.no_grad():
            of_all = self.quantile_net_target(batch.next_observations)  # (batch, n, actions)
            greedy = of_all.mean(dim=1, keepdim=True).argmax(dim=2, keepdim=True)
            targets = n_step_targets(batch, _of_actions(of_all, greedy))
        of_all = self.quantile_net(batch.observations)
        quantiles = _of_actions(of_all, batch.actions[..., None].long())
        td_errors = targets.mean(dim=1) - quantiles.mean(dim=1)
        return quantile_losses(quantiles, targets), td_errors


def _of_actions(quantiles: th.Tensor, actions: th.Tensor) -> th.Tensor:
    """(batch, n): the ``quantiles`` (batch, n, all actions) of ``actions`` (batch, 1, 1)."""
    return quantiles.gather(dim=2, index=actions.expand(-1, quantiles.shape[1], 1)).squeeze(dim=2)
