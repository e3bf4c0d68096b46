"""Does PER help DQN of Stable-Baselines3?

Its size was chosen with a few runs of SB3's own agent, seeds from 1000 on, so that it has learned
something, but not everything, well before the end. Runs with PER were examined only afterwards.
"""

from per_tutorial.studies.sb3 import SB3Config
from per_tutorial.studies.study import QUARTER, Study


def _sb3_cartpole() -> Study:
    """SB3's DQN, and ours with uniform replay and with PER, at two learning rates each."""
    theirs = SB3Config(
        steps=8_000,
        options={
            "buffer_size": 10_000,
            "batch_size": 32,
            "train_freq": 2,
            "target_update_interval": 100,
            "exploration_final_eps": 0.05,
            "exploration_fraction": 0.2,
        },
    )
    uniform, per = theirs.replace(replay="uniform"), theirs.replace(replay="proportional")
    quarter = theirs.learning_rate * QUARTER
    return Study(
        name="sb3-cartpole",
        question="Does PER help DQN of Stable-Baselines3 to balance the pole?",
        arms={
            "sb3": theirs,
            "uniform": uniform,
            "per": per,
            "uniform-quarter": uniform.replace(learning_rate=quarter),
            "per-quarter": per.replace(learning_rate=quarter),
        },
        comparisons=(
            ("uniform", "sb3"),  # nothing should differ but chance
            ("per", "uniform"),
            ("per-quarter", "uniform-quarter"),
            ("per-quarter", "uniform"),
        ),
        metric="score over training",
        failed_below=195,
        at_once=1,  # so that a stopped study resumes after its last run
        curves=(),
    )


STUDIES = (_sb3_cartpole(),)
