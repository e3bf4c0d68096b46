"""Can a tenth of a run with uniform replay forecast the gain of PER? Declared before it ran.

**Features.** See `features`.

**Rule.** Gain of PER ≈ a + b · concentration + c · repeat, by least squares over the cells of the
map (the declaration includes the network's study, which had not run when the rule was frozen). Let
s be the standard deviation of the leave-one-out residuals. The forecast is "yes" above s/2, "no"
below −s/2, and otherwise "undecided". (Rarity serves the trivial guess, and coverage is recorded to
look at; neither is in the rule.)

**Test.** Once, on worlds with shipped paired runs: Blind Cliffwalk, CartPole, Acrobot and
MountainCar of ``after-*``, and MinAtar's Breakout, Asterix and Space Invaders of ``minatar-*`` (ten
pairs, one rate). PER and uniform replay each have the better of their shipped rates, by mean score
over training. PER helps or hurts in a world if p of the paired t-test is below 0.05 after Holm's
correction over these worlds; otherwise the truth is undecided, and a "yes" or "no" counts as
undecided. The features are means over five runs with uniform replay, three in MinAtar. A MinAtar
game whose short runs are too expensive is left out before its features are known; this happened to
all three. Baselines: "always", "never", and "yes where rarity is above 5, else no".

**Second test**, declared after the first had decided little: the truth was decided in two of its
four worlds, and PER helps in both. Rule, features and scoring are the same. The worlds are
MinAtar's three games, FrozenLake with the DQN and Pendulum with the SAC and the TD3 of
Stable-Baselines3 (``sb3-*``), and LunarLander. Holm's correction covers these seven. When this was
written, PER's gains were known in the first six worlds but not in LunarLander, and no features were
known.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.experiments.statistics.estimates import (
    Estimate,
    holm,
    paired_difference,
    paired_t_test,
)
from per_tutorial.experiments.studies.results import load_study
from per_tutorial.experiments.studies.sb3.settings import SB3Config
from per_tutorial.experiments.when.features import features_of_agent

TESTS = {
    "forecast": ("after-cliffwalk", "after-cartpole", "after-acrobot", "after-mountaincar"),
    "forecast-again": (
        "minatar-breakout",
        "minatar-asterix",
        "minatar-space-invaders",
        "sb3-sparse",
        "sb3-pendulum-sac",
        "sb3-pendulum-td3",
        "lunarlander",
    ),
}
#: a, b, c and s of the rule, fitted to the map and frozen before the test
NUMBERS, SPREAD = (0.1091, 0.9822, -0.6892), 0.0988
#: The arms of each method, at all shipped rates; SB3's own agent replays uniformly.
ARMS = {"uniform": ("uniform", "uniform-quarter", "sb3-quarter"), "per": ("per", "per-quarter")}
RARE = 5.0  # the rarity of the trivial guess: one reward in 32 transitions


def fit(features: Sequence[dict[str, float]], gains: Sequence[float]) -> tuple[NDArray, float]:
    """a, b and c of the rule, and s, the standard deviation of its leave-one-out residuals."""
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
    """The forecast ("yes", "no" or "undecided"), and the gain of PER that the rule predicts."""
    a, b, c = numbers
    gain = a + b * features["concentration"] + c * features["repeat"]
    return ("yes" if gain > s / 2 else "no" if gain < -s / 2 else "undecided"), float(gain)


class World(NamedTuple):
    """A world that the forecast is tested on, by the name of its study."""

    name: str

    def best_arm(self, method: str) -> tuple[DQNConfig | SB3Config, NDArray[np.float64]]:
        """Settings and scores of the better arm of "uniform" or "per", by mean score."""
        study = load_study(self.name)
        arms = [arm for arm in study.arms if arm in ARMS[method]]
        best = max(arms, key=lambda arm: float(study.scores(arm).mean()))
        return study.arms[best], study.scores(best)

    def features(self) -> list[dict[str, float]]:
        """The features of a few short runs with uniform replay."""
        config, _ = self.best_arm("uniform")
        if isinstance(config, SB3Config):
            # Only this import needs the extra [sb3].
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
