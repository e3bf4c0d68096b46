"""The features of the forecast, from short runs of Stable-Baselines3's agents."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.experiments.studies.sb3.settings import SB3Config
from per_tutorial.experiments.studies.sb3.training import train_one
from per_tutorial.experiments.when.features import SAMPLE, features_of


def td_errors(model: Any, batch: Any) -> NDArray[np.float64]:
    """δ of a minibatch, (n,), under a `PrioritizedDQN`, `PrioritizedSAC` or `PrioritizedTD3`; the
    mean over critics.
    """
    import torch

    with torch.no_grad():
        if hasattr(model, "q_net"):
            return model._losses(batch)[1].numpy().ravel()
        following = batch.next_observations
        if hasattr(model, "actor_target"):  # TD3, here without noise on the target's actions
            actions, entropy = model.actor_target(following), 0.0
        else:
            actions, logs = model.actor.action_log_prob(following)
            entropy = model.log_ent_coef.exp() * logs.reshape(-1, 1)
        next_values = torch.cat(model.critic_target(following, actions), dim=1)
        next_values = next_values.min(dim=1, keepdim=True)[0] - entropy
        targets = batch.rewards + (1 - batch.dones) * model.gamma * next_values
        values = torch.cat(model.critic(batch.observations, batch.actions), dim=1)
        return (targets - values.mean(dim=1, keepdim=True)).numpy().ravel()


def features_of_sb3(config: SB3Config, seeds: Sequence[int] = range(5)) -> list[dict[str, float]]:
    """The features of each run: an agent with uniform replay for a tenth of its budget."""
    return [_features_of_run(config.replace(replay="uniform"), seed) for seed in seeds]


def _features_of_run(config: SB3Config, seed: int) -> dict[str, float]:
    tenth = config.steps // 10
    rng = np.random.default_rng(0)
    seen: list[Any] = []

    def look(values: dict[str, Any], _: dict[str, Any]) -> bool:
        model = values["self"]
        if not seen and model.num_timesteps >= tenth // 2:
            size = model.replay_buffer.size()
            chosen = np.sort(rng.choice(size, min(SAMPLE, size), replace=False))[None]
            batch = model.replay_buffer._batch(chosen, np.ones(chosen.shape), None)
            seen.extend([batch, td_errors(model, batch)])
        return model.num_timesteps < tenth

    model, environment = train_one(config, seed, callback=look)
    environment.close()
    batch, then = seen
    return features_of(
        then,
        td_errors(model, batch),
        batch.rewards.numpy().ravel(),
        batch.observations.numpy(),
    )
