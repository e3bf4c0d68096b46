"""PER tuned against uniform replay tuned: each side at the learning rate that serves it best.

Two steps in each of five worlds, with the settings of the recorded `after-*` and `lunarlander`:

1. `rates-WORLD`: η/4, η/2, η, 2η and 4η for both sides, ten runs each. The best mean score over
   training chooses a side's rate. If that rate is at an edge of the grid, the grid of that side
   grows by one rate in that direction, once (`EDGES`).
2. `tuned-WORLD`: the two sides at their chosen rates (`CHOSEN`), thirty pairs on other seeds. The
   five comparisons, a world each, are one family.

A second question is declared with it: does PER widen the range of good rates? What a badly chosen
rate costs is, seed by seed, the score at the side's chosen rate minus the mean over the five rates
of the grid. PER minus uniform replay, ten pairs a world; the five worlds are one family.
"""

from typing import Any

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.studies.study import Study

SIDES = {"uniform": "uniform", "per": "proportional"}
GRID = (0.25, 0.5, 1, 2, 4)  # times η
# World → settings, and the greedy score below which a run has failed
WORLDS: dict[str, tuple[dict[str, Any], float]] = {
    "cliffwalk": (
        {
            "env": "per_tutorial.cliffwalk:per_tutorial/BlindCliffwalk-v0",
            "steps": 6_000,
            "hidden": (64, 64),
            "discount": 0.875,
            "update_every": 16,
            "epsilon_steps": 3_000,
        },
        1,
    ),
    "cartpole": ({}, 475),
    "acrobot": ({"env": "Acrobot-v1"}, -100),
    "mountaincar": (
        {
            "env": "MountainCar-v0",
            "max_episode_steps": 1_000,
            "steps": 50_000,
            "capacity": 50_000,
            "epsilon_steps": 10_000,
        },
        -200,
    ),
    "lunarlander": (
        {
            "env": "LunarLander-v3",
            "steps": 40_000,
            "hidden": (64, 64),
            "learning_starts": 500,
            "update_every": 4,
            "capacity": 40_000,
            "epsilon_steps": 10_000,
        },
        -200,
    ),
}
# Both are written after the first step, by the rule above: world → side → multiples of η
EDGES: dict[str, dict[str, float]] = {
    "cliffwalk": {"uniform": 8},
    "cartpole": {"uniform": 0.125},
    "lunarlander": {"uniform": 8},
}
CHOSEN: dict[str, dict[str, float]] = {
    "cliffwalk": {"uniform": 8, "per": 2},
    "cartpole": {"uniform": 0.25, "per": 2},
    "acrobot": {"uniform": 1, "per": 1},
    "mountaincar": {"uniform": 1, "per": 2},
    "lunarlander": {"uniform": 4, "per": 2},
}


def rates(world: str, edges: dict[str, float]) -> Study:
    """The first step in one world; `edges` has the rates by which a side's grid has grown."""
    grids = {side: sorted({*GRID, edges.get(side, 1)}) for side in SIDES}
    return _study(
        f"rates-{world}",
        "Which learning rate serves uniform replay best, and which PER?",
        {f"{side}-{times:g}": (side, times) for side in SIDES for times in grids[side]},
        seeds=range(700, 710),
    )


def tuned(world: str, chosen: dict[str, float]) -> Study:
    """The second step in one world."""
    return _study(
        f"tuned-{world}",
        "Is PER at its best rate better than uniform replay at its own (one world of five)?",
        {side: (side, chosen[side]) for side in SIDES},
        comparisons=(("per", "uniform"),),
        seeds=range(710, 740),
    )


def _study(name: str, question: str, arms: dict[str, tuple[str, float]], **settings: Any) -> Study:
    changes, failed_below = WORLDS[name.split("-")[1]]
    base = DQNConfig(alpha=0.6, **changes)
    return Study(
        name=name,
        question=question,
        arms={
            arm: base.replace(sampler=SIDES[side], learning_rate=times * base.learning_rate)
            for arm, (side, times) in arms.items()
        },
        metric="score over training",
        failed_below=failed_below,
        **{"comparisons": (), **settings},
    )


STUDIES = (
    *(rates(world, EDGES.get(world, {})) for world in WORLDS),
    *(tuned(world, chosen) for world, chosen in CHOSEN.items()),
)
