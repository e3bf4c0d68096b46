"""The features of the forecast: what any agent can log in a short run with uniform replay.

A sample of transitions is drawn from the memory at a twentieth of the budget. Their TD errors δ,
with sign, are measured then and again at a tenth.

- ``concentration``: −log2 of the effective share of the sample, (Σ|δ|)² / (n Σδ²), at a tenth. 0:
  all |δ| are equal; 3: as concentrated as equal |δ| in an eighth of the sample and 0 elsewhere.
- ``repeat``: the correlation between δ at the two times. Errors from noise stay; errors that are
  learned go.
- ``rarity``: −log2 of the share of rewards that differ from the most common one (a share of 0
  counts as half a transition of the sample).
- ``coverage``: the share of distinct observations in the sample.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.environments import env_spec
from per_tutorial.dqn.history import History
from per_tutorial.dqn.training import make_replay, train
from per_tutorial.replay.contracts import Batch

FEATURES = ("concentration", "repeat", "rarity", "coverage")
SAMPLE = 1000  # transitions in the sample, at most


def features_of(
    then: NDArray, now: NDArray, rewards: NDArray, observations: NDArray
) -> dict[str, float]:
    """The features of one run.

    Args:
        then, now: (n,) δ of the same transitions at two times.
        rewards: (n,)
        observations: (n, ...)

    Example:
        >>> import numpy as np
        >>> from per_tutorial.experiments.when.features import features_of
        >>> delta = np.array([4.0, 0.0, 0.0, 0.0])
        >>> found = features_of(delta, delta / 2, np.array([1.0, 0.0, 0.0, 0.0]), np.eye(4))
        >>> {name: round(value, 2) for name, value in found.items()}
        {'concentration': 2.0, 'repeat': 1.0, 'rarity': 2.0, 'coverage': 1.0}
    """
    n, size = len(now), np.abs(now)
    squares = n * (size**2).sum()
    concentration = -np.log2(size.sum() ** 2 / squares) if squares > 0 else 0.0
    alike = then.std() * now.std()
    repeat = ((then - then.mean()) * (now - now.mean())).mean() / alike if alike > 1e-12 else 0.0
    _, counts = np.unique(rewards, return_counts=True)
    others = max(n - counts.max(), 0.5)
    distinct = len(np.unique(observations.reshape(n, -1), axis=0)) / n
    values = (concentration, repeat, -np.log2(others / n), distinct)
    return dict(zip(FEATURES, map(float, values), strict=True))


def features_of_agent(config: DQNConfig, seeds: Sequence[int] = range(5)) -> list[dict[str, float]]:
    """The features of each run: DQN with uniform replay for a tenth of its budget."""
    tenth = config.steps // 10
    config = config.replace(
        sampler="uniform", steps=tenth, learning_rate_end=config.step_size(tenth)
    )
    probe = env_spec(config.env).module().training_environments(config, list(seeds)[:1])
    shape = probe.observation_shape
    probe.close()
    replay = make_replay(config, shape, list(seeds))
    rng = np.random.default_rng(0)
    seen: dict[str, Any] = {}

    def look(history: History) -> None:
        if "then" not in seen and history.step >= tenth // 2 and history.agent is not None:
            size = int(replay.storage.ring.sizes.min())
            chosen = np.sort(rng.choice(size, min(SAMPLE, size), replace=False))
            slots = np.tile(chosen, (len(seeds), 1))
            # Copied, since the memory uses the arrays of its batches again
            seen["batch"] = Batch(*map(np.copy, replay._batch(slots, np.ones(slots.shape))))
            seen["then"] = history.agent.td_errors(seen["batch"])

    history = train(config, seeds, replay=replay, callbacks=[look])
    assert history.agent is not None
    batch = seen["batch"]
    now = history.agent.td_errors(batch)
    return [
        features_of(seen["then"][run], now[run], batch.rewards[run], batch.observations[run])
        for run in range(len(seeds))
    ]


def mean_features(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """The means over runs."""
    return {name: float(np.mean([run[name] for run in runs])) for name in FEATURES}
