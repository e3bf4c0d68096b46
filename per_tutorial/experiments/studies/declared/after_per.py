"""The methods after PER, compared with it: same learner, same worlds, same search for all.

Each method has its authors' settings, and all are tried at the same two learning rates. LAP comes
with a loss of its own, so uniform replay is also tried with Huber's loss of the same κ, to separate
the effect of the loss from that of the priorities. PAL, ReaPER and LaBER were arms as well.
"""

from collections.abc import Iterable
from typing import Any

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.experiments.studies.study import QUARTER, Study

# LAP's settings in its authors' code (sfujim/LAP-PAL, discrete/main.py)
FOR_VECTORS = {"alpha": 0.4, "kappa": 1.0}
FOR_CLIPPED_REWARDS = {"alpha": 0.6, "kappa": 0.01}


def methods(lap: dict[str, float]) -> dict[str, dict[str, Any]]:
    """The settings that each method changes; ``lap``: α and κ of LAP."""
    return {
        "uniform": {},
        "huber": {"loss": "huber", "kappa": lap["kappa"]},
        "per": {"sampler": "proportional", "alpha": 0.6, "beta_start": 0.4},
        "rank": {"sampler": "rank", "alpha": 0.7, "beta_start": 0.5},
        "lap": {"sampler": "lap", "loss": "huber", **lap},
    }


def comparisons_of(names: Iterable[str], rate: str = "") -> list[tuple[str, str]]:
    """Each method against uniform replay and PER, and LAP against Huber's loss alone.

    Args:
        names: of `methods`.
        rate: what is added to the names of arms that learn at one rate.
    """
    pairs = [
        (method, other)
        for method in names
        for other in ("uniform", "per")
        if method not in ("uniform", other) and (method, other) != ("huber", "per")
    ]
    pairs.append(("lap", "huber"))
    return [(f"{method}{rate}", f"{other}{rate}") for method, other in pairs]


def after_per(
    name: str,
    question: str,
    failed_below: float,
    lap: dict[str, float] = FOR_VECTORS,
    **settings: Any,
) -> Study:
    """Every method at η and at η/4, against uniform replay and against PER at the same rate."""
    base = DQNConfig(**settings)
    changes = methods(lap)
    arms, comparisons = {}, []
    for rate, share in {"": 1.0, "-quarter": QUARTER}.items():
        for method, change in changes.items():
            arms[f"{method}{rate}"] = base.replace(
                learning_rate=base.learning_rate * share, **change
            )
        comparisons += comparisons_of(changes, rate)
    return Study(
        name=f"after-{name}",
        question=question,
        arms=arms,
        comparisons=tuple(comparisons),
        metric="score over training",
        failed_below=failed_below,
    )


AFTER_PER_STUDIES = (
    after_per(
        "cliffwalk",
        "Does what came after PER help DQN along the Blind Cliffwalk of eight states?",
        failed_below=1,
        lap=FOR_CLIPPED_REWARDS,  # its only reward is 1, and no error is larger
        env="per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0",
        steps=6_000,
        discount=1 - 1 / 8,  # as in the paper
        hidden=(64, 64),
        # Few updates, so that the choice of transitions matters. With one at every step, uniform
        # replay (seeds from 1000 on) scored the same at η and at η/4: only exploration limited it.
        update_every=16,
        epsilon_steps=3_000,
    ),
    after_per(
        "cartpole",
        "Does what came after PER help DQN to balance the pole for 500 steps?",
        failed_below=475,
    ),
    after_per(
        "acrobot",
        "Does what came after PER help where the reward says nothing until the goal (Acrobot)?",
        failed_below=-100,
        env="Acrobot-v1",
    ),
    after_per(
        "mountaincar",
        "Does what came after PER help where chance hardly ever reaches the goal (MountainCar)?",
        failed_below=-200,
        env="MountainCar-v0",
        max_episode_steps=1000,
        steps=50_000,
        epsilon_steps=10_000,
        capacity=50_000,
    ),
)
