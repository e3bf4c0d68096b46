"""The methods after PER again: one exponent for all, and κ matched to the size of the rewards.

`after_per` gives each method its authors' exponent, so it compares method and exponent together.
"""

import dataclasses
from typing import Any

from per_tutorial.experiments.studies.declared.after_per import (
    AFTER_PER_STUDIES,
    FOR_CLIPPED_REWARDS,
    methods,
)
from per_tutorial.experiments.studies.study import QUARTER, Study

# No reward of these worlds exceeds 1 in size, as in Atari with clipped rewards. With κ = 1, LAP
# drew nearly uniformly on MountainCar until it found the goal.
KAPPA = FOR_CLIPPED_REWARDS["kappa"]
EXPONENTS = {"4": 0.4, "6": 0.6}  # by the last character of an arm's name


def equal_alpha_methods() -> dict[str, dict[str, Any]]:
    """The settings that each arm changes."""
    arms: dict[str, dict[str, Any]] = {
        "uniform": {},
        "huber": {"loss": "huber", "kappa": KAPPA},
        "huber-1": {"loss": "huber", "kappa": 1.0},
    }
    for digit, alpha in EXPONENTS.items():
        changes = methods({"alpha": alpha, "kappa": KAPPA})
        for method in ("per", "rank", "lap"):
            arms[f"{method}-{digit}"] = changes[method] | {"alpha": alpha}
    return arms


def _comparisons() -> tuple[tuple[str, str], ...]:
    pairs = []
    for digit in EXPONENTS:
        pairs.append((f"per-{digit}", "uniform"))
        pairs += [(f"{method}-{digit}", f"per-{digit}") for method in ("rank", "lap")]
        pairs.append((f"lap-{digit}", "huber"))
    return tuple(pairs)


def _equal_alpha(study: Study, rate: str, share: float) -> Study:
    """The world of `study` at one learning rate, with new seeds."""
    base = study.arms["uniform"]
    base = base.replace(learning_rate=base.learning_rate * share)
    return dataclasses.replace(
        study,
        name=study.name.replace("after", "equal-alpha") + rate,
        question="Which method helps if all have one exponent, and κ is of the rewards' size?",
        arms={name: base.replace(**change) for name, change in equal_alpha_methods().items()},
        comparisons=_comparisons(),
        seeds=range(400, 430),
    )


EQUAL_ALPHA_STUDIES = tuple(
    _equal_alpha(study, rate, share)
    for study in AFTER_PER_STUDIES
    for rate, share in (("", 1.0), ("-quarter", QUARTER))
)

# At the full rate, PER gained 0.061 over the thirty pairs of `after-cliffwalk` and 0.005 over the
# thirty of `equal-alpha-cliffwalk`. So a hundred more were declared.
AGAIN_CLIFFWALK = dataclasses.replace(
    AFTER_PER_STUDIES[0],
    name="again-cliffwalk",
    question="Does PER's gain along the Blind Cliffwalk come again in a hundred new runs?",
    arms={
        name: AFTER_PER_STUDIES[0].arms[name]
        for name in ("uniform", "per", "uniform-quarter", "per-quarter")
    },
    comparisons=(("per", "uniform"), ("per-quarter", "uniform-quarter")),
    seeds=range(430, 530),
    stack=50,
)

# In 20,000 steps hardly a run reaches a score of 475. Of ten runs of uniform replay with other
# seeds (from 3000 on), six did in 40,000 steps, and all ten in 80,000. So it is a length between.
_at_full_rate = next(study for study in EQUAL_ALPHA_STUDIES if study.name == "equal-alpha-cartpole")
THRESHOLD_CARTPOLE = dataclasses.replace(
    _at_full_rate,
    name="threshold-cartpole",
    question="Which method helps on CartPole if training lasts until most runs have solved it?",
    arms={
        name: _at_full_rate.arms[name].replace(steps=60_000)
        for name in ("uniform", "huber", "per-6", "rank-6", "lap-6")
    },
    comparisons=(
        ("per-6", "uniform"),
        ("rank-6", "per-6"),
        ("lap-6", "per-6"),
        ("lap-6", "huber"),
    ),
    seeds=range(590, 620),
)
