"""What a bug costs: PER against PER with each known bug that can affect learning.

Left out are bugs that such a training cannot meet: stale write-back (priorities are updated before
anything is added), n-step windows, files, seeds, NaN, and ε forgotten or added twice (no error is
exactly 0, and ε is 1e-6). α applied twice to all priorities is α = 0.36; the study "alpha-beta" has
0.4. "weights-after-mean" has the gradient of "loss-broadcast". Draws of empty slots and wrong sums
return what the buffer refuses. The code of these arms is in the repository's history.
"""

from typing import Any

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.experiments.studies.study import Study

CONCERN_LEARNING = (
    # The loss and the weights
    "loss-broadcast",
    "no-weights",
    "inverted-weights",
    "weights-that-sum-to-one",
    "compounding-beta",
    "beta-climbs-with-draws",
    "buffer-minimum",
    "zero-minimum",
    "mixed-units",
    # The priorities
    "squared-priority",
    "huber-priority",
    "weighted-squared-priority",
    "signed-priority",
    "alpha-twice-for-newcomers",
    "newcomers-at-one",
    "starved-newcomers",
    # The draws
    "off-by-one-total",
    "tie-branch",
    "rejected-draws",
    # What is stored
    "truncation-as-terminal",
    "autoreset-stored",
    "next-slots-observation",
)


# MountainCar takes three times as long, so bugs that resemble others are not tried there.
MUCH_ALIKE = {
    "weights-that-sum-to-one",  # a smaller step, which Adam undoes
    "beta-climbs-with-draws",  # compounding-beta
    "squared-priority",  # weighted-squared-priority, huber-priority
    "newcomers-at-one",  # alpha-twice-for-newcomers
    "next-slots-observation",  # autoreset-stored
}


def _broken(
    name: str, question: str, bugs: tuple[str, ...], failed_below: float, **settings: Any
) -> Study:
    """Correct PER against uniform replay and against PER with each bug."""
    reference = DQNConfig(sampler="proportional", hidden=(64, 64), **settings)
    arms = {"per": reference, "uniform": reference.replace(sampler="uniform")}
    arms |= dict.fromkeys(bugs, reference)
    return Study(
        name=name,
        question=question,
        arms=arms,
        comparisons=tuple((arm, "per") for arm in arms if arm != "per"),
        metric="score over training",
        failed_below=failed_below,
        curves=("q_value", "held_out_q"),
        bugs={bug: bug for bug in bugs},
    )


BROKEN_CARTPOLE = _broken(
    "broken-cartpole",
    "What does each bug of PER cost where uniform replay does as well (CartPole)?",
    CONCERN_LEARNING,
    failed_below=195,
    steps=15_000,
    capacity=5_000,  # so that the ring is filled three times
)
BROKEN_MOUNTAINCAR = _broken(
    "broken-mountaincar",
    "What does each bug of PER cost where PER helps (MountainCar)?",
    tuple(bug for bug in CONCERN_LEARNING if bug not in MUCH_ALIKE),
    failed_below=-200,
    env="MountainCar-v0",
    max_episode_steps=1000,
    steps=36_000,
    epsilon_steps=10_000,
    capacity=20_000,
)
BROKEN_STUDIES = (BROKEN_CARTPOLE, BROKEN_MOUNTAINCAR)
