"""CartPole: under which conditions PER gains, and what a hundred runs say.

`cartpole-conditions` asks on what the gain depends, since earlier pages gave different answers
about CartPole under different conditions: all combinations of rate, network and episode limit.
"""

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.studies.study import QUARTER, Study

RATES = {"": 1.0, "-quarter": QUARTER}
UNITS = (64, 128)  # of each of the two hidden layers
LIMITS = (200, 500)  # steps of an episode


def _cartpole_conditions() -> Study:
    base = DQNConfig(steps=10_000, alpha=0.6)
    arms, comparisons = {}, []
    for rate, share in RATES.items():
        for units in UNITS:
            for limit in LIMITS:
                condition = f"{units}-{limit}{rate}"
                uniform = base.replace(
                    hidden=(units, units),
                    max_episode_steps=limit,
                    learning_rate=base.learning_rate * share,
                )
                arms[f"uniform-{condition}"] = uniform
                arms[f"per-{condition}"] = uniform.replace(sampler="proportional")
                comparisons.append((f"per-{condition}", f"uniform-{condition}"))
    return Study(
        name="cartpole-conditions",
        question="On which condition does PER's gain on CartPole depend: rate, network or limit?",
        arms=arms,
        comparisons=tuple(comparisons),
        metric="score over training",
        failed_below=195,
        seeds=range(300, 330),
    )


# At most 200 steps per episode, so that 80,000 steps hold 400 episodes of every run.
BASE = DQNConfig(max_episode_steps=200, steps=80_000, alpha=0.6)
HUNDRED_RUNS = Study(
    name="hundred-runs",
    question="How do 100 runs of CartPole stand after 100 and after 400 episodes?",
    arms={"uniform": BASE, "per": BASE.replace(sampler="proportional")},
    comparisons=(("per", "uniform"),),
    metric="score over training",
    failed_below=195,
    seeds=range(100),
    at_once=50,
    episodes=400,
)
STUDIES = (_cartpole_conditions(), HUNDRED_RUNS)
