"""A world of another kind, for the second test of the forecast (`per_tutorial.experiments.when`).

LunarLander rewards every step, and an observation has eight numbers. The size of the study was
chosen with four runs of uniform replay, seeds from 1000 on, which learned to hover but not to land.
Needs Box2D: ``pip install "gymnasium[box2d]"``.
"""

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.experiments.studies.study import QUARTER, Study


def _lunarlander() -> Study:
    uniform = DQNConfig(
        env="LunarLander-v3",
        steps=40_000,
        epsilon_steps=10_000,
        capacity=40_000,
        update_every=4,
        hidden=(64, 64),
        learning_starts=500,
    )
    per = uniform.replace(sampler="proportional")
    slow = {"learning_rate": uniform.learning_rate * QUARTER}
    return Study(
        name="lunarlander",
        question="Does PER help DQN on LunarLander?",
        arms={
            "uniform": uniform,
            "per": per,
            "uniform-quarter": uniform.replace(**slow),
            "per-quarter": per.replace(**slow),
        },
        comparisons=(("per", "uniform"), ("per-quarter", "uniform-quarter")),
        metric="score over training",
        failed_below=-200,
        stack=10,
    )


LUNARLANDER = _lunarlander()
