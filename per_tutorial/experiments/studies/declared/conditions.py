"""On which condition does PER's gain on CartPole depend: rate, network or episode limit?

The notebooks give different answers about CartPole, under different conditions. In 03 PER gains at
the quarter rate and not at the full one (128 units, 200 steps per episode, 10,000 of training). In
04 its final policies are better at the full rate and not at the quarter one (128 units, 500 steps
per episode, 20,000 of training). In 07 PER and uniform replay are not told apart (64 units, 500 and
15,000 steps). In 06 PER gains much (Stable-Baselines3's DQN: 64 units, an update at every second of
8,000 steps). Here all combinations of rate, network and limit are tried.

The budget is that of notebook 03; "ablation-cartpole" has two of the conditions at twice as much.
"""

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.experiments.studies.study import QUARTER, Study

RATES = {"": 1.0, "-quarter": QUARTER}
UNITS = (64, 128)  # of each of the two hidden layers
LIMITS = (200, 500)  # steps of an episode


def _cartpole_conditions() -> Study:
    base = DQNConfig(steps=10_000)
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


CARTPOLE_CONDITIONS = _cartpole_conditions()
