"""Can one tell beforehand? A forecast from a tenth of a run with uniform replay. Declared before it
ran.

**Features**, which any agent can log. A sample of transitions that the memory holds at a twentieth
of the budget is looked at twice, then and at a tenth: their TD errors δ, with sign.

- ``concentration``: −log2 of the effective share of the sample, (Σ|δ|)² / (n Σδ²), at a tenth. 0:
  all errors are alike; 3: they might as well sit in an eighth of the memory.
- ``repeat``: the correlation of δ at the two times. What noise put there stays; what is learned
  goes.
- ``rarity``: −log2 of the share of rewards that differ from the commonest one (a share of 0 counts
  as half a transition of the sample).
- ``coverage``: the share of different observations in the sample.

**Rule.** Gain of PER ≈ a + b · concentration + c · repeat, by least squares over the cells of the
map (the network's study was declared to be in, but had not run when the rule was frozen). With s,
the standard deviation of what is left out one cell at a time: above s/2 the forecast is "yes",
below −s/2 "no", between them "undecided". (Rarity and coverage are kept for the trivial guess and
to be looked at; they are not in the rule.)

**Test.** Once, on worlds for which paired runs are shipped: Blind Cliffwalk, CartPole, Acrobot and
MountainCar of ``after-*`` and MinAtar's Breakout, Asterix and Space Invaders of ``minatar-*`` (ten
pairs, one rate). Each of PER and uniform replay has the better of its shipped rates, by mean score
over training. PER helps or hurts there if the paired t-test is below 0.05 after Holm's correction
over these worlds; else the truth is undecided, and a "yes" or "no" counts as undecided. Five runs
with uniform replay give the mean features of a world, three in MinAtar. A MinAtar game whose short
runs cannot be afforded is left out, before its features are known: so it happened to all three.
Beside it: "always", "never", and "yes where rarity is above 5, else no".

**Second test**, declared after the first one had decided little (four worlds, two with a truth, and
PER helps in both). The rule is the same, and so are the features and what counts as right. The
worlds: MinAtar's three games, FrozenLake with the DQN and Pendulum with the SAC and the TD3 of
Stable-Baselines3 (``sb3-*``). Holm's correction is over these six. PER's gains in them were known
when this was written, their features were not. LunarLander was declared with them. Its paired runs
(``study lunarlander``) did not finish in time, so it was left out before anything of it was known.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.dqn.environments import env_spec
from per_tutorial.dqn.history import History
from per_tutorial.dqn.training import train
from per_tutorial.experiments.statistics.estimates import (
    Estimate,
    holm,
    paired_difference,
    paired_t_test,
)
from per_tutorial.experiments.studies.results import load_study
from per_tutorial.experiments.studies.sb3.settings import SB3Config
from per_tutorial.replay.contracts import Batch
from per_tutorial.replay.registry import make_replay

FEATURES = ("concentration", "repeat", "rarity", "coverage")
SAMPLE = 1000  # transitions that are looked at
TESTS = {
    "forecast": ("after-cliffwalk", "after-cartpole", "after-acrobot", "after-mountaincar"),
    "forecast-again": (
        "minatar-breakout",
        "minatar-asterix",
        "minatar-space-invaders",
        "sb3-sparse",
        "sb3-pendulum-sac",
        "sb3-pendulum-td3",
    ),
}
#: a, b, c and s of the rule, fitted to the map and frozen before the test
NUMBERS, SPREAD = (0.1091, 0.9822, -0.6892), 0.0988
#: Arms with the method, at all rates that are shipped; SB3's own agent has uniform replay.
ARMS = {"uniform": ("uniform", "uniform-quarter", "sb3-quarter"), "per": ("per", "per-quarter")}
RARE = 5.0  # of the trivial guess: a reward in 32 transitions


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
        >>> from per_tutorial.experiments.when.forecast import features_of
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
            rows, _ = replay.storage.n_step_transitions(slots)
            seen["batch"] = Batch(
                rows["observation"].copy(),
                rows["action"].copy(),
                rows["reward"].copy(),
                rows["next_observation"].copy(),
                rows["terminated"].copy(),
                np.ones(slots.shape),
                slots,
            )
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


def fit(features: Sequence[dict[str, float]], gains: Sequence[float]) -> tuple[NDArray, float]:
    """The three numbers of the rule, and s, the standard deviation left when a cell is left out."""
    inputs = np.array([[1.0, one["concentration"], one["repeat"]] for one in features])
    outputs = np.asarray(gains, float)
    left = []
    for k in range(len(outputs)):
        keep = np.arange(len(outputs)) != k
        numbers, *_ = np.linalg.lstsq(inputs[keep], outputs[keep], rcond=None)
        left.append(outputs[k] - inputs[k] @ numbers)
    numbers, *_ = np.linalg.lstsq(inputs, outputs, rcond=None)
    return numbers, float(np.std(left))


def answer(features: dict[str, float], numbers: Sequence[float], s: float) -> tuple[str, float]:
    """ "yes", "no" or "undecided", and the gain of PER that the rule expects."""
    a, b, c = numbers
    gain = a + b * features["concentration"] + c * features["repeat"]
    return ("yes" if gain > s / 2 else "no" if gain < -s / 2 else "undecided"), float(gain)


class World(NamedTuple):
    """A world that the forecast is tested on: the name of its study.

    Each of PER and uniform replay has its better arm there, by mean score over training.
    """

    name: str

    def best_arm(self, method: str) -> tuple[DQNConfig | SB3Config, NDArray[np.float64]]:
        """Settings and scores of "uniform" or "per"."""
        study = load_study(self.name)
        arms = [arm for arm in study.arms if arm in ARMS[method]]
        best = max(arms, key=lambda arm: float(study.scores(arm).mean()))
        return study.arms[best], study.scores(best)

    def features(self) -> list[dict[str, float]]:
        """Those of a few short runs with uniform replay."""
        config, _ = self.best_arm("uniform")
        if isinstance(config, SB3Config):
            from per_tutorial.experiments.when.sb3_features import features_of_sb3

            return features_of_sb3(config)
        seeds = range(3) if config.env.startswith("MinAtar/") else range(5)
        return features_of_agent(config, seeds)


class Truth(NamedTuple):
    """What PER does in a world."""

    gain: Estimate  # in score
    helps: str  # "yes", "no" or "undecided", as declared above


def truths(test: str) -> dict[str, Truth]:
    """The truth about each world of a test."""
    scores = {
        name: (World(name).best_arm("per")[1], World(name).best_arm("uniform")[1])
        for name in TESTS[test]
    }
    corrected = holm([paired_t_test(*pair) for pair in scores.values()])
    found = {}
    for (name, (per, uniform)), p in zip(scores.items(), corrected, strict=True):
        gain = paired_difference(per, uniform)
        found[name] = Truth(gain, "undecided" if p >= 0.05 else "yes" if gain.value > 0 else "no")
    return found
