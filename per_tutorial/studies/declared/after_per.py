"""What came after PER, as far as it is a sampler or a loss: the same learner, at two rates.

Each method has its authors' settings. LAP comes with Huber's loss, so uniform replay is also tried
with that loss alone, to separate its effect from that of the priorities. The recorded study
`after-cartpole` has three more methods, which are no settings any more (`per_tutorial.after_per`).
"""

from typing import Any

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.studies.study import QUARTER, Study

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


# Each against uniform replay and against PER, and LAP against Huber's loss alone
COMPARISONS = (
    ("huber", "uniform"),
    ("per", "uniform"),
    ("rank", "uniform"),
    ("rank", "per"),
    ("lap", "uniform"),
    ("lap", "per"),
    ("lap", "huber"),
)


def _after_cartpole() -> Study:
    base = DQNConfig()
    rates = {"": base.learning_rate, "-quarter": base.learning_rate * QUARTER}
    return Study(
        name="after-cartpole",
        question="Does what came after PER help DQN to balance the pole for 500 steps?",
        arms={
            f"{method}{ending}": base.replace(learning_rate=rate, **change)
            for ending, rate in rates.items()
            for method, change in methods(FOR_VECTORS).items()
        },
        comparisons=tuple(
            (f"{one}{ending}", f"{other}{ending}") for ending in rates for one, other in COMPARISONS
        ),
        metric="score over training",
        failed_below=475,
    )


STUDIES = (_after_cartpole(),)
